"""Where facts are switched off, whoever asks for them is told so."""

from __future__ import annotations

import pytest

from agentd.errors import FactsOff
from agentd.server.methods import exchange, facts_off, graph, programs
from tests.e2e.test_contract import registered


def test_each_method_of_facts_is_refused_where_they_are_off():
    named = {name for name in registered() if name.startswith("_agentd/facts/")}
    of_the_graph = {*graph.NAMES, *exchange.NAMES, *programs.NAMES}
    assert of_the_graph | {*facts_off.NAMES} == named | {"_agentd/memory/proposals"}


async def test_a_method_says_how_facts_are_switched_on():
    with pytest.raises(FactsOff) as caught:
        await facts_off.refusals()["_agentd/facts/undo"]({}, None)
    assert "config.toml" in caught.value.cure


async def test_a_slash_command_writes_nothing_and_says_how_facts_are_switched_on():
    commands = {command.name: command for command in facts_off.refusing_commands()}
    assert commands.keys() == {"remember", "undo", "proposals"}
    for command in commands.values():
        with pytest.raises(FactsOff) as caught:
            await command.act("main", "my dog is called Rex")
        assert "config.toml" in caught.value.cure
