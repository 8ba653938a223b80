"""`_agentd/logs`: pages, following, and where else the log may be."""

from __future__ import annotations

import asyncio
import json

import pytest

from agentd.core.errors import AgentdError
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.logs import LOGS, LogCommands, LogPlace
from agentd.interfaces.commands.units import Unit
from agentd.testing import FakeClock


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "agentd.log"
    lines = ({"event": "e", "n": n, "turn": n % 2} for n in range(1, 7))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


async def test_a_page_and_what_follows_come_over_the_socket(open_house, file) -> None:
    routes = methods(LOGS, LogCommands(LogPlace(file, None), FakeClock()))
    async with open_house(methods=routes) as house:
        client = await house.client()
        page = await client.call("_agentd/logs", {"limit": 2, "turn": 1})
        assert [r["n"] for r in page["records"]] == [3, 5]
        older = await client.call("_agentd/logs", {"before": page["before"], "turn": 1})
        assert [r["n"] for r in older["records"]] == [1]
        assert older["before"] is None
        following = await client.send("_agentd/logs/follow", {"after": page["after"], "turn": 1})
        with file.open("a") as log:
            log.write('{"event": "e", "n": 7, "turn": 1}\n{"event": "e", "n": 8, "turn": 0}\n')
        told = await client.until("_agentd/log")
        assert [r["n"] for r in told["params"]["records"]] == [7]
        assert following not in client.answers


async def test_following_ends_when_the_client_leaves(open_house, file) -> None:
    clock = FakeClock()
    routes = methods(LOGS, LogCommands(LogPlace(file, None), clock))
    async with open_house(methods=routes) as house:
        client = await house.client()
        await client.send("_agentd/logs/follow", {"after": ""})
        await client.until("_agentd/log")
        async with asyncio.timeout(10):
            while not clock.sleeping:
                await asyncio.sleep(0.001)
        await client.close()
        await house.settle(0)
        assert not clock.sleeping


async def test_the_journals_unit_is_named_when_the_log_is_there() -> None:
    unit = Unit("agentd.service", is_users=True)
    logs = methods(LOGS, LogCommands(LogPlace(None, unit), FakeClock()))["_agentd/logs"]
    assert await logs({}, None) == {
        "records": [],
        "journal": {"name": "agentd.service", "is_users": True},
    }


async def test_a_log_that_only_a_terminal_shows_is_refused_with_a_cure() -> None:
    logs = methods(LOGS, LogCommands(LogPlace(None, None), FakeClock()))["_agentd/logs"]
    with pytest.raises(AgentdError) as caught:
        await logs({}, None)
    assert "agentd up" in caught.value.cure
