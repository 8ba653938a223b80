"""Where facts are switched off, whoever asks for them is told so."""

from __future__ import annotations

import pytest

from agentd.core.errors import FactsOff
from agentd.interfaces.acp.declared import refused, refused_typed
from agentd.interfaces.commands.exchange import EXCHANGE, PROGRAMS
from agentd.interfaces.commands.fact_changes import FACT_CHANGES
from agentd.interfaces.commands.facts import FACTS, GRAPH
from agentd.interfaces.commands.offers import OFFERS
from agentd.interfaces.commands.proposals import PROPOSALS
from tests.e2e.test_contract import registered

OFF = (FACTS, FACT_CHANGES, OFFERS, PROPOSALS)


def why() -> FactsOff:
    return FactsOff("facts are off", cure="change config.toml")


def test_each_method_of_facts_is_refused_where_they_are_off():
    named = {name for name in registered() if name.startswith("_agentd/facts/")}
    of_the_graph = {name for group in (GRAPH, EXCHANGE, PROGRAMS) for name in refused(group, why)}
    off = {name for group in OFF for name in refused(group, why)}
    assert of_the_graph | off == named | {"_agentd/memory/proposals"}


async def test_a_method_says_how_facts_are_switched_on():
    with pytest.raises(FactsOff) as caught:
        await refused(FACT_CHANGES, why)["_agentd/facts/undo"]({}, None)
    assert "config.toml" in caught.value.cure


async def test_a_slash_command_writes_nothing_and_says_how_facts_are_switched_on():
    commands = [one for group in OFF for one in refused_typed(group, "Facts are off", why)]
    assert {one.name for one in commands} == {"remember", "forget", "undo", "proposals"}
    for command in commands:
        with pytest.raises(FactsOff) as caught:
            await command.act("main", "my dog is called Rex")
        assert (command.description, caught.value.cure) == ("Facts are off", "change config.toml")
