"""Imports facts from another agentd: the JSON of `facts list`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from agentd.core.errors import InvalidRequest
from agentd.core.fact import (
    Category,
    Fact,
    FactOperation,
    FactSource,
    FactStatus,
    OperationKind,
    Triple,
)
from agentd.core.times import read_instant
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.import_order import is_over, successors_first
from agentd.memory.facts.known import comparable

_CURE = "give lines as `agentd facts export` writes them"
_Key = tuple[str, datetime]  # normalised text and start: equal for the same fact
_Word = TypeVar("_Word", Category, FactSource)


async def take_in(facts: FactBook, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Learn the facts in the rows, in one change. A fact that had ended when it was exported gets
    the same end and the same successor here: the row of its `superseded_by`, or the fact that its
    `successor` describes. Facts that exist here are left alone, and facts forgotten here stay
    forgotten. Returns the numbers of `added`, `known` and, by reason, `refused` facts.

    Raises InvalidRequest, naming the first invalid row; then nothing is learnt.
    """
    read, new = await asyncio.to_thread(_read, rows, await facts.all())
    learned = await facts.learn(new)
    refused: dict[str, int] = {}
    for one in learned:
        if one.reason is not None:
            refused[one.reason] = refused.get(one.reason, 0) + 1
    added = sum(one.is_new for one in learned)
    return {"added": added, "known": read - added - sum(refused.values()), "refused": refused}


def _read(
    rows: Sequence[Mapping[str, Any]], known: Sequence[Fact]
) -> tuple[int, list[FactOperation]]:
    """Return how many rows have facts, and operations for the new ones: those that hold by age,
    then past ones.
    """
    read = {
        place: _operation(_row_label(place, row), row)
        for place, row in enumerate(rows)
        if row.get("status") != FactStatus.FORGOTTEN
    }
    there = {(comparable(fact.text), fact.valid_from): fact.id for fact in known if fact.text}
    holding = {comparable(fact.text): fact.id for fact in known if fact.is_active}
    new: dict[_Key, FactOperation] = {}
    for place, row in successors_first(rows):
        if place not in read or (key := _key(read[place])) in there or key in new:
            continue
        by = ""
        if (successor := _successor(_row_label(place, row), row)) is not None:
            came = new[successor].name if successor in new else there.get(successor)
            by = came or holding.get(successor[0], "")
        new[key] = replace(read[place], name=f"row {place}", by=by)
    holds = sorted((one for one in new.values() if not one.is_over), key=lambda one: one.at)
    return len(read), [*holds, *(one for one in new.values() if one.is_over)]


def _row_label(place: int, row: Mapping[str, Any]) -> str:
    """Return the name of a row in errors: its `line` in the source file, if known."""
    line = row.get("line")
    return f"line {line}" if type(line) is int else f"facts[{place + 1}]"


def _key(said: FactOperation) -> _Key:
    return comparable(said.text), said.valid_from or said.at


def _successor(where: str, row: Mapping[str, Any]) -> _Key | None:
    told = row.get("successor")
    if told is None or not is_over(row):
        return None
    if not isinstance(told, Mapping):
        raise _wrong(where, "successor", "is no fact")
    if not isinstance(text := told.get("text"), str):  # the successor was forgotten
        return None
    return comparable(text), _time(where, "successor", told.get("valid_from"))


def _operation(where: str, row: Mapping[str, Any]) -> FactOperation:
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise _wrong(where, "text", "is missing")
    for name in ("id", "superseded_by"):
        if not isinstance(row.get(name), str | None):
            raise _wrong(where, name, "is no id")
    since = _time(where, "valid_from", row.get("valid_from"))
    until = row.get("valid_to")
    return FactOperation(
        OperationKind.ADD,
        _time(where, "noted_at", row.get("noted_at") or row.get("valid_from")),
        _one_of(where, "source", row.get("source", FactSource.EXPLICIT), FactSource),
        text,
        _one_of(where, "category", row.get("category", Category.PERSONAL), Category),
        _triple(where, row.get("triple")),
        is_proven=row.get("status") != FactStatus.PROPOSED,
        valid_from=since,
        valid_to=None if until is None else _time(where, "valid_to", until),
        confidence=_confidence(where, row.get("confidence")),
        is_carried=True,
        is_over=is_over(row),
    )


def _one_of(where: str, name: str, value: Any, kind: type[_Word]) -> _Word:
    try:
        return kind(value)
    except ValueError:
        raise _wrong(where, name, f"{value!r} is none of {', '.join(kind)}") from None


def _time(where: str, name: str, value: Any) -> datetime:
    try:
        return read_instant(value)
    except ValueError as error:
        raise _wrong(where, name, str(error)) from None


def _triple(where: str, value: Any) -> Triple | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 3 and all(isinstance(v, str) for v in value):
        return Triple(*value)
    raise _wrong(where, "triple", "is not three texts")


def _confidence(where: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise _wrong(where, "confidence", f"{value!r} is not between 0 and 1")


def _wrong(where: str, name: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where}.{name}: {what}", cure=_CURE)
