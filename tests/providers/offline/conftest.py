"""A conversation with the offline provider over real tools and a real index, without the engine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from agentd.domain.message import ToolResult
from agentd.domain.prompt import Answered, ModelStop, Prompt, TextDelta
from agentd.domain.tool import ToolCall
from agentd.domain.transcript import NewRow, RowRole
from agentd.domain.turn import Origin, SessionKey, StopReason, Turn, TurnRequest, kind_of
from agentd.engine.prompt import Scene, build, clock_line
from agentd.errors import AgentdError
from agentd.memory.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.providers.offline.provider import OfflineProvider
from agentd.storage.index import SqliteIndex
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, MemoryOutbox, MemorySessions, MemoryWorkspace
from agentd.tools.memory_read import MemoryRead
from agentd.tools.memory_search import MemorySearch
from agentd.tools.memory_tree import MemoryTree
from agentd.tools.memory_write import MemoryWrite
from agentd.tools.notify import Notify


async def answered(prompt: Prompt) -> Answered:
    """The whole answer; checks that what was streamed is what is stored."""
    events = [event async for event in OfflineProvider().stream(prompt)]
    *deltas, last = events
    assert isinstance(last, Answered)
    assert all(isinstance(d, TextDelta) for d in deltas)
    assert "".join(d.text for d in deltas) == last.message.text
    return last


class Yes:
    """A gate whose user says yes, or no."""

    def __init__(self) -> None:
        self.yes = True

    async def approve(self, approval) -> bool:
        return self.yes

    async def intend(self, intent=None) -> None:
        pass


class Talk:
    """What a turn does to the world, step by step."""

    def __init__(self, db: Database) -> None:
        self.clock = FakeClock()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.store = MemorySessions(self.clock)
        self.outbox = MemoryOutbox(self.clock)
        self.gate = Yes()
        self.system: tuple[str, ...] = ("You are an agent.",)
        index = SqliteIndex(db)
        self.indexer = Indexer(index, self.workspace, self.store, self.clock)
        recall = MemoryRecall(index, self.indexer, self.store, self.workspace)
        tools = (
            MemorySearch(recall),
            MemoryRead(recall),
            MemoryWrite(self.workspace, self.clock),
            MemoryTree(self.workspace),
            Notify(self.outbox, lambda origin: (("journal",), "")),
        )
        self.tools = {tool.spec.name: tool for tool in tools}
        self._ids = itertools.count(1)

    async def say(self, text: str, session: str = "main") -> str:
        """The reply to a user's message; transcripts are indexed afterwards."""
        request = TurnRequest(SessionKey(session), text, f"m{next(self._ids)}")
        past = (await self.store.load(request.session)).rows
        receipt = await self.store.receive(request)
        rows = list(await self.store.begin(receipt.turn_id))
        for _ in range(4):
            last = await answered(self._prompt(request, past, rows))
            new = NewRow(RowRole.ASSISTANT, last.message.blocks, "offline", last.usage)
            if last.stop is ModelStop.END_TURN:
                turn = Turn(request.session, request.message_id, receipt.seq, last.message.text)
                turn = replace(turn, stop_reason=StopReason.END_TURN)
                await self.store.finish(receipt.turn_id, turn, (new,))
                await self.indexer.sync()
                return last.message.text
            rows.append(await self.store.append(receipt.turn_id, new))
            results = [await self._run(use, request) for use in last.message.tool_uses]
            row = NewRow(RowRole.USER, tuple(results))
            rows.append(await self.store.append(receipt.turn_id, row))
        raise AssertionError("the turn does not end")

    def write(self, path: str, text: str) -> None:
        self.workspace.files[path] = text.encode()

    def _prompt(self, request: TurnRequest, past, rows) -> Prompt:
        specs = tuple(tool.spec for tool in self.tools.values())
        volatile = clock_line(self.clock.now())
        return build(Scene(request, self.system, specs, past, "", volatile, "offline"), rows)

    async def _run(self, use, request: TurnRequest) -> ToolResult:
        session = request.session
        call = ToolCall(
            use.id, use.name, use.input, session, kind_of(session), Origin.USER, tainted=False
        )
        try:
            out = await self.tools[use.name].run(call, self.gate)
        except AgentdError as error:
            return ToolResult(use.id, f"{error.message} {error.cure}".strip(), is_error=True)
        return ToolResult(use.id, out.text, out.is_error)


@pytest.fixture
async def talk(tmp_path):
    async with Database.open(tmp_path / "state" / "index.db", INDEX) as db:
        yield Talk(db)


@pytest.fixture
def answer():
    return answered
