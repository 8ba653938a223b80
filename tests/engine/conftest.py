"""A whole engine over a real database, with a scripted model and a workspace in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentd.domain.turn import MAIN, SessionKey, Turn, TurnRequest
from agentd.domain.workspace import ContextBlock
from agentd.engine.compaction.manager import Compaction
from agentd.engine.compaction.plan import thresholds
from agentd.engine.compaction.settings import CompactionSettings
from agentd.engine.compaction.summary import Summariser
from agentd.engine.lanes import Lanes, Ticket
from agentd.engine.loop import Loop
from agentd.engine.recovery import Recovery
from agentd.engine.rooms import Rooms
from agentd.engine.scenes import Instructions, Scenes
from agentd.engine.sessions import Sessions
from agentd.engine.settings import AgentSettings
from agentd.engine.silent import SilentTurns
from agentd.engine.toolbox import Toolbox
from agentd.memory.flush import MemoryFlush
from agentd.memory.settings import MemoryFlushSettings
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import STATE
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import Answers, FakeClock, MemoryWorkspace, RecordingSink, ScriptedProvider
from agentd.tools.memory_write import MemoryWrite


@dataclass(slots=True)
class Block:
    """A context source of one fixed text."""

    text: str

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        return (ContextBlock(self.text),)


class World:
    """The engine and everything around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.provider = ScriptedProvider()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.events = RecordingSink()
        self.answers = Answers()
        self.window = 200_000
        self.compaction_settings = CompactionSettings(background=False)
        self.settings = AgentSettings()
        self.stack = AsyncExitStack()

    async def start(self, *, begin: bool = True) -> World:
        """Open the database and the engine over it; as often as a test likes."""
        self.stack = AsyncExitStack()
        self.db = await self.stack.enter_async_context(Database.open(self.path, STATE))
        self.store = SqliteSessions(self.db, self.clock)
        self.journal = SqliteJournal(self.db)
        self.ledger = SqliteLedger(self.db, self.clock)
        tools = (MemoryWrite(self.workspace, self.clock),)
        self.toolbox = Toolbox(tools, self.journal, self.answers, self.clock, self.settings)
        loop = Loop(
            self.store,
            self.journal,
            self.ledger,
            self.toolbox,
            self.provider,
            self.clock,
            price=lambda model, usage: usage.total_tokens / 1000,
            max_model_calls=self.settings.max_model_calls,
        )
        scenes = Scenes(
            (Block("# Project Context"),),
            self.toolbox,
            self.clock,
            self.provider,
            Instructions("You are the agent.", "Light."),
        )
        limits = thresholds(self.window, 4000)
        summariser = Summariser(
            self.provider,
            self.ledger,
            lambda model, usage: 0.0,
            "Summarise.",
            "",
            limits.flush_at // 2,
        )
        hook = MemoryFlush(
            self.store, MemoryFlushSettings(), self.clock, lambda: limits.flush_at // 2
        )
        self.compaction = Compaction(
            self.store, (hook,), summariser, self.clock, limits, self.compaction_settings
        )
        silent = SilentTurns(self.store, loop, scenes, self.toolbox)
        lanes = Lanes(self.settings.max_queued, self.settings.max_concurrent_turns)
        rooms = Rooms(
            self.store,
            self.compaction,
            silent,
            lanes,
            self.events,
            background=self.compaction_settings.background,
        )
        recovery = Recovery(self.store, self.journal, self.toolbox, loop)
        self.sessions = Sessions(self.store, loop, scenes, rooms, recovery, lanes, self.events)
        await self.stack.enter_async_context(self.sessions.open())
        if begin:
            await self.sessions.start()
        return self

    async def stop(self) -> None:
        """Close everything; `start` may follow."""
        await self.stack.aclose()

    async def say(self, text: str, message_id: str = "", session: str = MAIN) -> Turn:
        """The ended turn of a user's message."""
        return await (await self.submit(text, message_id, session)).wait()

    async def submit(self, text: str, message_id: str = "", session: str = MAIN) -> Ticket:
        """A user's message on its way."""
        message_id = message_id or f"m{len(self.provider.prompts)}-{text[:20]}"
        return await self.sessions.submit(TurnRequest(SessionKey(session), text, message_id))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "state.db")
    yield made
    await made.stop()
