"""The state of a store, read as one record."""

from __future__ import annotations

from agentd.domain.concept import Record
from agentd.graph.formats.integrity import canonical
from agentd.ports import GraphStore


async def snapshot(store: GraphStore) -> Record:
    """All that the store's episodes say, in the order of their hashes. A concept that no episode speaks
    of is no part of it: the port does not list those.
    """
    relations = await store.episodes()
    ends = {end for one in relations for end in (one.subject, one.object)}
    concepts = await store.concepts(sorted(ends))
    contexts = await store.contexts(sorted({one.context for one in relations}))
    return canonical(Record(tuple(concepts.values()), tuple(contexts.values()), tuple(relations)))
