"""Plays a conversation through a real daemon over its socket, and looks at what it knows then."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentd.core.workspace import FACTS_PATH
from benchmarks.conversations.conversation import Conversation, Turn
from benchmarks.conversations.model import Items, Model, clip
from benchmarks.conversations.service import served
from benchmarks.household import Client, Daemon, first_answer, folder, launch, stop, with_model

SETTINGS = '[agent]\ntimezone = "UTC"\n[facts]\nidle = "1s"\n[heartbeat]\nenabled = false\n'
_PATIENCE = 60.0  # seconds in which a session is to be read, or a fact to be gone
_LOOK = "Have a look at this."
_LONG_PATIENCE = 300.0
_PAGE = 500
_LEAST_FILES = 5
_TOLD = 4_000  # characters of the log where something is missing

Json = dict[str, Any]


@dataclass(slots=True)
class Played:
    """What a daemon knew after a conversation. `left` are the places in which words of a forgotten
    fact were found once it should have been gone, `mentions` the user's own rows that still have
    the canary.
    """

    conversation: Conversation
    facts: list[Json] = field(default_factory=list)
    changes: list[Json] = field(default_factory=list)
    learnt: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    mentions: list[str] = field(default_factory=list)

    def texts(self, status: str) -> list[str]:
        """The sentences of all facts of that status."""
        return [fact["text"] for fact in self.facts if fact["status"] == status and fact["text"]]


@dataclass(frozen=True, slots=True)
class Stage:
    """A daemon with a conversation's model beside it."""

    home: Path
    model: Model
    client: Client

    async def say(self, session: str, turn: Turn, played: Played) -> None:
        """Play one turn."""
        if turn.tool:
            self._write(clip(turn.tool), turn.tool)
        if turn.beat:
            self._write("HEARTBEAT.md", f"- [ ] {turn.beat}\n")
            await self.client.call("_agentd/heartbeat/run", force=True)
            return
        answer = await self.client.call("session/prompt", sessionId=session, prompt=_prompt(turn))
        played.replies.append(str(answer["_meta"]["agentd/text"]))

    async def rest(self) -> None:
        """Return when every conversation has been read for facts."""
        log = self.home / "state" / "logs" / "agentd.log"
        await _until(
            lambda: not unread(self.home),
            lambda: f"not read: {unread(self.home)}\n{log.read_text('utf-8')[-_TOLD:]}",
        )

    async def write_facts(self, texts: Sequence[str]) -> None:
        """Write facts into their file by hand; return when they are known."""
        self._write(FACTS_PATH, "".join(f"- {text}\n" for text in texts))
        deadline = time.monotonic() + _LONG_PATIENCE
        while (found := await self.count()) < len(texts):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{found} facts of {len(texts)}")
            await asyncio.sleep(0.5)

    async def count(self) -> int:
        """How many facts are active."""
        return int((await self.client.call("_agentd/facts/list", limit=1))["total"])

    async def known(self) -> list[Json]:
        """All facts, in every status."""
        found: list[Json] = []
        while page := (
            await self.client.call("_agentd/facts/list", all=True, limit=_PAGE, offset=len(found))
        )["facts"]:
            found += page
        return found

    def _write(self, path: str, text: str) -> None:
        file = self.home / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


@asynccontextmanager
async def staged(
    conversation: Conversation,
    spoil: Items | None = None,
    *,
    provider: str = "",
    settings: str = SETTINGS,
) -> AsyncIterator[Stage]:
    """A fresh daemon whose model knows the conversation, and a client who allows all that is asked.
    `provider` are further lines of its settings of the model.
    """
    model = Model(conversation, spoil)
    with folder() as root:
        async with served(model.answer) as port:
            running = Daemon(
                launch(root / "home", with_model(port) + provider + settings), root / "home"
            )
            try:
                await first_answer(running)
                async with running.client(allows=True) as client:
                    yield Stage(running.home, model, client)
            finally:
                stop(running.process)


async def play(conversation: Conversation, spoil: Items | None = None) -> Played:
    """Play it from beginning to end."""
    async with staged(conversation, spoil) as stage:
        return await perform(stage, conversation)


async def perform(stage: Stage, conversation: Conversation) -> Played:
    """Play all sessions, with a rest behind each."""
    played = Played(conversation, learnt=stage.model.learnt)
    for number, session in enumerate(conversation.sessions):
        key = f"chat:{conversation.name}-{number}"
        await stage.client.call("session/new", cwd="/", mcpServers=[], _meta={"agentd/key": key})
        for turn in session:
            if turn.forgets:
                await stage.rest()  # one cannot forget what has not been read
            await stage.say(key, turn, played)
            if turn.forgets:
                await _look_for(stage, turn, played)
        await stage.rest()
    played.facts = await stage.known()
    played.changes = (await stage.client.call("_agentd/facts/changes", limit=_PAGE))["changes"]
    return played


async def _look_for(stage: Stage, turn: Turn, played: Played) -> None:
    """Wait until what was forgotten is gone; what is left of its words is noted."""
    facts = [played.conversation.facts[fact_id] for fact_id in turn.forgets]
    words = [text for fact in facts for text in (fact.quote, fact.text)]
    try:
        await _until(lambda: not holding(stage.home, words), lambda: "")
    except TimeoutError:
        played.left += holding(stage.home, words)
    played.mentions += holding(stage.home, [turn.canary])


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


def holding(home: Path, words: Sequence[str]) -> list[str]:
    """Files below the home in which one of these stands, in any case."""
    files = [path for path in home.rglob("*") if path.is_file() and os.access(path, os.R_OK)]
    if len(files) < _LEAST_FILES:
        raise RuntimeError(f"only {len(files)} files in {home}: nothing was looked at")
    found = []
    for path in files:
        with suppress(FileNotFoundError):  # it has just been removed
            text = path.read_bytes().decode("utf-8", "replace").casefold()
            found += [f"{w} in {path.relative_to(home)}" for w in words if w.casefold() in text]
    return found


def _prompt(turn: Turn) -> list[Json]:
    prompt: list[Json] = [{"type": "text", "text": turn.user or _LOOK}]
    if turn.attached:
        document = {"uri": "file:///tmp/document.txt", "text": turn.attached}
        prompt.append({"type": "resource", "resource": document})
    return prompt


async def _until(holds: Any, what: Any) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what())
        await asyncio.sleep(0.1)
