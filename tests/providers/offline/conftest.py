"""A conversation with the offline provider over real tools and a real index, without the engine."""

from __future__ import annotations

import itertools
import json

import pytest
from msgspec.structs import replace

from agentd.automation.jobs.agenda import Agenda
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.alert import Recipients
from agentd.core.errors import AgentdError
from agentd.core.message import ToolResult, user
from agentd.core.ports import MemoryIndex
from agentd.core.prompt import AnswerCompleted, Effect, ModelStop, Prompt, TextDelta, ToolSpec
from agentd.core.tool import Approval, ToolCall, ToolOutput
from agentd.core.transcript import NewRow, Row, RowRole
from agentd.core.turn import Origin, SessionKey, SessionKind, StopReason, Turn, TurnRequest, kind_of
from agentd.engine.context import TurnPromptParts, build_prompt, clock_line
from agentd.engine.rendering import fence, render_past
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.interfaces.tools.schedule import ScheduleCreate
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.recall import MemoryRecall
from agentd.providers.offline.provider import OfflineProvider
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import (
    FakeClock,
    MemoryJobStore,
    MemoryOutbox,
    MemorySessions,
    MemoryWorkspace,
)


async def answered(prompt: Prompt) -> AnswerCompleted:
    """The whole answer; checks that what was streamed is what is stored."""
    events = [event async for event in OfflineProvider().stream(prompt)]
    *deltas, last = events
    assert isinstance(last, AnswerCompleted)
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


def fact_lines(facts: dict[str, str]) -> str:
    """Facts as prompts tell them."""
    lines = "\n".join(f"- [{name} since 2026-11-21] {text}" for name, text in facts.items())
    return f"What was told.\n{fence('agentd, facts the user told', lines)}"


async def learnt(said: str, known: str = "") -> list[dict]:
    """What the provider answers to the request that learns from a conversation."""
    parts = (fence("known facts", known),) if known else ()
    text = "\n\n".join((*parts, fence("conversation", said), "List the changes."))
    last = await answered(Prompt(("Rules.",), (user(text),), origin=Origin.EXTRACTION))
    return json.loads(last.message.text)


class FactPage:
    """The tools for facts as they answer on the wire, and `memory/facts.md` with what they keep.
    What is kept is what the provider itself reads out of the quoted words.
    """

    def __init__(self, workspace: MemoryWorkspace) -> None:
        self.facts: dict[str, str] = {}  # by id
        self.calls: list[dict] = []
        self.forgot: list[dict] = []
        self._workspace = workspace
        self._ids = itertools.count(1)
        self.is_told = True

    def tools(self) -> dict[str, _FactTool]:
        return {
            "remember": _FactTool("remember", ("text", "quote", "replaces"), self._remember),
            "forget": _FactTool("forget", ("query", "ids"), self._forget),
        }

    async def _remember(self, call: ToolCall, gate: Yes) -> ToolOutput:
        if call.kind is not SessionKind.OWNER:
            return ToolOutput("this session cannot keep facts about the owner", is_error=True)
        if "password" in call.input["text"]:
            return ToolOutput("Not kept: it looks like a secret.", is_error=True)
        self.calls.append(dict(call.input))
        known = "\n".join(f"[{name} since 2026-11-21] {t}" for name, t in self.facts.items())
        said = f"[1 user 2026-11-21 12:00] remember that {call.input['quote']}"
        told = [self._keep(one) for one in await learnt(said, known)]
        self._write()
        return ToolOutput("\n".join(told))

    def _keep(self, one: dict) -> str:
        if one["op"] == "same":
            return f"Known already: {self.facts[one['ids'][0]]}"
        old = " ".join(self.facts.pop(name) for name in one.get("ids", ()))
        self.facts[f"f{next(self._ids):07d}"] = one["content"]
        return f"Remembered: {one['content']}" + (f" It replaces: {old}" if old else "")

    async def _forget(self, call: ToolCall, gate: Yes) -> ToolOutput:
        self.forgot.append(dict(call.input))
        if ids := call.input.get("ids"):
            for name in ids:
                del self.facts[name]
            self._write()
            return ToolOutput(f"{len(ids)} facts are forgotten, with 2 places that said it.")
        query = call.input["query"].casefold()
        wanted = set(query.removeprefix("that ").replace(".", "").split()) - {
            "my",
            "the",
            "about",
            "is",
        }
        found = [n for n, text in self.facts.items() if wanted & set(text.casefold()[:-1].split())]
        if not found:
            return ToolOutput("No fact says that; nothing was erased.")
        if len(found) > 1:
            lines = "\n".join(f"{name}: {self.facts[name]}" for name in found)
            return ToolOutput(f"More than one fact says that; nothing was erased. Ask:\n{lines}")
        if not await gate.approve(Approval("Forget", "x")):
            return ToolOutput("The user wants to keep this.", is_error=True)
        del self.facts[found[0]]
        self._write()
        return ToolOutput("One fact is forgotten, with 2 places that said it.")

    def _write(self) -> None:
        lines = (f"- {text} <!-- fact id={name} -->\n" for name, text in self.facts.items())
        self._workspace.files["memory/facts.md"] = f"# Facts\n\n{''.join(lines)}".encode()


class _FactTool:
    def __init__(self, name: str, fields: tuple[str, ...], run) -> None:
        schema = {"type": "object", "properties": {key: {} for key in fields}}
        self.spec = ToolSpec(name, "", schema, Effect.IDEMPOTENT)
        self.run = run


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
            Notify(self.outbox, lambda origin: Recipients(("journal",), ""), lambda: None),
        )
        self.tools = {tool.spec.name: tool for tool in tools}
        self.called: list[str] = []  # tools of the last turn
        self.page: FactPage | None = None
        self._turn: list[Row] = []
        self._volatile = ""
        self._ids = itertools.count(1)

    async def say(self, text: str, session: str = "main") -> str:
        """The reply to a user's message; transcripts are indexed afterwards."""
        request = TurnRequest(SessionKey(session), text, f"m{next(self._ids)}")
        past = (await self.store.load(request.session)).rows
        receipt = await self.store.receive(request)
        rows = self._turn = list(await self.store.begin(receipt.turn_id))
        self._volatile = clock_line(self.clock.now())
        self.called = []
        for _ in range(8):
            last = await answered(self._prompt(request, past, rows))
            new = NewRow(RowRole.ASSISTANT, last.message.blocks, "offline", last.usage)
            if last.stop is ModelStop.END_TURN:
                turn = Turn(request.session, request.message_id, last.message.text)
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
        agenda = Agenda(JobsSettings(), book, SchedulerTriggers(), self.clock)
        tool = ScheduleCreate(agenda, self.clock)
        self.tools[tool.spec.name] = tool
        return agenda

    def may_remember(self) -> FactPage:
        """Offer the tools for facts from now on, and tell of facts; returns what keeps them."""
        self.page = FactPage(self.workspace)
        self.tools |= self.page.tools()
        return self.page

    def write(self, path: str, text: str) -> None:
        self.workspace.files[path] = text.encode()

    def _prompt(self, request: TurnRequest, past, rows) -> Prompt:
        specs = tuple(tool.spec for tool in self.tools.values())
        if kind_of(request.session) is not SessionKind.OWNER:
            specs = tuple(spec for spec in specs if spec.name not in {"remember", "forget"})
        system = self.system
        if self.page is not None and self.page.facts and self.page.is_told:
            told = f"## What is known about the user\n{fact_lines(self.page.facts)}"
            system = (*system, told)
        return build_prompt(
            TurnPromptParts(request, system, specs, render_past(past), self._volatile, "offline"),
            rows,
        )

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
