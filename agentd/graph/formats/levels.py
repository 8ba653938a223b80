"""The graph in three levels of detail, for those who need less than all."""

from __future__ import annotations

from enum import IntEnum
from itertools import chain

from agentd.domain.concept import Record
from agentd.graph.formats.cursor import escape
from agentd.graph.formats.ids import names
from agentd.graph.formats.integrity import canonical, verify
from agentd.graph.formats.seal import HEADER, plain
from agentd.graph.formats.writing import write


class Level(IntEnum):
    """How much is said: SKELETON (L0) which concepts there are, STRUCTURE (L1) their labels and what
    relates them, FULL (L2) everything.
    """

    SKELETON = 0
    STRUCTURE = 1
    FULL = 2


def at_level(record: Record, level: Level) -> str:
    """The record at a level. L2 is `write`; L0 and L1 are for looking at and are not read back, and L1
    says a fact once, in however many contexts it was said. Raises GraphError as `write` does.
    """
    if level is Level.FULL:
        return write(record)
    record = canonical(record)
    verify(record)
    name = names([concept.hash for concept in record.concepts])
    if level is Level.SKELETON:
        return plain(chain([HEADER], (f"C:{name[one.hash]}" for one in record.concepts)))
    labels = [f"C:{name[one.hash]}:{escape(one.label)}" for one in record.concepts]
    facts = dict.fromkeys(
        f"R:{name[one.subject]}>{escape(one.predicate)}>{name[one.object]}"
        for one in record.relations
    )
    return plain([HEADER, *labels, *facts])
