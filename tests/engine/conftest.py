"""A whole engine over a real database, with a scripted model and a workspace in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentd.core.ports import Approver, Provider, Tool
from agentd.core.prompt import ContextBlock
from agentd.core.transcript import NOTHING_OFFERED
from agentd.core.turn import MAIN, SessionKey, Turn, TurnRequest
from agentd.engine.assembly import EnginePorts, build_engine, slice_tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.plan import thresholds
from agentd.engine.context import Instructions
from agentd.engine.queue import Ticket
from agentd.engine.settings import AgentSettings
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.memory.flush import MemoryFlush
from agentd.memory.settings import MemoryFlushSettings
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger, SqliteServiceRecord
from agentd.storage.migrations import STATE
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import Answers, FakeClock, MemoryWorkspace, RecordingSink, ScriptedProvider


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
        self.provider: Provider = ScriptedProvider()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.events = RecordingSink()
        self.answers: Approver = Answers()
        self.window = 200_000
        self.compaction_settings = CompactionSettings(background=False)
        self.settings = AgentSettings()
        self.tools: tuple[Tool, ...] = ()
        self.offer = NOTHING_OFFERED
        self.sent = 0
        self.service = "a digest"  # of the model's configuration
        self.patience = timedelta(0)  # of the messages
        self.wrap: Callable[[Any], Any] = lambda part: part  # around the stores
        self.stack = AsyncExitStack()

    async def start(self, *, begin: bool = True) -> World:
        """Open the database and the engine over it; as often as a test likes."""
        self.stack = AsyncExitStack()
        self.db = await self.stack.enter_async_context(Database.open(self.path, STATE))
        self.store = self.wrap(SqliteSessions(self.db, self.clock))
        self.journal = self.wrap(SqliteJournal(self.db))
        self.ledger = self.wrap(SqliteLedger(self.db, self.clock))
        limits = thresholds(self.window, 4000)
        hook = MemoryFlush(
            self.store, MemoryFlushSettings(), self.clock, lambda: slice_tokens(limits)
        )
        engine = build_engine(
            EnginePorts(
                store=self.store,
                journal=self.journal,
                ledger=self.ledger,
                provider=self.provider,
                approver=self.answers,
                events=self.events,
                clock=self.clock,
                tools=(MemoryWrite(self.workspace, self.clock), *self.tools),
                sources=(Block("# Project Context"),),
                hooks=(hook,),
                offer=self.offer,
                record=SqliteServiceRecord(self.db, self.clock, self.service),
            ),
            Instructions("You are the agent.", "Light."),
            limits,
            summary_prompt="Summarise.",
            agent=self.settings,
            compaction=self.compaction_settings,
            price=lambda model, usage: usage.total_tokens / 1000,
        )
        self.engine, self.sessions, self.compaction = engine, engine.sessions, engine.compaction
        self.requests = engine.requests
        self.outage = engine.outage
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
        self.sent += 1
        message_id = message_id or f"m{self.sent}"
        request = TurnRequest(SessionKey(session), text, message_id, patience=self.patience)
        return await self.sessions.submit(request)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "state.db")
    yield made
    await made.stop()
