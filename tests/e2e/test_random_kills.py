"""Daemons that are killed at random times, over and over, while they are talked to."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.harness import Client, Daemon, Home, ModelServer, Refused, a_home, texts

# In every run, for each wire. What is said to be there too early is found lost within six lives.
LIVES, HOMES = 25, 2
LONG_LIVES, LONG_HOMES, BLOCKS = 75, 4, 17  # in the long proof, for each wire
SESSIONS = ("main", "chat:side")


@dataclass
class Talk:
    """All that was said to one home, and what its daemons have accepted."""

    home: Home
    chance: random.Random
    said: dict[str, tuple[str, str]] = field(default_factory=dict)  # id to session and text
    accepted: set[str] = field(default_factory=set)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def speak(self, client: Client) -> asyncio.Future[object]:
        """Send a new message somewhere."""
        number = next(self._numbers)
        session = self.chance.choice(SESSIONS)
        text = f"three {' '.join(f'w{number}{letter}' for letter in 'abc')}"
        self.said[f"m{number}"] = (session, text)
        return client.prompt(text, f"m{number}", session)

    async def live(self) -> None:
        """One life: some messages, perhaps a compaction, and a kill after a few answers."""
        daemon = await self.home.start()
        client = await connected(daemon)
        answers = [self.speak(client) for _ in range(3)]
        if self.chance.random() < 0.2:
            client.start("_agentd/sessions/compact", {"key": "main"})
        wanted = self.chance.randrange(4)
        try:
            async with asyncio.timeout(8 * self.chance.random()):
                while sum(answer.done() for answer in answers) < wanted:
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pass  # then it is killed before it has answered
        await asyncio.sleep(0.05 * self.chance.random())
        self.accepted |= client.accepted
        await daemon.kill()
        self.accepted |= client.accepted

    async def verify(self, *excuses: str) -> int:
        """In a last life everything that was accepted is done, once, or has ended with a failure
        that is said and excused. Returns how much was given up.
        """
        daemon = await self.home.start()
        client = await connected(daemon)
        async with asyncio.timeout(60):
            while any(s["busy"] for s in (await client.call("_agentd/status"))["sessions"]):
                await asyncio.sleep(0.05)
        rows = {key: await whole(client, key) for key in SESSIONS}
        users = {key: texts(rows[key], "user") for key in SESSIONS}
        notes = self.home.notes()
        given_up = 0
        for message_id, (session, text) in self.said.items():
            times = [notes.count(f"] {word}\n") for word in text.split()[1:]]
            assert max(times) <= 1, f"{message_id} was done twice"
            assert users[session].count(text) <= 1, f"{message_id} stands twice in the transcript"
            if message_id in self.accepted:
                assert users[session].count(text) == 1, f"{message_id} is lost"
                outcome = await outcome_of(client, session, text, message_id)
                assert outcome in ("done", "crashed_repeatedly", *excuses), outcome
                # The model was told, so that it is no fault of the daemon's.
                told = failures(rows[session])
                missing = {w for w, n in zip(text.split()[1:], times, strict=True) if not n}
                assert outcome != "done" or missing <= told, f"{message_id} was half done"
                given_up += outcome != "done"
        await daemon.stop()
        return given_up


def failures(rows: list[dict[str, Any]]) -> set[str]:
    """What tools were asked to write and have answered that they could not."""
    blocks = [block for row in rows for block in row["content"]]
    failed = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result" and b.get("is_error")}
    uses = (block for block in blocks if block["type"] == "tool_use")
    return {str(use["input"].get("content")) for use in uses if use["id"] in failed}


async def connected(daemon: Daemon) -> Client:
    """A client, in both sessions."""
    client = await daemon.connect()
    place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": SESSIONS[1]}}
    await client.call("session/new", place)
    return client


async def whole(client: Client, key: str) -> list[dict[str, Any]]:
    """All pages of a transcript."""
    rows: list[dict[str, Any]] = []
    first: int | None = 1
    while first:
        page = await client.call("_agentd/sessions/export", {"key": key, "first": first})
        rows += page["lines"]
        first = page["next"]
    return rows


async def outcome_of(client: Client, session: str, text: str, message_id: str) -> str:
    """The answer, or the code of the failure."""
    try:
        return await client.say(text, message_id, session)
    except Refused as refusal:
        return refusal.code


async def killed_often(
    model: ModelServer, seeds: range, lives: int, wire: str = "anthropic"
) -> tuple[int, int]:
    """How many messages were accepted in so many lives of a home for each seed, all at once, and
    how many of them were given up.
    """

    async def killed(seed: int) -> tuple[int, int]:
        async with a_home(model, wire=wire) as home:
            talk = Talk(home, random.Random(seed))
            for _ in range(lives):
                await talk.live()
            return len(talk.accepted), await talk.verify()

    told = await asyncio.gather(*(killed(seed) for seed in seeds))
    accepted, given_up = (sum(column) for column in zip(*told, strict=True))
    return accepted, given_up


@pytest.mark.timeout(300)
@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_a_hundred_random_kills_lose_nothing(model: ModelServer, wire: str) -> None:
    accepted, _ = await killed_often(model, range(1000, 1000 + HOMES), LIVES, wire)
    assert accepted > HOMES * LIVES / 2


@pytest.mark.torture
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_ten_thousand_random_kills_lose_nothing(
    model: ModelServer, wire: str, block: int
) -> None:
    seeds = range(block * LONG_HOMES, (block + 1) * LONG_HOMES)
    accepted, given_up = await killed_often(model, seeds, LONG_LIVES, wire)
    assert accepted > LONG_HOMES * LONG_LIVES
    assert given_up < accepted / 10


def without_a_message(home: Home) -> None:
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
        assert db.execute("DELETE FROM rows WHERE role = 'user' AND seq = 1").rowcount


def with_a_line_twice(home: Home) -> None:
    note = next((home.workspace / "memory").glob("2*.md"))
    lines = note.read_text("utf-8").splitlines(keepends=True)
    doubled = next(line for line in lines if re.search(r"\] w\d+a$", line))
    note.write_text("".join([*lines, doubled]), "utf-8")


@pytest.mark.parametrize(
    ("harm", "found"),
    [(without_a_message, "is lost"), (with_a_line_twice, "was done twice")],
)
async def test_what_is_lost_or_doubled_would_be_found(
    model: ModelServer, harm: Callable[[Home], None], found: str
) -> None:
    async with a_home(model) as home:
        talk = Talk(home, random.Random(1))
        daemon = await home.start()
        client = await connected(daemon)
        await asyncio.gather(*(talk.speak(client) for _ in range(4)))
        talk.accepted |= client.accepted
        await daemon.kill()
        harm(home)
        with pytest.raises(AssertionError, match=found):
            await talk.verify()
