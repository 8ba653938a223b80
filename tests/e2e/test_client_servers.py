"""Servers of tools that an editor brings along."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.harness import Client, Home
from tests.mcp.servers import ROGUE
from tests.waiting import until, until_told

Json = dict[str, Any]


def offer(home: Home, name: str = "rogue", **others: Any) -> Json:
    env = [{"name": "ROGUE_LOG", "value": str(log(home))}]
    return {"name": name, "command": sys.executable, "args": [ROGUE], "env": env, **others}


def log(home: Home) -> Path:
    return home.root / "rogue.log"


async def opened(client: Client, *offers: Any, **more: Any) -> str:
    """A new session with these servers on offer."""
    made = await client.call("session/new", {"cwd": "/", "mcpServers": list(offers), **more})
    return str(made["sessionId"])


def told(client: Client) -> str:
    return "".join(line for line in client.lines if "mcp_servers" in line)


async def names(client: Client) -> list[str]:
    return [one["name"] for one in (await client.call("_agentd/status"))["mcp"] if one["tools"]]


async def test_after_a_yes_they_are_used_in_that_session_alone(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    client.chooses = "allow_once"
    key = await opened(client, offer(home))

    async def is_used() -> bool:
        return await names(client) == ["rogue"]

    await until_told(is_used, "the server that was offered is used")
    question = json.dumps(client.asked[0])
    assert "for this conversation alone" in question
    assert "rogue.py" in question
    assert "variables: ROGUE_LOG" in question
    assert "are used, asked call by call" in told(client)
    use = 'do use rogue__echo {"text": "hello"}; say done'
    assert await client.say(use, "m1", key) == "done"
    assert len(client.asked) == 2
    assert 'call echo {"text": "hello"}' in log(home).read_text()
    await client.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    assert await client.say(use, "m2") == "done"
    assert "rogue__echo" not in json.dumps(home.requests()[-1]["tools"])
    assert log(home).read_text().count("call echo") == 1
    again = {"sessionId": key, "cwd": "/", "mcpServers": [offer(home)]}
    await client.call("session/load", again)
    assert await client.say("say still here", "m3", key) == "still here"
    assert len(client.asked) == 2  # the same servers, in the same session
    await daemon.stop()


async def test_without_a_yes_nothing_is_started(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    client.chooses = "reject_once"
    key = await opened(client, offer(home))
    await until(lambda: "you did not allow it" in told(client), "the client hears of it")
    assert await client.say("say hello", "m1", key) == "hello"
    assert not log(home).exists()
    assert await names(client) == []
    await daemon.stop()


async def test_what_cannot_be_taken_is_told_and_not_asked_about(home: Home) -> None:
    command = json.dumps([sys.executable, ROGUE])
    home.configure(f"[mcp.servers.own]\ncommand = {command}\n")
    daemon = await home.start()
    client = await daemon.connect()
    await opened(
        client,
        offer(home, "own"),
        offer(home, "Not A Name"),
        {"type": "http", "name": "far", "url": "http://127.0.0.1:9/mcp", "headers": []},
        offer(home, "odd", args="x"),
        offer(home, "none", command=""),
        offer(home, "mixed", args=["x", 1]),
        offer(home, "vars", env={"A": "b"}),
        offer(home, "long", args=["x" * 5000]),
    )
    await until(lambda: "too long to be shown" in told(client), "the client hears of it")
    for words in (
        "a configured server has its name",
        "24 small letters",
        "only programs on standard",
        "variables are none",
    ):
        assert words in told(client)
    assert client.asked == []
    await daemon.stop()


async def test_groups_have_none_of_them(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await opened(client, offer(home), _meta={"agentd/key": "group:club"})
    await until(lambda: "are not used here" in told(client), "the client hears of it")
    assert client.asked == []
    await daemon.stop()
