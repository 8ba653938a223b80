"""States of stores: read as one record, compared, and changed by deltas."""

from __future__ import annotations

from dataclasses import replace

from agentd.domain.concept import Record
from agentd.errors import GraphError
from agentd.graph.delta import Checkpoint, Delta, apply, checkpoint, diff, united
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


async def diff_stores(old: GraphStore, new: GraphStore) -> Delta:
    """What leads from the state of the one store to that of the other."""
    return diff(await snapshot(old), await snapshot(new))


async def apply_to(store: GraphStore, delta: Delta) -> Checkpoint:
    """Make the change in the store, in one transaction, and give the state it has then. Whoever calls
    it holds off other writers meanwhile. Where something is taken back or lowered, every episode of a
    concept vouches for all of its aliases afterwards.

    Raises GraphError, and leaves the store as it is, where `apply` does, and when concepts that no fact
    speaks of would be lost.
    """
    state = await snapshot(store)
    new = apply(state, delta)
    if _only_adds(state, delta):
        await store.insert([_news(state, delta.record)])
        return checkpoint(new)
    alone = (await store.counts()).concepts - len(state.concepts)
    if alone:
        raise GraphError(
            f"the changes would lose {alone} concepts that no fact speaks of",
            cure="take them out of the graph's text, or say something of them",
        )
    await store.rebuild([new])
    return checkpoint(new)


def _only_adds(state: Record, delta: Delta) -> bool:
    """Whether inserting the delta's record does exactly this."""
    if delta.episodes or delta.contexts or delta.concepts:
        return False
    known = {one.episode for one in state.relations}
    concepts = {one.hash: one for one in state.concepts}
    return not any(one.episode in known for one in delta.record.relations) and all(
        united(concepts.get(one.hash, one), one) == one
        and concepts.get(one.hash, one).created == one.created
        for one in delta.record.concepts
    )


def _news(state: Record, record: Record) -> Record:
    """The record without the aliases that are known: the new episodes do not vouch for those."""
    known = {one.hash: {*one.aliases} for one in state.concepts}
    concepts = [
        replace(one, aliases=tuple(a for a in one.aliases if a not in known.get(one.hash, ())))
        for one in record.concepts
    ]
    return replace(record, concepts=tuple(concepts))
