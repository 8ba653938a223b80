"""The model's service is away: messages wait over restarts, and programs fail as they ask to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.harness import Client, Gone, Home, ModelServer, Refused, a_home, texts
from tests.waiting import until


@pytest.fixture
async def home(model: ModelServer) -> AsyncIterator[Home]:
    """One whose daemon makes each call once."""
    async with a_home(model, "tries = 1\n") as home:
        yield home


async def _send(home: Home, *arguments: str) -> tuple[int, Any]:
    """`agentd send`: its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentd", "send", *arguments, "--json"),
        env=home.environ(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, json.loads(output)


def _waits(client: Client) -> list[Any]:
    """What the client was told of waiting: words, and marks for programs."""
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in client.lines]
    marks = [update.get("_meta", {}) for update in updates]
    words = [
        update["content"]["text"]
        for update, mark in zip(updates, marks, strict=True)
        if mark.get("agentd/notice") == "waiting"
    ]
    return [words, [m["agentd/retry"] for m in marks if "agentd/retry" in m]]


async def _is_waiting(client: Client, session: str) -> bool:
    status = await client.call("_agentd/status")
    found = {row["key"]: row for row in status["sessions"]}
    return bool(found.get(session, {}).get("state") == "waiting")


async def test_a_message_waits_for_the_service_over_a_stop_and_a_kill(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("write before", "m0") == "done"
    waiting = client.prompt("flaky 529", "m1")
    behind = client.prompt("write after", "m2")
    await until(lambda: _waits(client)[0], "the client is told")
    words, (mark, *_) = _waits(client)
    assert "overloaded" in words[0]
    assert (mark["state"], mark["reason"]) == ("waiting", "provider_overloaded")
    assert mark["seconds"] > 20
    status = await client.call("_agentd/status")
    (row,) = [row for row in status["sessions"] if row["key"] == "main"]
    assert (row["state"], row["busy"]) == ("waiting", False)
    assert "service_away" in [problem["code"] for problem in status["problems"]]
    await daemon.kill()
    for answer in (waiting, behind):
        with pytest.raises((Refused, Gone)):
            await answer
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("flaky 529", "m1") == "after 529"
    assert await client.say("write after", "m2") == "done"
    rows = await client.export()
    assert texts(rows, "user") == ["write before", "flaky 529", "write after"]
    assert await daemon.stop() < 20


async def test_what_waits_is_cancelled_at_once_and_programs_do_not_wait(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("say hello", "m0") == "hello"
    first = client.prompt("fail 529", "m1")
    second = client.prompt("fail 503", "m2")
    await until(lambda: _waits(client)[0], "the client is told")
    code, told = await _send(home, "fail 503", "--session", "chat:program")
    assert (code, told["error"]["code"]) == (1, "provider_overloaded")
    assert not await _is_waiting(client, "chat:program")
    code, told = await _send(home, "fail 503", "--session", "chat:program", "--wait", "1s")
    assert code == 1
    assert "has waited 1s" in told["error"]["message"]
    client.notify("session/cancel", {"sessionId": "main"})
    assert (await first)["stopReason"] == "cancelled"
    await until(lambda: len(_waits(client)[0]) > 1, "the second one waits")
    client.notify("session/cancel", {"sessionId": "main"})
    assert (await second)["stopReason"] == "cancelled"
    assert await client.say("say third", "m3") == "third"
    await daemon.stop()
