"""Daemons that are killed at random times while everything they do goes on: messages, pictures,
facts read out of conversations, beats, jobs, the graph's export, backups.

What was acknowledged is there in the end, once. The control takes something of it away, or doubles
it, and the same look at it finds that.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import random
import re
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agentd.testing import PNG
from tests.e2e.harness import (
    PATIENCE,
    Client,
    Daemon,
    Gone,
    Home,
    ModelServer,
    Refused,
    a_home,
    texts,
)
from tests.e2e.test_random_kills import connected, outcome_of, whole

HOMES, LIVES = 4, 60
EXEC_EVERY = 5  # lives: such a daemon is a process of its own from the start, all others are forked
SETTINGS = """
[facts]
idle = "1s"
[jobs]
min_interval = "1s"
[heartbeat]
active_hours_start = "00:00"
active_hours_end = "24:00"
session = "chat:side"
"""
PULSE = "- [ ] do write pulse; say HEARTBEAT_OK\n"
MARK = "(?: <!-- agentd: origin=untrusted -->)?"  # of what a turn writes that has seen a picture
FACT = "The user's {thing} is {value}."
KINDS = ("words", "fact", "picture")

Json = dict[str, Any]


@dataclass
class Day:
    """All that was asked of one home, and what its daemons have acknowledged."""

    home: Home
    chance: random.Random
    said: dict[str, str] = field(default_factory=dict)  # id to text
    pictures: dict[str, str] = field(default_factory=dict)  # id to digest
    # Job to text, of those that were acknowledged.
    reminders: dict[int, str] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    backups: list[Path] = field(default_factory=list)  # those that were acknowledged
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def begin(self) -> None:
        """A home with something to do by itself."""
        self.home.furnish()
        (self.home.workspace / "HEARTBEAT.md").write_text(PULSE)
        daemon = await self.home.start()
        client = await connected(daemon)
        await client.call("_agentd/jobs/add", {"text": "water the plants", "every": "1s"})
        await daemon.kill()

    async def live(self, number: int) -> None:
        """One life: some of everything, and a kill at any time."""
        is_own = number % EXEC_EVERY == 0
        daemon = await (self.home.start_alone() if is_own else self.home.start())
        with suppress(Gone, Refused):
            await self._spend(daemon)
        self._keep(self.home.clients[-1])
        await daemon.kill()
        self._keep(self.home.clients[-1])

    async def _spend(self, daemon: Daemon) -> None:
        client = await daemon.connect()
        answers = [self.speak(client, self.chance.choice(KINDS)) for _ in range(3)]
        asked = self._ask(client)
        wanted = self.chance.randrange(len(answers) + 1)
        with suppress(TimeoutError):
            async with asyncio.timeout(4 * self.chance.random()):
                while sum(answer.done() for answer in answers) < wanted:
                    await asyncio.sleep(0.005)
        await asyncio.sleep(0.3 * self.chance.random())
        for noted, answer in asked:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                noted(answer.result())

    def _keep(self, client: Client) -> None:
        self.accepted |= client.accepted

    def speak(self, client: Client, kind: str) -> asyncio.Future[Any]:
        """Send a message of that kind."""
        number = next(self._numbers)
        message_id = f"m{number}"
        text = f"three {' '.join(f'w{number}{letter}' for letter in 'abc')}"
        if kind == "fact":
            text = f"my thing{number} is value{number}"
        self.said[message_id] = text
        if kind != "picture":
            return client.prompt(text, message_id)
        data = PNG + f"picture {number}".encode()
        self.pictures[message_id] = sha256(data).hexdigest()
        image = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
        prompt = [image, {"type": "text", "text": text}]
        meta = {"agentd/messageId": message_id}
        return client.start(
            "session/prompt", {"sessionId": "main", "prompt": prompt, "_meta": meta}
        )

    def _ask(self, client: Client) -> list[tuple[Callable[[Any], None], asyncio.Future[Any]]]:
        """What is asked beside conversations, each with what its answer is noted by."""
        number = next(self._numbers)
        bell, file = f"ring {number}", self.home.root / f"b{number}.tar.gz"
        asked: list[tuple[str, Json, Callable[[Any], None]]] = [
            ("heartbeat/run", {"force": True}, lambda _: None),
            ("facts/export-graph", {}, lambda _: None),
            ("sessions/flush", {"key": "main"}, lambda _: None),
            (
                "jobs/add",
                {"text": bell, "in": "1s"},
                lambda job: self.reminders.update({job["id"]: bell}),
            ),
            ("backup", {"file": str(file)}, lambda _: self.backups.append(file)),
        ]
        chosen = [one for one in asked if self.chance.random() < 0.5]
        return [
            (noted, client.start(f"_agentd/{method}", params)) for method, params, noted in chosen
        ]

    async def verify(self) -> int:
        """In a last life all that was acknowledged is done, once. Returns how many messages
        were.
        """
        daemon = await self.home.start()
        try:
            client = await daemon.connect()
            async with asyncio.timeout(2 * PATIENCE):
                while not await self._is_done(client):
                    await asyncio.sleep(0.1)
            await self._check_messages(client)
            await self._check_facts(client)
            await self._check_pictures(client)
            await self._check_schedule(client)
            await self._check_graph(client)
        finally:
            await daemon.stop()
        for file in self.backups:
            check_archive(file)
        return len(self.accepted)

    async def _is_done(self, client: Client) -> bool:
        """Whether nothing runs, waits or is to be read any more."""
        status = await client.call("_agentd/status")
        is_busy = any(session["busy"] or session["queued"] for session in status["sessions"])
        history = (await client.call("_agentd/jobs/history", {"limit": 1000}))["runs"]
        rung = {run["job"] for run in history if run["outcome"]}
        return not is_busy and not status["facts"]["waiting"] and self.reminders.keys() <= rung

    async def _check_messages(self, client: Client) -> None:
        users = texts(await whole(client, "main"), "user")
        notes = self.home.notes()
        for message_id, text in self.said.items():
            words = text.split()[1:] if text.startswith("three ") else []
            times = [len(re.findall(rf"\] {word}{MARK}\n", notes)) for word in words]
            assert max(times, default=0) <= 1, f"{message_id} was done twice"
            assert users.count(text) <= 1, f"{message_id} stands twice in the transcript"
            if message_id in self.accepted:
                assert users.count(text) == 1, f"{message_id} is lost"
                outcome = await outcome_of(client, "main", text, message_id)
                assert outcome == "crashed_repeatedly" or min(times, default=1) == 1, message_id

    async def _check_facts(self, client: Client) -> None:
        told = (await client.call("_agentd/facts/list", {}))["facts"]
        known = Counter(fact["text"] for fact in told)
        page = (self.home.workspace / "memory" / "facts.md").read_text("utf-8")
        for message_id, text in self.said.items():
            found = re.fullmatch(r"my (thing\d+) is (value\d+)", text)
            if found and message_id in self.accepted:
                sentence = FACT.format(thing=found[1], value=found[2])
                assert known[sentence] == 1, f"{sentence!r} is known {known[sentence]} times"
                assert page.count(sentence) == 1, (
                    f"{sentence!r} stands {page.count(sentence)} times"
                )

    async def _check_pictures(self, client: Client) -> None:
        rows = await whole(client, "main")
        blocks = [block for row in rows for block in row["content"]]
        shown = Counter(block["sha256"] for block in blocks if block["type"] == "image")
        for message_id in self.accepted & self.pictures.keys():
            assert shown[self.pictures[message_id]] == 1, (
                f"the picture of {message_id} is not there"
            )
        files = (self.home.root / "state" / "blobs").glob("*/*")
        kept = {file.name: sha256(file.read_bytes()).hexdigest() for file in files}
        assert all(name == digest for name, digest in kept.items()), "the bytes are others"
        assert kept.keys() == shown.keys(), "pictures and messages do not belong together"

    async def _check_schedule(self, client: Client) -> None:
        runs = (await client.call("_agentd/jobs/history", {"limit": 1000}))["runs"]
        slots = Counter((run["job"], run["due"]) for run in runs if run["due"] is not None)
        assert max(slots.values(), default=1) == 1, "a slot was used twice"
        alerts = (await client.call("_agentd/alerts/list", {"limit": 500}))["alerts"]
        put = Counter(alert["text"] for alert in alerts)
        for text in self.reminders.values():
            assert put[text] == 1, f"{text!r} was put {put[text]} times"
        beats = (await client.call("_agentd/heartbeat/history", {"limit": 1000}))["runs"]
        done = sum(beat["outcome"] == "quiet" and beat["reason"] == "ack" for beat in beats)
        ran = sum(beat["outcome"] in {"quiet", "failed", "alert"} for beat in beats)
        wrote = self.home.notes().count("] pulse <!-- agentd: origin=heartbeat -->\n")
        assert done <= wrote <= ran, f"{done} beats done, {ran} begun, {wrote} wrote"

    async def _check_graph(self, client: Client) -> None:
        await client.call("_agentd/facts/export-graph")
        files = (self.home.workspace / "memory" / "graph").glob("*.0")
        text = "".join(file.read_text("utf-8") for file in files)
        for said in self.said.values():
            if (found := re.fullmatch(r"my thing\d+ is (value\d+)", said)) is not None:
                assert text.count(f'"label": "{found[1]}"') <= 1, f"{found[1]} is there twice"
        checks = (await client.call("_agentd/doctor"))["checks"]
        assert not [check for check in checks if check["level"] == "fail"], checks


def check_archive(file: Path) -> None:
    """AssertionError if a backup that was acknowledged is not whole."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
        except (EOFError, tarfile.TarError, zlib.error) as error:
            raise AssertionError(f"{file.name} is not whole") from error
        (state,) = Path(folder).rglob("state.db")
        with closing(sqlite3.connect(state)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def spent(day: Day, lives: int) -> int:
    """How many messages were acknowledged in so many lives."""
    await day.begin()
    for number in range(1, lives + 1):
        await day.live(number)
    return await day.verify()


@pytest.mark.timeout(240)
async def test_a_few_lives_of_everything_lose_and_double_nothing(model: ModelServer) -> None:
    async with a_home(model, SETTINGS) as home:
        assert await spent(Day(home, random.Random(5)), 5)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(HOMES))
