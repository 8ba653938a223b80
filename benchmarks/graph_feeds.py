"""Graphs of conversations: what facts their messages say.

`owner` has what the rules read out of the owner's words, as the daemon does without a model;
`speakers` the same of all who speak; `names`, to have a graph that knows much, the names that stand
together in one message, which agentd itself never takes for facts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from agentd.domain.fact import Category, Fact, FactSource, Triple
from agentd.statements.claims import USER, claims
from agentd.statements.relations import is_functional

FEEDS = ("owner", "speakers", "names")

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")


@dataclass(frozen=True, slots=True)
class Said:
    """A message; `role` is `user` where the owner speaks."""

    role: str
    name: str
    text: str
    at: datetime


def facts_of(said: Iterable[Said], feed: str) -> list[Fact]:
    """What is known after these messages: of what can have one value only the newest."""
    known: dict[tuple[str, ...], tuple[Triple, datetime]] = {}
    for triple, at in _paired(said) if feed == "names" else _stated(said, feed):
        value = "" if is_functional(triple.relation) else triple.value.casefold()
        known[triple.subject, triple.relation, value] = (triple, at)
    return [
        Fact(
            f"{number:08x}", f"{triple.subject} {triple.relation} {triple.value}.",
            Category.PERSONAL, FactSource.EXTRACTED, 0.6, at, at, triple=triple,
        )
        for number, (triple, at) in enumerate(known.values())
    ]  # fmt: skip


def _stated(said: Iterable[Said], feed: str) -> Iterator[tuple[Triple, datetime]]:
    for one in said:
        if one.role != "user" and feed == "owner":
            continue
        speaker = USER if feed == "owner" else one.name
        for claim in claims(one.text, speaker=speaker, said_on=one.at.date()):
            if claim.triple is not None and not claim.is_negated:
                yield claim.triple, one.at


def _paired(said: Iterable[Said]) -> Iterator[tuple[Triple, datetime]]:
    """Names that more than one message has, and who says them or which stand beside them."""
    found = [(one, sorted(set(_NAME.findall(one.text)))) for one in said]
    counts = Counter(name for _, names in found for name in names)
    for one, names in found:
        ends = [name for name in names if counts[name] > 1]
        speaker = [one.name] if one.name != one.role else []
        for left, right in combinations([*speaker, *ends], 2):
            if left != right:
                yield Triple(left, "goes with", right), one.at


def messages(files: Sequence[Path]) -> Iterator[Said]:
    """The messages of transcripts, one to a line."""
    for file in files:
        for raw in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(raw)
            content = row["content"]
            if not isinstance(content, str):
                content = "\n".join(block.get("text", "") for block in content)
            at = datetime.fromisoformat(row["timestamp"])
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            yield Said(row["role"], row.get("name", row["role"]), content, at)
