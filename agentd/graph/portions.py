"""What is written at once, cut so that a file of the graph takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentd.domain.concept import Record, Relation
from agentd.graph.compiler import record_of
from agentd.graph.delta import merged
from agentd.graph.emitter import emit
from agentd.graph.feed import Saying
from agentd.graph.files import MOST
from agentd.graph.naming import Aliases

# Episodes that stand in one graph of the text: fewer take much more of it (alone 5.3 KB each, then 3.2
# of five, 2.9 of twenty-five or a hundred), and damage to one graph loses no more than these.
TOGETHER = 25
AT_ONCE = 20 * TOGETHER  # that come to the files and the tables in one go


def sayings_written(sayings: Sequence[Saying], aliases: Aliases) -> list[tuple[Record, str]]:
    """Records of some of them each, with their texts."""
    parts = (sayings[start : start + TOGETHER] for start in range(0, len(sayings), TOGETHER))
    return [one for part in parts for one in _together(part, aliases)]


def _together(sayings: Sequence[Saying], aliases: Aliases) -> list[tuple[Record, str]]:
    """One record of all, and its text; several where a file would not take that."""
    record = merged([record_of(saying.source(), aliases) for saying in sayings])
    text = emit(record)
    if len(sayings) == 1 or len(text.encode()) <= MOST:
        return [(record, text)]
    half = len(sayings) // 2
    parts = sayings[:half], sayings[half:]
    return [one for part in parts for one in _together(part, aliases)]


def written(record: Record, relations: Sequence[Relation]) -> Iterator[tuple[Record, str]]:
    """Records of some of these relations each, with what they name, and their texts."""
    for start in range(0, len(relations), TOGETHER):
        yield from _halved(record, relations[start : start + TOGETHER])


def _halved(record: Record, some: Sequence[Relation]) -> Iterator[tuple[Record, str]]:
    part = _part(record, some)
    text = emit(part)
    if len(some) == 1 or len(text.encode()) <= MOST:
        yield part, text
        return
    for half in (some[: len(some) // 2], some[len(some) // 2 :]):
        yield from _halved(record, half)


def _part(record: Record, some: Sequence[Relation]) -> Record:
    ends = {end for one in some for end in (one.subject, one.object)}
    where = {one.context for one in some}
    return Record(
        tuple(one for one in record.concepts if one.hash in ends),
        tuple(one for one in record.contexts if one.hash in where),
        tuple(some),
    )
