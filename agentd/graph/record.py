"""What a picture shows as text that can be read back: `.0c`, `.0`, or lines for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from agentd.domain.concept import Edge, Record
from agentd.errors import GraphError
from agentd.graph.emitter import emit
from agentd.graph.formats.bullets import grouped
from agentd.graph.formats.integrity import canonical, verify
from agentd.graph.formats.writing import write
from agentd.ports import GraphStore


class Form(StrEnum):
    """How a neighbourhood is told. BULLETS are the lines of prompts and not read back."""

    PICTURE = "picture"
    COMPACT = "0c"
    ZERO = "zero"
    BULLETS = "bullets"


async def told(store: GraphStore, edges: Sequence[Edge], form: Form) -> str:
    """These facts as text; nothing for PICTURE. Raises GraphError as `record_of` does."""
    match form:
        case Form.PICTURE:
            return ""
        case Form.COMPACT:
            return write(await record_of(store, edges))
        case Form.ZERO:
            return emit(await record_of(store, edges))
        case Form.BULLETS:
            ends = sorted({end for edge in edges for end in (edge.subject, edge.object)})
            labels = {one: c.label for one, c in (await store.concepts(ends)).items()}
            if len(labels) < len(ends):
                raise GraphError("some of these facts were erased meanwhile", cure="ask again")
            return grouped(sorted(edges, key=lambda one: (-one.confidence, one.fact)), labels)


async def record_of(store: GraphStore, edges: Sequence[Edge]) -> Record:
    """The episodes of these facts, with their concepts and contexts. Raises GraphError for what is not
    what its hashes say, or was erased meanwhile.
    """
    traces = await store.traces([edge.fact for edge in edges])
    relations = tuple(trace.relation for trace in traces)
    ends = {end for one in relations for end in (one.subject, one.object)}
    concepts = await store.concepts(sorted(ends))
    contexts = await store.contexts(sorted({one.context for one in relations}))
    record = canonical(Record(tuple(concepts.values()), tuple(contexts.values()), relations))
    verify(record)
    return record
