"""The real workspace, index, stores, tools and engine together, with a model that obeys
anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentd.automation.alerts.sinks import MainSessionSink
from agentd.core.alert import Alert, Recipients
from agentd.core.message import ToolResult, ToolUse, assistant
from agentd.core.ports import Tool
from agentd.core.prompt import Prompt
from agentd.core.turn import MAIN, Origin, PromptScope, SessionKey, SessionKind, Turn, TurnRequest
from agentd.core.workspace import Reader
from agentd.engine.assembly import EnginePorts, build_engine, slice_tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.plan import thresholds
from agentd.engine.context import Instructions
from agentd.engine.settings import AgentSettings
from agentd.engine.watchers import TurnEndCallback, Watchers
from agentd.engine.workers import Stopping
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.memory.flush import MemoryFlush
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.search_settings import SearchSettings
from agentd.memory.recall import MemoryRecall
from agentd.memory.settings import MemoryFlushSettings
from agentd.providers.anthropic_wire import request_body
from agentd.providers.provider_settings import ProviderSettings
from agentd.storage.index import SqliteChunks
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import Answers, FakeClock, RecordingSink, ScriptedProvider
from agentd.workspace.files import Files
from agentd.workspace.injection import Injection
from agentd.workspace.workspace_settings import WorkspaceSettings

TODAY = "2026-11-21"  # of FakeClock
GROUP, ISOLATED = "group:club", "isolated:task"

SHARED = {
    "SOUL.md": "Be kind.\n",
    "AGENTS.md": "Work with care.\n",
    "TOOLS.md": "The lamp is in the hall.\n",
    "IDENTITY.md": "I am Ada.\n",
    "shared/boat.md": "# Boat\nThe boat is blue and needs varnish.\n",
}
# Each private file: a word of its own to find it by, and a canary that must never get out.
PRIVATE_PATHS = (
    *("USER.md", "MEMORY.md", "HEARTBEAT.md", "BOOTSTRAP.md"),
    *("MEMORY.md.bak", "memory.old.md", "memory_backup/MEMORY.md", "projects/USER.md"),
    *(f"memory/{TODAY}.md", "memory/2026-11-20.md", "memory/2024-02-29.md"),
    *("memory/trips/2025-01-01.md", "memory/facts.md", f"daily/{TODAY}-b.md", "2026-11-19.md"),
    *("Copy of MEMORY.md", "backup-MEMORY.md", "old_USER.md", "Kopie von MEMORY.md"),
    *("my-memory.md", "20260131.md", "journal/2026/01/31.md", "projects/boat.md", "README.md"),
    *("Shared/x.md", "shared.md", "sharedx/a.md", "projects/shared/a.md"),
)
# Second names below the shared folder, on the same bytes.
LINKS = {"shared/m.md": "MEMORY.md", "shared/deep/diary.md": "memory/2026-11-20.md"}
_SCOPE_PATHS = (
    *("AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md", "BOOTSTRAP.md"),
    *("HEARTBEAT.md", "MEMORY.md", f"memory/{TODAY}.md", "notes/plan.md"),
)


def canary(number: int) -> str:
    """A word that stands nowhere else."""
    return f"canary{number:03d}zq"


def lure(number: int) -> str:
    """The word beside a canary that a search may ask for."""
    return f"lure{number:03d}wx"


PRIVATE = {p: f"- {lure(n)} {canary(n)}\n" for n, p in enumerate(PRIVATE_PATHS)}
SCOPES = {
    scope: {p: f"- {lure(base + n)} {canary(base + n)}\n" for n, p in enumerate(_SCOPE_PATHS)}
    for base, scope in ((100, "work"), (200, "family"))
}
SAID, ANSWERED = 300, 301  # in the owner's transcript


class House:
    """One home: `private` files may be left out, to see what others can tell from it."""

    def __init__(
        self,
        home: Path,
        files: Mapping[str, str],
        scopes: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.home = home
        self.root = home / "workspace"
        self.root.mkdir(parents=True)
        for path, text in files.items():
            self.put(path, text)
        for scope, held in (scopes or {}).items():
            for path, text in held.items():
                _write(home / scope / path, text)
        self.scopes = tuple(f"{scope}={home / scope}" for scope in scopes or ())
        self.clock = FakeClock()
        self.provider = ScriptedProvider()
        self.answers = Answers()
        self.events = RecordingSink()
        self.window = 200_000
        self.group_paths = ("shared/",)
        self.seen: type[Files] = Files  # another class is a negative control
        self.asked: list[tuple[str, Prompt]] = []  # every request, with its session
        self.notifying: Callable[[], object] = lambda: None  # called before an alert is put
        self._said = 0
        self._calls: Counter[str] = Counter()
        self._stack = AsyncExitStack()

    def put(self, path: str, text: str) -> None:
        """The owner edits a file."""
        _write(self.root / path, text)

    def link(self, path: str, target: str) -> None:
        """The owner gives a file a second name."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).hardlink_to(self.root / target)

    def text(self, path: str) -> str:
        """A file as it stands."""
        return (self.root / path).read_text(encoding="utf-8")

    @property
    def note(self) -> str:
        """Today's note, "" if there is none."""
        path = self.root / self.files.daily_note()
        return path.read_text(encoding="utf-8") if path.exists() else ""

    async def start(self) -> House:
        """Open everything; again after `stop`, as a restart does."""
        self._stack = AsyncExitStack()
        opened = self._stack.enter_async_context
        state = self.home / "state"
        state.mkdir(exist_ok=True)
        db = await opened(Database.open(state / "state.db", STATE, synchronous="NORMAL"))
        index_db = await opened(Database.open(state / "index.db", INDEX, synchronous="NORMAL"))
        patient = SearchSettings(query_timeout_ms=60_000)  # else a busy machine answers by words
        chunks = SqliteChunks(index_db)
        index = await opened(LiveIndex.open(chunks, self.clock, settings=patient))
        self.store = SqliteSessions(db, self.clock)
        self.journal = SqliteJournal(db)
        self.outbox = SqliteOutbox(db, self.clock)
        chosen = WorkspaceSettings(read_scopes=self.scopes, group_paths=self.group_paths)
        self.files = self.seen(self.root, chosen, self.clock, chosen.scopes(), state / "versions")
        self.indexer = Indexer(index, self.files, self.store, self.clock)
        # A search that a busy machine cuts short would tell the same homes apart.
        self.recall = MemoryRecall(index, self.indexer, self.store, self.files, patience=600.0)
        limits = thresholds(self.window, 4_000)
        flush = MemoryFlush(
            self.store, MemoryFlushSettings(), self.clock, lambda: slice_tokens(limits)
        )
        self.stopping = Stopping()
        engine = build_engine(
            EnginePorts(
                store=self.store,
                journal=self.journal,
                ledger=SqliteLedger(db, self.clock),
                provider=self.provider,
                approver=self.answers,
                events=Watchers(self.events, TurnEndCallback(self.indexer.touch)),
                clock=self.clock,
                tools=self._tools(),
                sources=(Injection(self.files, chosen),),
                hooks=(flush,),
                stopping=self.stopping,
            ),
            Instructions("You are the agent.", "You were woken."),
            limits,
            summary_prompt="Summarise.",
            agent=AgentSettings(),
            compaction=CompactionSettings(background=False),
            price=lambda model, usage: 0.0,
        )
        self.sessions, self.requests = engine.sessions, engine.requests
        await opened(self.sessions.open())
        await self.sessions.start()
        return self

    async def stop(self) -> None:
        """Close everything."""
        await self._stack.aclose()

    async def say(self, session: str, text: str, **more: Any) -> Turn:
        """The ended turn of a message, whatever the script makes of it."""
        self._said += 1
        request = TurnRequest(SessionKey(session), text, f"m{self._said}", **more)
        before = len(self.provider.prompts)
        turn = await (await self.sessions.submit(request)).wait()
        self.asked += [(session, p) for p in self.provider.prompts[before:]]
        return turn

    async def use(self, session: str, tool: str, **arguments: Any) -> str:
        """What a tool answers when the session's model calls it."""
        return (await self.obey(session, [(tool, arguments)]))[0]

    async def obey(
        self, session: str, wishes: list[tuple[str, dict[str, Any]]], **more: Any
    ) -> list[str]:
        """What tools answer when the model of one turn calls them one after another."""
        ids = [self._call_id(session) for _ in wishes]
        for id_, (tool, arguments) in zip(ids, wishes, strict=True):
            self.provider.say(assistant("", ToolUse(id_, tool, arguments)))
        self.provider.say("done")
        before = len(self.provider.prompts)
        turn = await self.say(session, "do it", **more)
        assert turn.failure is None, turn.failure
        last = self.provider.prompts[-1]
        assert len(self.provider.prompts) == before + len(wishes) + 1
        found = {b.tool_use_id: b.text for m in last.messages for b in m.blocks if _is_result(b)}
        return [found[id_] for id_ in ids]

    async def beat(
        self, *wishes: tuple[str, dict[str, Any]], context: PromptScope = PromptScope.LIGHT
    ) -> list[str]:
        """`obey` in a heartbeat."""
        session = MAIN if context is PromptScope.SESSION else "heartbeat:main"
        more = {"origin": Origin.HEARTBEAT, "context": context}
        return await self.obey(session, list(wishes), **more)

    async def alert(self, number: int, text: str) -> None:
        """An alert arrives in the main conversation."""
        await self.deliver(Alert(number, self.clock.now(), text, "heartbeat"))

    async def deliver(self, alert: Alert) -> None:
        """An alert comes to the main conversation."""
        await MainSessionSink(self.store, self.events).send(alert)

    def sent(self, *sessions: str) -> str:
        """Everything that was sent to the model for these sessions, as the service gets it."""
        return "\n".join(as_json(p) for session, p in self.asked if session in sessions)

    def _call_id(self, session: str) -> str:
        """Counted by session: what one does shows in no other's requests."""
        self._calls[session] += 1
        return f"{session}-{self._calls[session]}"

    def _tools(self) -> tuple[Tool, ...]:
        recall = _OwnersRecall(self.recall) if self.seen is OwnersEyes else self.recall
        return (
            MemorySearch(recall),
            MemoryRead(recall),
            MemoryRead(recall, "memory_get"),
            MemoryWrite(self.files, self.clock),
            MemoryTree(self.files),
            Notify(self.outbox, self._targets, lambda: None),
        )

    def _targets(self, origin: Origin) -> Recipients:
        self.notifying()
        return Recipients(("main",))


