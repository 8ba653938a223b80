"""Stops, restarts and refusals of the real process."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.e2e.harness import Client, Gone, Home, Refused, texts
from tests.waiting import until

STOP_SECONDS = 20.0  # on a busy machine; the stalled answer would take for ever


async def test_a_stop_during_a_stalled_answer_is_quick_and_the_turn_goes_on_later(
    home: Home,
) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.say("write before", "m0")
    running = client.prompt("hang up", "m1")
    waiting = client.prompt("write after", "m2")
    await client.wait_accepted("m1", "m2")
    await until(lambda: _asked(home, "hang up"), "the model is asked")
    before = len(home.requests())
    assert await daemon.stop() < STOP_SECONDS
    assert len(home.requests()) == before, "the model was asked after the stop"
    for answer in (running, waiting):
        with pytest.raises((Refused, Gone)) as refusal:
            await answer
        assert getattr(refusal.value, "code", "shutting_down") == "shutting_down"
    daemon = await home.start()
    client = await daemon.connect()
    assert await client.say("hang up", "m1") == "hung up"
    assert await client.say("write after", "m2") == "done"
    rows = await client.export()
    assert texts(rows, "user") == ["write before", "hang up", "write after"]
    assert texts(rows, "assistant").count("hung up") == 1
    assert home.notes().count("] after\n") == home.notes().count("] before\n") == 1
    assert await daemon.stop() < STOP_SECONDS


async def test_what_came_from_a_resource_is_known_after_a_kill(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    blocks = [
        {"type": "text", "text": "hang up, and look at this: "},
        {"type": "resource", "resource": {"uri": "file:///mail", "text": "I live in Rome."}},
        {"type": "text", "text": "I do not.", "_meta": {"agentd/paste": [[0, 1]]}},
    ]
    meta = {"agentd/messageId": "m1"}
    client.start("session/prompt", {"sessionId": "main", "prompt": blocks, "_meta": meta})
    await client.wait_accepted("m1")
    await daemon.kill()
    daemon = await home.start()
    client = await daemon.connect()
    rows = await client.export()
    while not rows:  # the turn runs again once the daemon is ready
        rows = await client.export()
    (block,) = rows[0]["content"]
    (start, end), *others = block["quoted"]
    assert others == []
    assert block["text"][start:end] == "\nfile:///mail\n```\nI live in Rome.\n```\nI"
    assert block["text"] == f"{blocks[0]['text']}{block['text'][start:end]} do not."
    assert (rows[0]["tainted"], rows[0]["writer"]) == (True, "owner")
    await daemon.stop()


async def _outcome(client: Client, text: str, message_id: str) -> str:
    """The answer to a message, or the code of its failure."""
    try:
        return await client.say(text, message_id)
    except Refused as refusal:
        return refusal.code


def _asked(home: Home, words: str) -> bool:
    return any(words in str(body["messages"][-1]) for body in home.requests())


async def test_a_second_daemon_leaves_the_first_one_alone(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.say("write one", "m1")
    files = _files(home)
    second = await home.start()
    assert await second.died() == 75
    assert _files(home) == files
    assert await client.say("say still here", "m2") == "still here"
    again = await daemon.connect()
    assert await again.say("say for all", "m3") == "for all"
    await daemon.stop()


def _files(home: Home) -> dict[str, bytes]:
    """Every file that the running daemon does not change by itself: it goes on logging and
    indexing what was just said.
    """
    moving = ("stderr", "index.db", "state.db-shm")
    return {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and not path.name.startswith(moving) and path.suffix != ".log"
    }


async def test_a_wrong_configuration_ends_it_before_it_touches_anything(home: Home) -> None:
    home.configure("[heartbeat]\ninterval = 'soon'\n[nonsense]\nx = 1\n")
    daemon = await home.start()
    assert await daemon.died() == 78
    told = home.complaints()
    assert "heartbeat.interval" in told
    assert "nonsense" in told
    assert {path.name for path in home.root.iterdir()} == {"config.toml", "stderr"}


@pytest.mark.timeout(150)
async def test_what_was_accepted_is_answered_after_a_kill_at_any_moment(home: Home) -> None:
    chance = random.Random(20261121)
    accepted: set[str] = set()
    for life in range(4):  # eight messages in all: fewer than may wait for one session
        daemon = await home.start()
        client = await daemon.connect()
        for number in range(2):
            client.prompt(
                f"three w{life}x{number}a w{life}x{number}b w{life}x{number}c", f"m{life}-{number}"
            )
        await until(lambda c=client: c.accepted, "something is accepted")
        await asyncio.sleep(chance.random() * (0.2 if life % 2 else 3.0))
        accepted |= client.accepted
        await daemon.kill()
    daemon = await home.start()
    client = await daemon.connect()
    async with asyncio.timeout(30):
        while any(s["busy"] for s in (await client.call("_agentd/status"))["sessions"]):
            await asyncio.sleep(0.05)
    rows = await client.export()
    said = texts(rows, "user")
    assert len(said) == len(set(said)), "a message stands twice in the transcript"
    notes = home.notes()
    for message_id in sorted(accepted):
        life, number = message_id[1:].split("-")
        text = f"three w{life}x{number}a w{life}x{number}b w{life}x{number}c"
        assert said.count(text) == 1, f"{message_id} was accepted and is lost"
        asked = len(home.requests())
        outcome = await _outcome(client, text, message_id)
        assert len(home.requests()) == asked, "an answered message was asked about again"
        times = [notes.count(f"] w{life}x{number}{letter}\n") for letter in "abc"]
        assert times == [1, 1, 1] or (outcome == "crashed_repeatedly" and max(times) <= 1), notes
    await daemon.stop()
