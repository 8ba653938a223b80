"""Deltas and messages over every store of the graph."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agentd.domain.concept import Record
from agentd.errors import GraphError
from agentd.graph.delta import checkpoint, diff
from agentd.graph.stores import apply_to, snapshot
from agentd.graph.transfer import homed, message, received
from agentd.storage.graph import SqliteGraph
from agentd.testing.graph import InMemoryGraph
from tests.graph.formats.records import NOON, concept, context, grown, relation

HOME = "space:household"
OLD, NEW = grown(40, scope=HOME), grown(60, seed=8, scope=HOME)


@pytest.fixture(params=["sqlite", "memory"])
def store(request):
    if request.param == "memory":
        return InMemoryGraph()
    return SqliteGraph(request.getfixturevalue("index_db"))


async def test_a_store_is_brought_from_one_state_to_the_next(store):
    await store.insert([OLD])
    here = await snapshot(store)
    there = InMemoryGraph()
    await there.insert([NEW])
    target = await snapshot(there)
    assert await apply_to(store, diff(here, target)) == checkpoint(target)
    assert await snapshot(store) == target


async def test_refused_changes_leave_the_store_as_it_is(store):
    await store.insert([OLD])
    before = await snapshot(store)
    for wrong in (
        diff(Record(), before),
        replace(diff(before, Record()), target=diff(before, Record()).base),
    ):
        with pytest.raises(GraphError):
            await apply_to(store, wrong)
        assert await snapshot(store) == before


async def test_what_another_agent_said_is_kept_as_it_was_taken_in(store):
    where = context(NOON, "shared", HOME, "0" * 16, "5" * 32)
    cat, milk = concept("cat"), concept("milk")
    state = Record((cat, milk), (where,), (relation(cat, "likes", milk, where, 0.8),))
    here = homed(received(message(state, [HOME]), [HOME], NOON), "ada", 0.5)
    for _ in range(2):
        await store.insert([here])
        assert await snapshot(store) == here
    years = NOON + timedelta(days=1_000)
    assert list(await store.sweep(years)) == []
    (edge,) = await store.edges([cat.hash], now=years)
    assert edge.confidence == pytest.approx(0.4)