class OwnersEyes(Files):
    """A workspace whose filter is broken: it takes everybody for the owner."""

    async def read(self, path, reader):
        return await super().read(path, replace(reader, kind=SessionKind.OWNER))

    async def snapshot(self, paths, reader):
        return await super().snapshot(paths, replace(reader, kind=SessionKind.OWNER))

    async def tree(self, path, depth, reader):
        return await super().tree(path, depth, replace(reader, kind=SessionKind.OWNER))

    async def exists(self, path, reader):
        return await super().exists(path, replace(reader, kind=SessionKind.OWNER))


class BlindToLinks(Files):
    """A workspace that goes by paths alone: a file's second name does not count."""

    def _look(self, paths, reader, find, *, keep=True):
        def found(path, reader):
            return replace(find(path, reader), alone=False)

        return super()._look(paths, reader, found, keep=keep)


class _OwnersRecall:
    """Search and reading with a broken filter."""

    def __init__(self, recall: MemoryRecall) -> None:
        self._recall = recall

    async def search(self, query, reader):
        return await self._recall.search(query, Reader(reader.session, SessionKind.OWNER))

    async def read(self, path, reader):
        return await self._recall.read(path, Reader(reader.session, SessionKind.OWNER))

    async def is_outside(self, path, first, last, text):
        return await self._recall.is_outside(path, first, last, text)

    async def has_outside_name(self, places):
        return await self._recall.has_outside_name(places)


def as_json(prompt: Prompt) -> str:
    """The request body."""
    return json.dumps(request_body(prompt, ProviderSettings(), "model"), ensure_ascii=False)


def _is_result(block: object) -> bool:
    return isinstance(block, ToolResult)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def lived_in(house: House) -> House:
    """The house after the owner has talked and looked things up in two sessions."""
    await house.start()
    house.provider.say(f"{lure(ANSWERED)} {canary(ANSWERED)}")
    await house.say("main", f"{lure(SAID)} {canary(SAID)}")
    house.provider.say("fine")
    await house.say("chat:diary", f"{lure(SAID)} {canary(SAID)}")
    await house.indexer.sync()
    return house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A home full of canaries."""
    made = House(tmp_path / "full", {**SHARED, **PRIVATE}, SCOPES)
    for path, target in LINKS.items():
        made.link(path, target)
    yield await lived_in(made)
    await made.stop()


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[House]:
    """The same home without anything private in it."""
    made = await House(tmp_path / "bare", SHARED).start()
    yield made
    await made.stop()


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[House]:
    """A small home of the owner alone."""
    made = await House(tmp_path / "home", {"MEMORY.md": "# Memory\n"}).start()
    yield made
    await made.stop()
