"""A server that asks the owner in the middle of a call, from the model's call to his client and
back.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.e2e.harness import Client, Home
from tests.mcp.test_forms import PROGRAM
from tests.waiting import until_told

BOOK = 'do use tables__book {"day": "Friday"}; say done'


async def reader(home: Home, can: dict[str, object]) -> Client:
    """A client, with what it can do, of a daemon that knows the server and may call it."""
    command = json.dumps([sys.executable, "-W", "ignore", PROGRAM])
    home.configure(
        f'[mcp.servers.tables]\ncommand = {command}\npermission = "allow"\nsilent = ["book"]\n'
    )
    daemon = await home.start()
    client = await daemon.connect()
    await client.call("initialize", {"protocolVersion": 1, "clientCapabilities": can})

    async def tools() -> object:
        return (await client.call("_agentd/status"))["mcp"][0]["tools"]

    await until_told(tools, "the server's tools are known")
    return client


async def test_what_the_owner_fills_in_reaches_the_server(home: Home) -> None:
    client = await reader(home, {"elicitation": {"form": {}}})
    client.fills = {"action": "accept", "content": {"name": "Ann", "guests": 3}}
    assert await client.say(BOOK, "m1") == "done"
    told = json.dumps(home.requests()[-1]["messages"])
    assert "accept {'name': 'Ann', 'guests': 3, 'room': 'inside', 'window': False}" in told
    (form,) = client.forms
    assert form["message"] == "The server tables asks:\nA table for Friday?"
    assert form["mode"] == "form"


@pytest.mark.parametrize("can", [{}, {"elicitation": {"url": {}}}])
async def test_where_no_form_is_shown_the_server_hears_so(home: Home, can: dict) -> None:
    client = await reader(home, can)
    assert await client.say(BOOK, "m1") == "done"
    assert "Declined: nobody is there" in json.dumps(home.requests()[-1]["messages"])
    assert client.forms == []


async def test_a_beat_asks_nobody(home: Home) -> None:
    client = await reader(home, {"elicitation": {"form": {}}})
    client.fills = {"action": "accept", "content": {"name": "Ann"}}
    await client.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    entry = BOOK.replace("do ", 'do use look {"entry": "do use"}; ')
    (home.workspace / "HEARTBEAT.md").write_text(f"- [ ] {entry}\n")
    await client.call("_agentd/heartbeat/run", {"force": True})
    assert "Declined: nobody is there" in json.dumps(home.requests()[-1]["messages"])
    assert client.forms == []
