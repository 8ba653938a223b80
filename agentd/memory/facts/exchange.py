"""Facts as they are carried from one agentd to another: the JSON of `facts list`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from agentd.core.errors import InvalidRequest
from agentd.core.fact import (
    Category,
    Fact,
    FactOperation,
    FactSource,
    FactStatus,
    Learned,
    Op,
    Triple,
)
from agentd.core.instant import read_instant
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.known import comparable

_CURE = "give lines as `agentd facts export` writes them"
_Word = TypeVar("_Word", Category, FactSource)


async def take_in(facts: FactBook, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Learn what the rows say, the oldest first, so that what was replaced is replaced again. What held
    no longer when it was written out holds no longer here, what is here already is left alone, and
    what was forgotten here stays so. Gives how many were `added`, `known` and, by reason, `refused`.

    Raises InvalidRequest, which names the first row that is no fact; nothing is learnt then.
    """
    read, new = await asyncio.to_thread(_read, rows, await facts.all())
    learned = await facts.learn([said for said, _ in new])
    active = {fact.id for fact in await facts.all() if fact.is_active}
    if over := _over([(row, one) for (_, row), one in zip(new, learned, strict=True)], active):
        await facts.put_aside(over)
    refused: dict[str, int] = {}
    for one in learned:
        if one.reason is not None:
            refused[one.reason] = refused.get(one.reason, 0) + 1
    added = sum(one.is_new for one in learned)
    return {"added": added, "known": read - added - sum(refused.values()), "refused": refused}


def _read(
    rows: Sequence[Mapping[str, Any]], known: Sequence[Fact]
) -> tuple[int, list[tuple[FactOperation, Mapping[str, Any]]]]:
    """How many rows say something, and those of them that are new, the oldest first."""
    read = [
        (_operation(number, row), row)
        for number, row in enumerate(rows, start=1)
        if row.get("status") != FactStatus.FORGOTTEN
    ]
    here = {(comparable(fact.text), fact.valid_from) for fact in known if fact.text}
    new = [pair for pair in read if (comparable(pair[0].text), pair[0].valid_from) not in here]
    return len(read), sorted(new, key=lambda pair: pair[0].at)


def _over(
    learned: Sequence[tuple[Mapping[str, Any], Learned]], active: Collection[str]
) -> dict[str, str]:
    """Those that are active here though they held no longer, each with the active one that came for
    it, or with "".
    """
    ids = {row.get("id"): one.fact.id for row, one in learned if one.fact and row.get("id")}
    hold = {one.fact.id for row, one in learned if one.fact and not _is_over(row)}
    still = {*active} - hold
    over = {}
    for row, one in learned:
        if one.fact and one.is_new and _is_over(row) and one.fact.id in still:
            by = ids.get(row.get("superseded_by"), "")
            over[one.fact.id] = by if by in active else ""
    return over


def _is_over(row: Mapping[str, Any]) -> bool:
    return row.get("status") in (FactStatus.SUPERSEDED, FactStatus.ENDED)


def _operation(number: int, row: Mapping[str, Any]) -> FactOperation:
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise _wrong(number, "text", "is missing")
    for name in ("id", "superseded_by"):
        if not isinstance(row.get(name), str | None):
            raise _wrong(number, name, "is no id")
    since = _time(number, "valid_from", row.get("valid_from"))
    until = row.get("valid_to")
    return FactOperation(
        Op.ADD,
        _time(number, "noted_at", row.get("noted_at") or row.get("valid_from")),
        _one_of(number, "source", row.get("source", FactSource.EXPLICIT), FactSource),
        text,
        _one_of(number, "category", row.get("category", Category.PERSONAL), Category),
        _triple(number, row.get("triple")),
        is_proven=row.get("status") != FactStatus.PROPOSED,
        valid_from=since,
        valid_to=None if until is None or _is_over(row) else _time(number, "valid_to", until),
        confidence=_confidence(number, row.get("confidence")),
        is_carried=True,
    )


def _one_of(number: int, name: str, value: Any, kind: type[_Word]) -> _Word:
    try:
        return kind(value)
    except ValueError:
        raise _wrong(number, name, f"{value!r} is none of {', '.join(kind)}") from None


def _time(number: int, name: str, value: Any) -> datetime:
    try:
        return read_instant(value)
    except ValueError as error:
        raise _wrong(number, name, str(error)) from None


def _triple(number: int, value: Any) -> Triple | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 3 and all(isinstance(v, str) for v in value):
        return Triple(*value)
    raise _wrong(number, "triple", "is not three texts")


def _confidence(number: int, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise _wrong(number, "confidence", f"{value!r} is not between 0 and 1")


def _wrong(number: int, name: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"facts[{number}].{name}: {what}", cure=_CURE)
