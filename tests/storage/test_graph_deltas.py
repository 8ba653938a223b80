"""Deltas and messages over every store of the graph."""

from dataclasses import replace

import pytest

from agentd.domain.concept import Record
from agentd.errors import GraphError
from agentd.graph.delta import checkpoint, diff
from agentd.graph.stores import apply_to, snapshot
from agentd.graph.transfer import discounted, message, shared, take
from agentd.storage.graph import SqliteGraph
from agentd.testing.graph import InMemoryGraph
from tests.graph.formats.records import grown

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


async def test_a_message_taken_twice_is_taken_once(store):
    text = message(NEW, [HOME])
    for _ in range(2):
        await take(store, text, sender="ada", trust=0.5, spaces=[HOME])
        assert await snapshot(store) == discounted(shared(NEW, [HOME]), 0.5)
