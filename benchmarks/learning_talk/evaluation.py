"""The talk, held with a daemon in a process of its own, and what the daemon makes of it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.household import Client, Daemon, first_answer, folder, launch, stop, with_model
from benchmarks.learning_talk.script import Plant, Script, Turn

OFFLINE = '[provider]\nkind = "offline"\n'
SOON = 60.0  # seconds in which a forgotten word is to be gone

_SETTINGS = '[agent]\ntimezone = "UTC"\n[facts]\nidle = "1s"\n[heartbeat]\nenabled = false\n'
_AT_ONCE = 4
_FIRST = 5
_HITS = 10
_PATIENCE = 300.0
_LEAST_FILES = 5

Json = dict[str, Any]


@dataclass
class Outcome:
    """What was found; the lists name what went wrong."""

    facts: int = 0
    true: int = 0
    twice: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    stale_hits: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # stale, and told to rules in a form held out
    kept: list[str] = field(default_factory=list)
    lured: list[str] = field(default_factory=list)
    missing: list[Plant] = field(default_factory=list)
    asked: list[Plant] = field(default_factory=list)
    not_taken_back: list[str] = field(default_factory=list)
    slowest: float = 0.0
    tokens: int = 0

    def share(self, *, is_unseen: bool) -> float:
        """How many of these facts were found for a question."""
        asked = [plant for plant in self.asked if plant.is_unseen == is_unseen]
        missing = [plant for plant in self.missing if plant.is_unseen == is_unseen]
        return 1 - len(missing) / len(asked) if asked else 1.0


async def evaluate(script: Script, *, is_scripted: bool) -> Outcome:
    """Hold the talk, with a model that knows it or offline, and look at what is known afterwards."""
    with folder() as root:
        home = root / "home"
        async with _provider(script, root, is_scripted=is_scripted) as provider:
            log, config = root / "script.json.log", provider + _SETTINGS
            talk = _Talk(script, home, log, config, is_scripted=is_scripted)
            async with talk.daemon() as running:
                for wave in range(len(script.waves)):
                    await talk.hold(running, wave)
                    await talk.take_back(running, wave)
                await talk.import_answers(running)
            async with talk.daemon() as running:  # imported conversations are found at a start
                await talk.rest(running)
                await talk.ask(running)
            talk.outcome.tokens = _tokens(home)
            await talk.look_for_forgotten()
            return talk.outcome


class _Talk:
    """One evaluation in progress."""

    def __init__(
        self, script: Script, home: Path, log: Path, config: str, *, is_scripted: bool
    ) -> None:
        self.outcome = Outcome()
        self._script = script
        self._home = home
        self._log = log
        self._config = config
        self._is_scripted = is_scripted
        self._since: dict[
            str, int
        ] = {}  # forgotten values, and where the log of requests ended then
        self._answers: list[str] = []
        self._said: dict[str, int] = {}  # forgotten values, and how many answers there were then

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[Daemon]:
        """A daemon on the home."""
        running = Daemon(launch(self._home, self._config), self._home)
        try:
            await first_answer(running)
            yield running
        finally:
            stop(running.process)

    async def hold(self, running: Daemon, wave: int) -> None:
        """Say everything of the wave, and wait until it has been read."""
        for noise in self._script.noises:
            if noise.file:
                file = self._home / "workspace" / noise.text.split()[1]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(noise.file)
        waiting = list(self._script.waves[wave].items())

        async def speak() -> None:
            async with running.client() as client:
                while waiting:
                    await self._speak(client, *waiting.pop(0))

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(speak())
        async with running.client() as client:
            await client.call("_agentd/heartbeat/run", force=True)
        await self.rest(running)

    async def rest(self, running: Daemon) -> None:
        """Return when every conversation has been read for facts."""
        deadline = time.monotonic() + _PATIENCE
        while unread(self._home):
            if running.process.poll() is not None:
                raise RuntimeError(f"the daemon ended with {running.process.returncode}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not read for facts: {unread(self._home)}")
            await asyncio.sleep(0.2)

    async def take_back(self, running: Daemon, wave: int) -> None:
        """Have facts forgotten, each in its manner, and look for their words."""
        gone = self._script.taken_back(wave)
        async with running.client() as client:
            for plant in gone:
                begun = time.monotonic()
                if answer := await self._forget(client, plant):
                    told = f"{plant.manner}: {plant.question} {plant.value}: {answer}"
                    self.outcome.not_taken_back.append(told)
                    continue
                self.outcome.slowest = max(self.outcome.slowest, time.monotonic() - begun)
                self._said[plant.value] = len(self._answers)
                self._since[plant.value] = self._log.stat().st_size if self._log.exists() else 0
        begun = time.monotonic()
        while (left := _holding(self._home, list(self._since))) and time.monotonic() < begun + SOON:
            await asyncio.sleep(0.5)
        self.outcome.kept += left

    async def import_answers(self, running: Daemon) -> None:
        """Conversations in which only the assistant states things."""
        async with running.client() as client:
            for number, noise in enumerate(n for n in self._script.noises if n.kind == "assistant"):
                lines = [
                    {"role": "user", "content": noise.text},
                    {"role": "assistant", "content": noise.answer},
                ]
                key = f"chat:imported-{number}"
                await client.call("_agentd/sessions/import", key=key, lines=lines)

    async def ask(self, running: Daemon) -> None:
        """Look at all that is known, and ask for every fact that holds."""
        async with running.client() as client:
            await client.call("_agentd/memory/index")
            known = await self._known(client)
            self._judge(known)
            for plant in self._script.plants:
                if not plant.manner:
                    await self._find(client, plant, known)

    async def look_for_forgotten(self) -> None:
        """No file, no later request and no later answer has a forgotten word."""
        self.outcome.kept += _holding(self._home, list(self._since))
        if self._log.exists():
            log = self._log.read_bytes().lower()
            for value, since in self._since.items():
                if log.find(value.lower().encode(), since) >= 0:
                    self.outcome.kept.append(f"{value} in a request")
        for value, said in self._said.items():
            if any(says(answer, value) for answer in self._answers[said:]):
                self.outcome.kept.append(f"{value} in an answer")

    async def _speak(self, client: Client, session: str, turns: Sequence[Turn]) -> None:
        """Answers to what is said after a fact was forgotten are kept to be searched."""
        await client.call("session/new", cwd="/", mcpServers=[], _meta={"agentd/key": session})
        for turn in turns:
            answer = await client.say(session, turn.text)
            self._answers.append(str(answer["_meta"]["agentd/text"]))

    async def _forget(self, client: Client, plant: Plant) -> str:
        """What was answered, if it was not understood."""
        if plant.manner == "id":
            for fact in await self._known(client):
                is_active = fact["status"] == "active"
                if is_active and says(fact["text"], plant.value):
                    await client.call("_agentd/facts/forget", query=fact["id"])
                    return ""
            return "it is not known"
        asked = "/forget" if plant.manner == "command" else "Forget what I told you about"
        answer = await client.say("main", f"{asked} {plant.value}")
        known = await self._known(client)
        if any(says(fact["text"] or "", plant.value) for fact in known):
            return str(answer["_meta"]["agentd/text"])
        return ""

    async def _known(self, client: Client) -> list[Json]:
        found: list[Json] = []
        while page := (
            await client.call("_agentd/facts/list", all=True, limit=500, offset=len(found))
        )["facts"]:
            found += page
        return found

    def _judge(self, known: Sequence[Json]) -> None:
        told = [fact for fact in known if fact["text"]]
        values = [value.lower() for plant in self._script.plants for value in plant.values]
        for fact in told:
            text = fact["text"].lower()
            self.outcome.facts += 1
            self.outcome.true += any(value in text for value in values)
            self.outcome.lured += [
                f"{noise.kind}: {fact['text']} <- {noise.text!r}"
                for value, noise in self._script.lures.items()
                if value.lower() in text
            ]
        active = [fact["text"] for fact in told if fact["status"] == "active"]
        for plant in self._script.plants:
            saying = [text for text in active if plant.value.lower() in text.lower()]
            if len(saying) > 1:
                self.outcome.twice.append(" | ".join(saying))

    async def _find(self, client: Client, plant: Plant, known: Sequence[Json]) -> None:
        self.outcome.asked.append(plant)
        found = await client.call("_agentd/facts/list", query=plant.question, limit=_FIRST)
        texts = [fact["text"] for fact in found["facts"]]
        is_found = any(says(text, plant.value) for text in texts)
        if not is_found:
            self.outcome.missing.append(plant)
        olds = plant.values[:-1]
        if not olds:
            return
        # What no rule was made for is a goal where a model has read it.
        is_beyond = plant.is_unseen and (plant.is_explicit or not self._is_scripted)
        stale = self.outcome.unread if is_beyond else self.outcome.stale
        stale_hits = self.outcome.unread if is_beyond else self.outcome.stale_hits
        for fact in known:
            if fact["status"] == "active" and is_stale(fact["text"], plant):
                stale.append(f"list: {fact['text']} for {plant.value}")
        if texts and is_stale(texts[0], plant):
            stale.append(f"query: {texts[0]} for {plant.value}")
        found = await client.call("_agentd/memory/search", query=plant.question, limit=_HITS)
        for hit in found["results"]:
            if is_stale(hit["text"], plant):
                where = f"{hit['path']}:{hit['start_line']}"
                stale_hits.append(f"{where} {hit['text'][:80]!r} for {plant.value}")
            if says(hit["text"], plant.value) or is_stale(hit["text"], plant):
                return


def says(text: str, value: str) -> bool:
    return value.lower() in text.lower()


def is_stale(text: str, plant: Plant) -> bool:
    """Whether it tells an old value, and neither the one that holds nor that the old one does not."""
    if says(text, plant.value) or "no longer" in text:
        return False
    return any(says(text, old) for old in plant.values[:-1])


@asynccontextmanager
async def _provider(script: Script, root: Path, *, is_scripted: bool) -> AsyncIterator[str]:
    """The configuration of who answers."""
    if not is_scripted:
        yield OFFLINE
        return
    file = root / "script.json"
    file.write_text(json.dumps(_by_heart(script)), "utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.learning_talk.model", str(file)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield with_model(int(process.stdout.readline()))
        finally:
            process.kill()


def _by_heart(script: Script) -> Json:
    """What the scripted model knows."""
    turns = [turn for wave in script.waves for told in wave.values() for turn in told]
    lures = {
        value: {"content": noise.lure, "category": "personal"}
        for value, noise in script.lures.items()
        if noise.lure
    }
    return {
        "turns": {turn.text: asdict(turn) for turn in turns},
        "facts": {said: fact for plant in script.plants for said, fact in plant.taught.items()},
        "lures": lures,
        "assistant": [
            {"content": noise.lure, "category": "personal"}
            for noise in script.noises
            if noise.answer
        ],
    }


def unread(home: Path) -> list[str]:
    """Conversations with words of the user behind the mark."""
    query = """
        SELECT key FROM sessions JOIN rows ON rows.session_id = sessions.id
        LEFT JOIN fact_marks ON fact_marks.session = key
        WHERE role = 'user' AND opens_turn AND rows.seq > coalesce(fact_marks.seq, 0)
        AND (key = 'main' OR key LIKE 'chat:%') GROUP BY key
    """
    with closing(sqlite3.connect(f"file:{home}/state/state.db?mode=ro", uri=True)) as db:
        return [key for (key,) in db.execute(query)]


def _tokens(home: Path) -> int:
    """What reading facts out of conversations has cost."""
    query = "SELECT sum(total_tokens) FROM charges WHERE origin = 'extraction'"
    with closing(sqlite3.connect(f"file:{home}/state/state.db?mode=ro", uri=True)) as db:
        return int(db.execute(query).fetchone()[0] or 0)


def _holding(home: Path, values: Sequence[str]) -> list[str]:
    """Files below the home in which one of the values stands, in any case."""
    files = [path for path in home.rglob("*") if path.is_file() and os.access(path, os.R_OK)]
    if len(files) < _LEAST_FILES:
        raise RuntimeError(f"only {len(files)} files in {home}: nothing was looked at")
    found = []
    for path in files:
        data = path.read_bytes().lower()
        found += [f"{v} in {path.relative_to(home)}" for v in values if v.lower().encode() in data]
    return found
