"""A resource of a server that the owner names in a message, from his client to the model."""

from __future__ import annotations

import json
import sys

import pytest

from tests.e2e.harness import Client, Home, Refused
from tests.mcp.test_sdk_server import PROGRAM
from tests.waiting import until, until_told


async def reader(home: Home) -> Client:
    """The owner's client of a daemon that knows the server."""
    command = json.dumps([sys.executable, "-W", "ignore", PROGRAM])
    home.configure(f"[mcp.servers.notes]\ncommand = {command}\n")
    daemon = await home.start()
    client = await daemon.connect()

    async def servers() -> object:
        return (await client.call("_agentd/resources"))["servers"]

    await until_told(servers, "the server's resources are known")
    return client


async def test_what_is_named_goes_along_and_taints(home: Home) -> None:
    client = await reader(home)
    client.chooses = "allow_once"
    text = "say seen @notes:note://today"
    assert (await client.say(text, "m1")).startswith("seen @notes:note://today")
    row = (await client.export())[0]
    (block,) = row["content"]
    assert block["text"].startswith(f"{text}\n\n@notes:note://today\n")
    assert "buy milk" in block["text"]
    assert "buy milk" in json.dumps(home.requests()[-1]["messages"])
    assert "Attach a resource of notes" in json.dumps(client.asked[0])
    assert "goes along" in "".join(client.lines)
    # what came along is text from outside: a tool that would change something is asked about now
    write = {"target": "memory/new.md", "content": "x"}
    await client.say(f"do use memory_write {json.dumps(write)}; say done", "m2")
    assert "text from outside" in json.dumps(client.asked[1])


async def test_a_message_can_be_taken_back_while_the_owner_is_asked(home: Home) -> None:
    client = await reader(home)
    client.chooses = ""
    other = await home.daemons[0].connect()
    other.answers = False
    await other.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    said = other.prompt("say seen @notes:note://today", "m1")
    await until(lambda: other.asked, "the owner is asked")
    other.notify("session/cancel", {"sessionId": "main"})
    assert (await said)["stopReason"] == "cancelled"
    assert await client.export() == []
    assert await other.say("say still here", "m2") == "still here"


async def test_what_a_server_offers_is_listed(home: Home) -> None:
    client = await reader(home)
    assert (await client.call("_agentd/resources")) == {
        "server": "",
        "servers": ["notes"],
        "resources": [],
    }
    found = await client.call("_agentd/resources", {"server": "notes"})
    assert found["resources"] == [{"uri": "note://today", "name": "today"}]
    with pytest.raises(Refused, match="no server 'nobody' offers resources"):
        await client.call("_agentd/resources", {"server": "nobody"})
