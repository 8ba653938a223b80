"""Where conversations come from: those of our own beside this file, and a collection by others."""

from __future__ import annotations

import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.conversations.conversation import Conversation, Expected, Keywords, Turn, fits

_OWN = Path(__file__).parent / "own"
_BESIDE = Path(__file__).parents[2].parent / "shared" / "membench"
_CLAUSE = re.compile(r"[^.,;:!?。，；：！？、]+(?:[.,:](?=\d)[^.,;:!?。，；：！？、]+)*")
_SENTENCE = re.compile(r"(?:[^.!?。！？]|[.](?=\d))+")
_FEWEST_WORDS = 3  # of a quote that counts by itself

Json = Mapping[str, Any]


def own() -> tuple[Conversation, ...]:
    """Ten conversations, written by someone who knew the README alone."""
    return tuple(_written(path) for path in sorted(_OWN.glob("*.toml")))


def written(name: str) -> Conversation:
    """One of the files beside the ten."""
    return _written(Path(__file__).parent / f"{name}.toml")


def others() -> tuple[Conversation, ...]:
    """The conversations of the collection, which is no part of this repository; none where it is
    not.
    """
    folder = Path(os.environ.get("AGENTD_MEMBENCH", _BESIDE)) / "facts"
    paths = sorted(folder.glob("conv-*.json"))
    return tuple(_collected(json.loads(path.read_text("utf-8"))) for path in paths)


def _written(path: Path) -> Conversation:
    turns = tomllib.loads(path.read_text("utf-8"))["turn"]
    sessions = itertools.groupby(turns, key=lambda turn: turn["session"])
    return Conversation(path.stem, tuple(tuple(map(_turn, several)) for _, several in sessions))


def _turn(told: Json) -> Turn:
    plain = ("user", "agent", "tool", "attached", "beat", "asks_to_keep", "canary")
    return Turn(
        **{key: told[key] for key in plain if key in told},
        knows=tuple(_expected(fact) for fact in told.get("knows", ())),
        ends=tuple(told.get("ends", ())),
        repeats=tuple(told.get("repeats", ())),
        forgets=tuple(told.get("forgets", ())),
        never=_keywords(told.get("never", ())),
    )


def _expected(told: Json) -> Expected:
    triple = told.get("triple")
    return Expected(
        told["id"],
        told["says"],
        _keywords(told["keys"]),
        told["quote"],
        told.get("category", "personal"),
        (triple[0], triple[1], triple[2]) if triple else None,
        tuple(told.get("replaces", ())),
        told.get("valid_to", ""),
    )


def _keywords(told: Sequence[Sequence[str]]) -> Keywords:
    return tuple(tuple(words) for words in told)


def _collected(told: Json) -> Conversation:
    """A conversation in the collection's form: rows by role, and what is expected at the end."""
    sessions, expected = told["sessions"], told["expected"]
    planted = [*expected["active"], *(gone["old"] for gone in expected["superseded"])]
    planted += [fact | _first_said(fact, sessions) for fact in expected["forgotten"]]
    return Conversation(
        told["id"],
        tuple(
            tuple(_turns(at, session["turns"], planted, expected))
            for at, session in enumerate(sessions)
        ),
    )


def _first_said(forgotten: Json, sessions: Sequence[Json]) -> dict[str, int]:
    """Where a fact was told that is known only by where it was to be forgotten."""
    keywords = _keywords(forgotten["accept"])
    return next(
        {"session": session, "turn": number}
        for session, told in enumerate(sessions)
        for number, row in enumerate(told["turns"])
        if row["role"] == "user" and fits(row["content"], keywords)
    )


def _turns(
    session: int, rows: Sequence[Json], planted: Sequence[Json], expected: Json
) -> Iterator[Turn]:
    """Rows of the agent and of tools belong to the turn before them."""
    begun: dict[str, Any] = {}
    for number, row in enumerate(rows):
        never = _never(expected, session, number)
        if row["role"] in ("assistant", "tool") and begun:
            key = "agent" if row["role"] == "assistant" else "tool"
            begun[key] = "\n".join(filter(None, (begun.get(key, ""), row["content"])))
            begun["never"] += never
            continue
        if begun:
            yield Turn(**begun)
        said = [fact for fact in planted if (fact["session"], fact["turn"]) == (session, number)]
        begun = {**_begun(row, said, expected), "never": never}
        begun |= _forgetting(expected, session, number)
    if begun:
        yield Turn(**begun)


def _begun(row: Json, said: Sequence[Json], expected: Json) -> dict[str, Any]:
    if row["role"] == "injected":
        return {"beat" if row.get("kind") == "heartbeat" else "attached": row["content"]}
    replaces: dict[str, list[str]] = {}
    for gone in expected["superseded"]:
        replaces.setdefault(gone["new"], []).append(gone["old"]["id"])
    knows = [_fact(fact, row["content"], replaces.get(fact["id"], ())) for fact in said]
    return {
        "user": row["content"],
        "knows": tuple(knows),
        "asks_to_keep": any(fact.get("source") == "explicit" for fact in said),
    }


def _forgetting(expected: Json, session: int, number: int) -> dict[str, Any]:
    gone = [f for f in expected["forgotten"] if (f["session"], f["turn"]) == (session, number)]
    if not gone:
        return {}
    return {"forgets": tuple(fact["id"] for fact in gone), "canary": gone[0]["canary"]}


def _never(expected: Json, session: int, number: int) -> Keywords:
    there = [d for d in expected["never"] if (d["session"], d["turn"]) == (session, number)]
    return tuple(tuple(distractor["keys"]) for distractor in there if distractor["keys"])


def _fact(told: Json, message: str, replaces: Sequence[str]) -> Expected:
    keywords = _keywords(told["accept"])
    quote = span_with(message, keywords)
    return Expected(told["id"], told["text"], keywords, quote, replaces=tuple(replaces))


def span_with(message: str, keywords: Keywords) -> str:
    """The shortest clause of the message that has the words, else a sentence of it, else all of
    it.
    """
    for pattern in (_CLAUSE, _SENTENCE):
        found = [match.group().strip() for match in pattern.finditer(message)]
        fitting = [span for span in found if fits(span, keywords) and _words(span) >= _FEWEST_WORDS]
        if fitting:
            return min(fitting, key=len)
    return message


def _words(span: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in span.split())