async def test_many_lives_of_everything_lose_and_double_nothing(
    model: ModelServer, seed: int
) -> None:
    async with a_home(model, SETTINGS) as home:
        assert await spent(Day(home, random.Random(seed)), LIVES) > LIVES / 2


def without_a_message(home: Home) -> None:
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
        row = "SELECT turn_id FROM rows WHERE opens_turn = 1 AND turn_id IS NOT NULL LIMIT 1"
        db.execute("PRAGMA foreign_keys = ON")
        assert db.execute(f"DELETE FROM turns WHERE id = ({row})").rowcount == 1


def with_a_note_twice(home: Home) -> None:
    note = next(file for file in (home.workspace / "memory").glob("2*.md"))
    line = next(
        line
        for line in note.read_text("utf-8").splitlines()
        if re.search(rf"\] w\d+a{MARK}$", line)
    )
    with note.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def without_a_fact(home: Home) -> None:
    page = home.workspace / "memory" / "facts.md"
    lines = page.read_text("utf-8").splitlines(keepends=True)
    gone = next(line for line in lines if "thing" in line)
    page.write_text("".join(line for line in lines if line != gone), "utf-8")


def with_other_bytes(home: Home) -> None:
    picture = next((home.root / "state" / "blobs").glob("*/*"))
    picture.write_bytes(picture.read_bytes()[:-1] + b"!")


