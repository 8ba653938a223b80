"""Conversations that are read for facts: the book, sessions, and a model that says what it is told
to.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from agentd.core.compaction import CompactionPlan, Trigger
from agentd.core.erasure import MASK
from agentd.core.event import FactsChanged
from agentd.core.message import Text
from agentd.core.prompt import Prompt
from agentd.core.transcript import NewRow, Row, RowRole
from agentd.core.turn import MAIN, Origin, SessionKey, StopReason, Turn, TurnRequest
from agentd.engine.budget import Charges
from agentd.engine.completion import Completions
from agentd.memory.facts.fact_service import FactsService
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.learning import Learning
from agentd.memory.facts.reader import PassageReader
from agentd.storage.sqlite import Database
from agentd.testing import MemoryLedger, MemorySessions, RecordingSink, ScriptedProvider
from tests.memory.facts.books import BookHome

_STEP = 30.0  # seconds: how often learning looks at what is due
_ROUNDS = 25


def answer(*items: Any) -> str:
    """An answer of these items; a text is the content of one, quoted as `QUOTE → content`."""
    given = []
    for item in items:
        if isinstance(item, str):
            quote, _, content = item.rpartition(" → ")
            item = {"content": content, "quote": quote}
        given.append(item)
    return f"```json\n{json.dumps(given, ensure_ascii=False)}\n```"


def plan(session: SessionKey = MAIN) -> CompactionPlan:
    return CompactionPlan(session, Trigger.THRESHOLD, 1, (), (), 1, "")


async def never(question: object) -> Any:
    raise AssertionError("a hook asks through its own call")


class Talk(BookHome):
    """A home in which somebody talks. `provider` answers the requests of learning."""

    def __init__(self, db: Database, *replies: Any, provider: Any = None, **settings: Any) -> None:
        super().__init__(db)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        self.sessions = MemorySessions(self.clock)
        self.provider = provider or ScriptedProvider(*replies, default="[]")
        self.ledger = MemoryLedger(self.clock)
        self.calls = Completions(
            self.provider, Charges(self.ledger, self.clock, lambda model, used: 0.5)
        )
        self.settings = FactsSettings(**settings)
        self.sink = RecordingSink()
        self.turns = 0
        self.started()

    def started(self) -> Learning:
        """All of it as after a start."""
        self.opened()
        self.reader = PassageReader(
            self.sessions, self.store, self.book, self.calls, self.clock, self.settings
        )
        self.learning = Learning(self.sessions, self.reader, self.sink, self.clock, self.settings)
        self.service = FactsService(
            self.book, self.reader, self.learning, self.sessions, self.clock, self.forgotten
        )
        return self.learning

    async def say(
        self,
        text: str,
        session: SessionKey = MAIN,
        *,
        answered: str = "Fine.",
        rows: Sequence[NewRow] = (),
        origin: Origin = Origin.USER,
        last: NewRow | None = None,
        **request: Any,
    ) -> None:
        """A whole turn, a minute later; its end is told as the engine tells it."""
        await self.clock.advance(60)
        self.turns += 1
        asked = TurnRequest(session, text, f"m{self.turns}", origin, **request)
        receipt = await self.sessions.receive(asked)
        await self.sessions.begin(receipt.turn_id)
        for row in rows:
            await self.sessions.append(receipt.turn_id, row)
        turn = Turn(session, asked.message_id, answered, StopReason.END_TURN)
        last = last or NewRow(RowRole.ASSISTANT, (Text(answered),))
        await self.sessions.finish(receipt.turn_id, turn, [last])
        if origin is Origin.USER:
            self.learning.touch(session)

    def mask(self, words: str, session: SessionKey = MAIN) -> None:
        """As forgetting does it in the rows."""
        rows = self.sessions._sessions[session].rows
        for n, row in enumerate(rows):
            if words in row.text:
                rows[n] = replace(row, blocks=(Text(row.text.replace(words, MASK)),))

    async def mark(self, session: SessionKey = MAIN) -> int:
        return (await self.store.marks()).get(session, 0)

    async def notices(self, session: SessionKey = MAIN) -> list[Row]:
        return [row for row in await self.sessions.rows(session) if row.role is RowRole.NOTICE]

    @property
    def told(self) -> list[FactsChanged]:
        return [event for event in self.sink.events if isinstance(event, FactsChanged)]

    def shown(self, call: int = -1) -> str:
        """What the model was shown."""
        return self.provider.prompts[call].messages[0].text

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The learning at work, for the time of the block."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.learning.run())
            await self.settle()
            yield
            await self.settle()
            task.cancel()

    async def pass_(self, seconds: float) -> None:
        """Let time pass, and what is due be done at its time."""
        while seconds > 0:
            await self.clock.advance(min(seconds, _STEP))
            await self.settle()
            seconds -= _STEP

    async def settle(self) -> None:
        """Let work in threads come to its end, too: each of them has one queue."""
        for _ in range(_ROUNDS):
            await self.db.read(lambda conn: None)
            await asyncio.to_thread(lambda: None)
            await self.clock.settle(5)


def message_numbers(prompt: Prompt) -> list[str]:
    """The heads of the messages that a request shows: `1 user`, `2 agent` …"""
    return re.findall(r"^\[(\d+ (?:user|agent)) ", prompt.messages[0].text, re.MULTILINE)
