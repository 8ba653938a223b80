"""A conversation with the offline provider over real tools and a real index, without the engine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from agentd.domain.alert import Recipients
from agentd.domain.fact import ErasureReport
from agentd.domain.message import ToolResult
from agentd.domain.prompt import Answered, ModelStop, Prompt, TextDelta
from agentd.domain.tool import ToolCall
from agentd.domain.transcript import NewRow, Row, RowRole
from agentd.domain.turn import Kind, Origin, SessionKey, StopReason, Turn, TurnRequest, kind_of
from agentd.engine.prompt import Scene, build, clock_line
from agentd.errors import AgentdError
from agentd.facts.book import FactBook
from agentd.facts.desk import Desk
from agentd.facts.relevant import RelevantFacts
from agentd.facts.screen import objection
from agentd.jobs.agenda import Agenda
from agentd.jobs.settings import JobsSettings
from agentd.memory.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.ports import MemoryIndex
from agentd.providers.offline.provider import OfflineProvider
from agentd.scheduler.triggers import Triggers
from agentd.search.live import LiveIndex
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import (
    FactIndexDouble,
    FakeClock,
    MemoryFactStore,
    MemoryJobStore,
    MemoryOutbox,
    MemorySessions,
    MemoryWorkspace,
)
from agentd.tools.forget import Forget
from agentd.tools.memory_read import MemoryRead
from agentd.tools.memory_search import MemorySearch
from agentd.tools.memory_tree import MemoryTree
from agentd.tools.memory_write import MemoryWrite
from agentd.tools.notify import Notify
from agentd.tools.remember import Remember
from agentd.tools.schedule import ScheduleCreate


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


class Erased:
    """Erases nothing but the facts themselves."""

    async def begin(self, facts) -> None:
        pass

    async def carry_out(self) -> ErasureReport:
        return ErasureReport({"transcripts": 2}, kept=("memory/pets.md:2",))


class Talk:
    """What a turn does to the world, step by step."""

    def __init__(self, index: MemoryIndex, clock: FakeClock) -> None:
        self.clock = clock
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.store = MemorySessions(self.clock)
        self.outbox = MemoryOutbox(self.clock)
        self.gate = Yes()
        self.system: tuple[str, ...] = ("You are an agent.",)
        self.indexer = Indexer(index, self.workspace, self.store, self.clock)
        recall = MemoryRecall(index, self.indexer, self.store, self.workspace)
        tools = (
            MemorySearch(recall),
            MemoryRead(recall),
            MemoryWrite(self.workspace, self.clock),
            MemoryTree(self.workspace),
            Notify(self.outbox, lambda origin: Recipients(("journal",), "")),
        )
        self.tools = {tool.spec.name: tool for tool in tools}
        self.called: list[str] = []  # tools of the last turn
        self._relevant: RelevantFacts | None = None
        self._turn: list[Row] = []
        self._volatile = ""
        self._ids = itertools.count(1)

    async def say(self, text: str, session: str = "main") -> str:
        """The reply to a user's message; transcripts are indexed afterwards."""
        request = TurnRequest(SessionKey(session), text, f"m{next(self._ids)}")
        past = (await self.store.load(request.session)).rows
        receipt = await self.store.receive(request)
        rows = self._turn = list(await self.store.begin(receipt.turn_id))
        blocks = await self._relevant.blocks(request) if self._relevant else ()
        self._volatile = "\n\n".join((*(b.text for b in blocks), clock_line(self.clock.now())))
        self.called = []
        for _ in range(8):
            last = await answered(self._prompt(request, past, rows))
            new = NewRow(RowRole.ASSISTANT, last.message.blocks, "offline", last.usage)
            if last.stop is ModelStop.END_TURN:
                turn = Turn(request.session, request.message_id, receipt.seq, last.message.text)
                turn = replace(turn, stop_reason=StopReason.END_TURN)
                await self.store.finish(receipt.turn_id, turn, (new,))
                await self.indexer.sync()
                return last.message.text
            rows.append(await self.store.append(receipt.turn_id, new))
            self.called += [use.name for use in last.message.tool_uses]
            results = [await self._run(use, request) for use in last.message.tool_uses]
            row = NewRow(RowRole.USER, tuple(results))
            rows.append(await self.store.append(receipt.turn_id, row))
        raise AssertionError("the turn does not end")

    def may_schedule(self) -> Agenda:
        """Offer the tool for jobs from now on; returns where they go."""
        book = MemoryJobStore(self.clock)
        agenda = Agenda(JobsSettings(), book, Triggers(), self.clock, lambda: None)
        tool = ScheduleCreate(agenda, self.clock)
        self.tools[tool.spec.name] = tool
        return agenda

    def may_remember(self) -> FactBook:
        """Offer the tools for facts from now on, and tell of facts; returns what keeps them."""
        index, numbers = FactIndexDouble(), itertools.count(1)
        book = FactBook(
            MemoryFactStore(),
            index,
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(numbers):07d}",
            key=b"k" * 32,
            screen=objection,
            forgetting=Erased(),
        )
        desk = Desk(book, self._said, self.clock)
        self.tools |= {tool.spec.name: tool for tool in (Remember(desk), Forget(desk))}
        self._relevant = RelevantFacts(index, "What the user told you.")
        return book

    async def _said(self, session: SessionKey) -> list[tuple[int, str]]:
        rows = {r.seq: r for r in (*(await self.store.load(session)).rows, *self._turn)}
        return [(n, r.text) for n, r in rows.items() if r.role is RowRole.USER and r.text]

    def write(self, path: str, text: str) -> None:
        self.workspace.files[path] = text.encode()

    def _prompt(self, request: TurnRequest, past, rows) -> Prompt:
        specs = tuple(tool.spec for tool in self.tools.values())
        if kind_of(request.session) is not Kind.MAIN:
            specs = tuple(spec for spec in specs if spec.name not in {"remember", "forget"})
        return build(Scene(request, self.system, specs, past, "", self._volatile, "offline"), rows)

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
    clock = FakeClock()
    async with (
        Database.open(tmp_path / "state" / "index.db", INDEX) as db,
        LiveIndex.open(SqliteChunks(db), clock) as index,
    ):
        yield Talk(index, clock)


@pytest.fixture
def answer():
    return answered
