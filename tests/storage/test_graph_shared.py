"""What other agents say, in every store of the graph."""

from datetime import timedelta

import pytest

from agentd.domain.concept import Record
from agentd.graph.stores import snapshot
from agentd.graph.transfer import homed, message, received
from agentd.storage.graph import SqliteGraph
from agentd.testing.graph import InMemoryGraph
from tests.graph.formats.records import NOON, concept, context, relation

HOME = "space:household"


@pytest.fixture(params=["sqlite", "memory"])
def store(request):
    if request.param == "memory":
        return InMemoryGraph()
    return SqliteGraph(request.getfixturevalue("index_db"))


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
