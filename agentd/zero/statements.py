"""Statements, the compiler's input, and the files in which people write them. Pure.

A line is `subject | relation | object`, optionally followed by `| 0.8`, the confidence. Blank lines
and lines that begin with `#` are ignored. JSON is a list of `[subject, relation, object]` or of
objects with `subject`, `predicate`, `object` and optionally `confidence`, `denied`, `refs`; or an
object with that list as `tuples`, and optionally `utterance` and `context` with `event_time`,
`source`, `scope`, `agent`, `session`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from agentd.core.errors import GraphError


class SemanticTuple(Struct, frozen=True):
    """One statement, with names in any spelling.

    `confidence` is in [0, 1]. `denied` says that the statement does not hold. `refs` name its
    sources, such as ids of facts. `subject_aliases` and `object_aliases` are other names of the
    two.
    """

    subject: str
    predicate: str
    object: str
    confidence: float = 1.0
    denied: bool = False
    refs: tuple[str, ...] = ()
    subject_aliases: tuple[str, ...] = ()
    object_aliases: tuple[str, ...] = ()


class ContextMeta(Struct, frozen=True):
    """When and where the statements were made.

    `event_time` has a zone. `source` names what the statements were read from, `scope` who may see
    them. `metadata` is kept in the text of the graph, but is no part of the context's identity.
    """

    event_time: datetime
    source: str
    scope: str
    agent: str = ""
    session: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


class CompilerInput(Struct, frozen=True):
    """Statements of one context. `utterance` is the sentence that they were extracted from."""

    tuples: tuple[SemanticTuple, ...]
    context: ContextMeta
    utterance: str = ""


SOURCE, SCOPE = "file", "main"

_CURE = "write `subject | relation | object`, or the same as JSON (docs/graph-forms.md)"
_WORDS = 3  # of a statement
_NAMES = frozenset({"event_time", "source", "scope", "agent", "session"})


def read_statements(text: str, now: datetime) -> CompilerInput:
    """Parse the statements of a text; their time is `now` unless the text gives one. Raises
    GraphError, with the line number for a text of lines.
    """
    if text.lstrip()[:1] in {"[", "{"}:
        return _of_json(text, now)
    tuples = [
        _line(line, number)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    return CompilerInput(tuple(tuples), ContextMeta(now, SOURCE, SCOPE))


def _line(line: str, number: int) -> SemanticTuple:
    words = [one.strip() for one in line.split("|")]
    sure = "1"
    if len(words) == _WORDS + 1:
        sure = words.pop()
    try:
        confidence = float(sure)
    except ValueError:
        raise GraphError(f"{sure[:20]!r} is no confidence", cure=_CURE, line=number) from None
    if len(words) != _WORDS or not all(words):
        raise GraphError("it is no statement", cure=_CURE, line=number)
    subject, predicate, target = words
    return SemanticTuple(subject, predicate, target, confidence)


def _of_json(text: str, now: datetime) -> CompilerInput:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"it is no JSON: {error}", cure=_CURE) from None
    if isinstance(data, list):
        data = {"tuples": data}
    rows = data.get("tuples")
    if not isinstance(rows, list):
        raise GraphError("it has no list `tuples`", cure=_CURE)
    context = _context(data.get("context", {}), now)
    utterance = data.get("utterance", "")
    if not isinstance(utterance, str):
        raise GraphError("the utterance is no text", cure=_CURE)
    return CompilerInput(tuple(map(_statement, rows)), context, utterance)


def _statement(row: object) -> SemanticTuple:
    if isinstance(row, Sequence) and not isinstance(row, str):
        row = dict(zip(("subject", "predicate", "object", "confidence"), row, strict=False))
    try:
        if not isinstance(row, Mapping):
            raise TypeError
        subject, predicate, target = row["subject"], row["predicate"], row["object"]
        refs, denied = row.get("refs", []), row.get("denied", False)
        if not (isinstance(refs, list) and isinstance(denied, bool)):
            raise TypeError
        if not all(isinstance(one, str) for one in (subject, predicate, target, *refs)):
            raise TypeError
        sure = float(row.get("confidence", 1.0))
        return SemanticTuple(subject, predicate, target, sure, denied=denied, refs=tuple(refs))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise GraphError(f"{str(row)[:60]} is no statement", cure=_CURE) from None


def _context(given: Any, now: datetime) -> ContextMeta:
    try:
        if given.keys() - _NAMES:
            raise ValueError
        at = datetime.fromisoformat(given["event_time"]) if "event_time" in given else now
        source, scope = str(given.get("source", SOURCE)), str(given.get("scope", SCOPE))
        agent, session = str(given.get("agent", "")), str(given.get("session", ""))
    except (AttributeError, TypeError, ValueError):
        raise GraphError("the context is none", cure=_CURE) from None
    return ContextMeta(at, source, scope, agent, session)
