from __future__ import annotations

from agentd.server.methods import exchange, facts_off, graph
from tests.e2e.test_contract import registered


def test_each_method_of_facts_is_refused_where_they_are_off():
    named = {name for name in registered() if name.startswith("_agentd/facts/")}
    assert {*facts_off.NAMES, *graph.NAMES, *exchange.NAMES} == named | {"_agentd/memory/proposals"}
