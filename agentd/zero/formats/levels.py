"""The graph with less than all it says: in three levels of detail, and as lines for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import chain

from agentd.core.graph import (
    ConceptHash,
    Edge,
    Record,
)
from agentd.zero.formats.cursor import escape, names
from agentd.zero.formats.records import canonical, verify
from agentd.zero.formats.seal import HEADER, plain
from agentd.zero.formats.writing import write

_SURE = 0.995  # from here on a confidence is 1.00 in two digits, and goes without saying


class WritingLevel(IntEnum):
    """How much is said: SKELETON (L0) which concepts there are, STRUCTURE (L1) their labels and what
    relates them, FULL (L2) everything.
    """

    SKELETON = 0
    STRUCTURE = 1
    FULL = 2


def at_level(record: Record, level: WritingLevel) -> str:
    """The record at a level. L2 is `write`; L0 and L1 are for looking at and are not read back, and L1
    says a fact once, in however many contexts it was said. Raises GraphError as `write` does.
    """
    if level is WritingLevel.FULL:
        return write(record)
    record = canonical(record)
    verify(record)
    name = names([concept.hash for concept in record.concepts])
    if level is WritingLevel.SKELETON:
        return plain(chain([HEADER], (f"C:{name[one.hash]}" for one in record.concepts)))
    labels = [f"C:{name[one.hash]}:{escape(one.label)}" for one in record.concepts]
    facts = dict.fromkeys(
        f"R:{name[one.subject]}>{escape(one.predicate)}>{name[one.object]}"
        for one in record.relations
    )
    return plain([HEADER, *labels, *facts])


def grouped(edges: Iterable[Edge], labels: Mapping[ConceptHash, str]) -> str:
    """One line for each subject, the subjects and the facts of each in the order they come in:
    `- agent needs memory (0.98); uses python`. Of the confidence two digits are said, and nothing where
    they are 1.00.
    """
    lines: dict[ConceptHash, list[str]] = {}
    for edge in edges:
        lines.setdefault(edge.subject, []).append(_said(edge, labels))
    return "".join(f"- {_line(labels[one])} {'; '.join(said)}\n" for one, said in lines.items())


def _said(edge: Edge, labels: Mapping[ConceptHash, str]) -> str:
    said = f"{_line(edge.predicate)} {_line(labels[edge.object])}"
    return said if edge.confidence >= _SURE else f"{said} ({edge.confidence:.2f})"


def _line(text: str) -> str:
    """Normal labels have no line breaks; one that came in by another way must not begin a line."""
    return " ".join(text.split())
