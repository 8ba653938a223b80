"""What is written at once, cut so that a file of the graph takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentd.domain.concept import Inserted, Record, Relation
from agentd.graph.compiler import compile as compiled
from agentd.graph.delta import merged
from agentd.graph.emitter import emit
from agentd.graph.feed import Saying
from agentd.graph.files import MOST
from agentd.graph.naming import Aliases

TOGETHER = 25  # episodes that come at once and stand in one graph of the text


def sayings_written(sayings: Sequence[Saying], aliases: Aliases) -> list[tuple[Record, str]]:
    """One record of all, and its text; several where a file would not take that."""
    record = merged([compiled(saying.source(), aliases).record for saying in sayings])
    text = emit(record)
    if len(sayings) == 1 or len(text.encode()) <= MOST:
        return [(record, text)]
    half = len(sayings) // 2
    parts = sayings[:half], sayings[half:]
    return [one for part in parts for one in sayings_written(part, aliases)]


def written(record: Record, relations: Sequence[Relation]) -> Iterator[tuple[Record, str]]:
    """Records of some of these relations each, with what they name, and their texts."""
    for start in range(0, len(relations), TOGETHER):
        yield from _halved(record, relations[start : start + TOGETHER])


def total(many: Sequence[Inserted]) -> Inserted:
    """What all of them added."""
    return Inserted(
        sum(one.concepts for one in many),
        sum(one.facts for one in many),
        sum(one.episodes for one in many),
        sum(one.known for one in many),
    )


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