def without_a_pulse(home: Home) -> None:
    for note in (home.workspace / "memory").glob("2*.md"):
        lines = note.read_text("utf-8").splitlines(keepends=True)
        note.write_text("".join(line for line in lines if "] pulse" not in line), "utf-8")


def without_an_alert(home: Home) -> None:
    with closing(sqlite3.connect(home.root / "state" / "state.db")) as db, db:
        db.execute("PRAGMA foreign_keys = ON")
        assert db.execute("DELETE FROM alerts WHERE text = 'ring'").rowcount == 1


def with_half_a_backup(home: Home) -> None:
    file = home.root / "half.tar.gz"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


HARMS = {
    without_a_message: "is lost|stands 0 times|not there|known 0 times",
    with_a_note_twice: "was done twice",
    without_a_fact: "is known 0 times",
    with_other_bytes: "the bytes are others",
    without_a_pulse: r"1 beats done, \d begun, 0 wrote",
    without_an_alert: "'ring' was put 0 times",
    with_half_a_backup: "is not whole",
}


async def harmed(day: Day, harm: Callable[[Home], None]) -> str:
    """What is found of a copy of that home to which the harm was done; "" for nothing."""
    root = Path(tempfile.mkdtemp(prefix="ah-"))
    copy = Home(root, day.home.model, day.home.name)
    try:
        shutil.copytree(day.home.root, root, dirs_exist_ok=True)
        harm(copy)
        backups = [root / file.name for file in day.backups]
        await replace(day, home=copy, backups=backups).verify()
    except AssertionError as found:
        return str(found)
    finally:
        await copy.close()
        shutil.rmtree(root)
    return ""


@pytest.mark.timeout(300)
async def test_what_is_lost_doubled_or_changed_would_be_found(model: ModelServer) -> None:
    async with a_home(model, SETTINGS) as home:
        day = Day(home, random.Random(1))
        await day.begin()
        daemon = await home.start()
        client = await daemon.connect()
        await asyncio.gather(*(day.speak(client, kind) for kind in KINDS))
        day.accepted |= client.accepted
        bell = await client.call("_agentd/jobs/add", {"text": "ring", "in": "1s"})
        day.reminders[bell["id"]] = "ring"
        assert (await client.call("_agentd/heartbeat/run", {"force": True}))["outcome"] == "quiet"
        day.backups.append(home.root / "half.tar.gz")
        await client.call("_agentd/backup", {"file": str(day.backups[0])})
        await daemon.stop()
        assert await day.verify() == len(KINDS)
        found = {harm: await harmed(day, harm) for harm in HARMS}
        assert not await harmed(day, lambda home: None)
    for harm, words in HARMS.items():
        assert re.search(words, found[harm]), (harm.__name__, found[harm])
