"""Writes the facts of a picture as text: in forms that can be read back, in levels of detail, or as
lines for a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import assert_never

from agentd.core.errors import GraphError
from agentd.core.graph import ConceptHash, Edge, Record
from agentd.core.ports import GraphStore
from agentd.zero.formats.records import canonical, verify
from agentd.zero.formats.writing import WritingLevel, at_level, group_by_subject
from agentd.zero.record_graph import emit


class Form(StrEnum):
    """The form of a neighbourhood (docs/graph-forms.md). COMPACT, ZERO and L2 (the same as COMPACT)
    are complete and can be read back.
    """

    PICTURE = "picture"
    COMPACT = "0c"
    ZERO = "zero"
    L0 = "l0"
    L1 = "l1"
    L2 = "l2"
    PROMPT = "prompt"


async def as_text(store: GraphStore, edges: Sequence[Edge], form: Form) -> str:
    """Return these facts as text; "" for PICTURE. Raises GraphError as `record_of` does."""
    match form:
        case Form.PICTURE:
            return ""
        case Form.PROMPT:
            return group_by_subject(*await _lines(store, edges))
        case Form.ZERO:
            return emit(await record_of(store, edges))
        case Form.L0:
            return at_level(await record_of(store, edges), WritingLevel.SKELETON)
        case Form.L1:
            return at_level(await record_of(store, edges), WritingLevel.STRUCTURE)
        case Form.L2 | Form.COMPACT:
            return at_level(await record_of(store, edges), WritingLevel.FULL)
    assert_never(form)


async def record_of(store: GraphStore, edges: Sequence[Edge]) -> Record:
    """Return the episodes of these facts, with their concepts and contexts. Raises GraphError if
    the content does not match its hashes, or was erased meanwhile.
    """
    traces = await store.traces([edge.fact for edge in edges])
    relations = tuple(trace.relation for trace in traces)
    ends = {end for one in relations for end in (one.subject, one.object)}
    concepts = await store.concepts(sorted(ends))
    contexts = await store.contexts(sorted({one.context for one in relations}))
    record = canonical(Record(tuple(concepts.values()), tuple(contexts.values()), relations))
    verify(record)
    return record


async def _lines(
    store: GraphStore, edges: Sequence[Edge]
) -> tuple[Sequence[Edge], Mapping[ConceptHash, str]]:
    """Return the facts, the surest first, and the labels of their ends."""
    ends = {end for edge in edges for end in (edge.subject, edge.object)}
    labels = await store.labels(ends)
    if len(labels) < len(ends):
        raise GraphError("some of these facts were erased meanwhile", cure="ask again")
    return sorted(edges, key=lambda one: (-one.confidence, one.fact)), labels
