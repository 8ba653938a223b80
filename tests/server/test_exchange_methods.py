"""The methods that give the whole graph in parts, and share it."""

from __future__ import annotations

import pytest

from agentd.core.errors import Busy, GraphError, InvalidRequest
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.exchange import EXCHANGE, ExchangeCommands
from agentd.memory.graph.graph_exchange import snapshot
from agentd.zero.delta import apply, as_json, checkpoint, read_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.writing import write
from agentd.zero.record_graph import emit
from tests.graph.home import fact
from tests.graph.test_sharing import Agent


@pytest.fixture
async def ada():
    ada = Agent("ada")
    await ada.learn(fact("a1", "dog name", "Max"), fact("b2", "motto", "\N{PARROT} " * 40))
    return ada


async def call(ada, method, /, **params):
    routes = methods(EXCHANGE, ExchangeCommands(ada.exchange, ada.sharing, as_json, page=100))
    return await routes[f"_agentd/facts/{method}"](params, None)


async def test_the_parts_of_a_state_are_the_whole(ada):
    part = first = await call(ada, "snapshot")
    text = part["text"]
    while part["next"] is not None:
        assert len(part["text"]) == 100
        part = await call(ada, "snapshot", after=part["next"], state=first["state"])
        text += part["text"]
    assert read(text) == await snapshot(ada.store)
    assert (first["concepts"], first["episodes"]) == (3, 2)


async def test_a_part_of_another_state_is_refused(ada):
    first = await call(ada, "snapshot")
    await ada.learn(fact("c3", "cat name", "Mia"))
    with pytest.raises(Busy, match="the graph changed"):
        await call(ada, "snapshot", after=first["next"], state=first["state"])


async def test_what_led_from_a_state_to_now_makes_the_new_state_of_it(ada):
    old = write(await snapshot(ada.store))
    await ada.learn(fact("c3", "cat name", "Mia"))
    told = await call(ada, "graph-changes", old=old)
    now = await snapshot(ada.store)
    assert write(apply(read(old), read_delta(told["text"]))) == write(now)
    assert (told["episodes"], told["gone"]) == (1, 0)
    assert told["state"] == checkpoint(now).hash.hex
    with pytest.raises(GraphError):
        await call(ada, "graph-changes", old="nothing of the kind")


async def test_what_is_shared_is_listed_by_space(ada):
    assert await call(ada, "share") == {"facts": []}
    told = await call(ada, "share", name="max", space="team")
    assert told["facts"][0] | {"text": ""} == {
        "space": "team",
        "id": "a1",
        "text": "",
        "sent": False,
    }
    await call(ada, "send", space="team")
    assert [one["sent"] for one in (await call(ada, "share"))["facts"]] == [True]
    assert await call(ada, "share", space="home") == {"facts": []}


@pytest.mark.parametrize("trust", [0, -0.5, 1.1, float("nan"), float("inf")])
async def test_a_trust_that_is_none_is_refused_as_a_wrong_param(ada, trust):
    with pytest.raises(InvalidRequest, match="trust"):
        await call(ada, "take", text="", **{"from": "ada"}, trust=trust)


@pytest.mark.parametrize("form", [emit, write])
async def test_a_text_is_taken_in_as_the_word_of_whom_it_is_from(ada, form):
    eve = Agent("eve", ())
    text = form(await snapshot(ada.store))
    counts = {"new": 2, "known": 0, "taken_back": 0, "kept_out": 0}
    assert await call(eve, "import-graph", text=text, **{"from": "Ada"}) == counts
    assert (await call(eve, "import-graph", text=text, **{"from": "Ada"}))["known"] == 2
    assert "ada dog_name max" in await eve.heard()
    assert {one.agent for one in (await snapshot(eve.store)).contexts} == {"ada"}


async def test_a_text_that_is_nobodys_is_about_the_owner_and_not_his_word(ada):
    eve = Agent("eve", ())
    await call(eve, "import-graph", text=emit(await snapshot(ada.store)), trust=1)
    assert "user dog name max" in await eve.known()
    assert {one.source for one in (await snapshot(eve.store)).contexts} == {"shared"}


async def test_the_whole_text_is_written_on_demand(ada):
    told = await call(ada, "export-graph")
    assert told == {"folder": "memory/graph", "files": 1, "episodes": 2}
    assert "max" in ada.text()
