"""A home with all that keeps words, and what erases them."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog
from prompt_toolkit.history import FileHistory

from agentd.app.logs import LogSettings, OpenLog, open_log
from agentd.core.alert import NewAlert, alert_digest
from agentd.core.erasure import Erasure
from agentd.core.fact import Category, Evidence, Fact, FactSource, Triple
from agentd.core.message import Text
from agentd.core.tool import FileAction
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey, SessionKind, StopReason, Turn, TurnRequest
from agentd.core.workspace import Author, Reader
from agentd.memory.facts.forgetting import Forgetting, ForgottenPlace
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.chat_history import TypedHistory
from agentd.storage.copies import Copies
from agentd.storage.erasures import SqliteErasures
from agentd.storage.index import SqliteChunks
from agentd.storage.masking import Masking
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, HashEmbedder
from agentd.workspace.files import Files
from agentd.workspace.scrub import NoteEraser, VersionEraser
from agentd.workspace.workspace_settings import WorkspaceSettings

PLACES = ("transcripts", "notes", "versions", "search index", "log", "chat history")
_SHOWN = re.compile(r"^\[(\d+) \S+\] (.*(?:\n  .*)*)", re.MULTILINE)

log = structlog.get_logger()


@dataclass
class Marking:
    """A scripted model: it marks what `says` finds in each candidate. Without it nobody answers."""

    says: Callable[[str], Iterable[str]] | None = None
    asked: list[str] = field(default_factory=list)
    error: Exception | None = None

    async def ask(self, system: str, text: str) -> str:
        assert "`span`" in system
        self.asked.append(text)
        if self.error is not None:
            raise self.error
        assert self.says is not None
        shown = text.partition('<data source="candidates">')[2]
        found = [
            {"n": int(n), "span": span}
            for n, words in _SHOWN.findall(shown)
            for span in self.says(words.replace("\n  ", "\n"))
        ]
        return f"Here it is:\n```json\n{json.dumps(found)}\n```"


def marking(*patterns: str) -> Marking:
    """A model that marks what these regular expressions match."""
    return Marking(
        lambda text: [m[0] for p in patterns for m in re.finditer(p, text, re.IGNORECASE)]
    )


@dataclass
class Home:
    """The parts, and the short ways to use them."""

    root: Path
    clock: FakeClock
    db: Database
    sessions: SqliteSessions
    outbox: SqliteOutbox
    files: Files
    index: LiveIndex
    indexer: Indexer
    opened: OpenLog

    def holding(self, *what: str) -> set[str]:
        """The files that hold one of these."""
        paths = [path for path in self.root.rglob("*") if path.is_file()]
        assert len(paths) > 5
        wanted = [words.lower().encode() for words in what]
        return {p.name for p in paths if any(w in p.read_bytes().lower() for w in wanted)}

    def forgetting(
        self, model: Marking | None, without: str = "", tell=None, **instead
    ) -> Forgetting:
        """As after a start; `without` one place, and others `instead` of those of that name."""
        state, workspace = self.root / "state", self.root / "workspace"
        notes = NoteEraser(
            self.files, workspace, state / "versions", apart=frozenset({"memory/facts.md"})
        )
        versions = VersionEraser(self.files, state / "versions")
        typed, stored = TypedHistory(state / "chat_history"), Masking(self.db, self.indexer.without)

        async def again(_: Erasure) -> int:
            await self.indexer.sync()
            await self.index.erase(())
            return 0

        async def in_log(erasure: Erasure) -> int:
            return await asyncio.to_thread(self.opened.erase, erasure)

        places = [
            stored,
            notes,
            versions,
            ForgottenPlace("search index", again),
            ForgottenPlace("log", in_log),
            ForgottenPlace("chat history", typed.erase_words),
        ]
        assert tuple(place.name for place in places) == PLACES
        kept = [instead.get(place.name, place) for place in places if place.name != without]
        copies = Copies(
            [self.root],
            [self.db.path, state / "index.db"],
            erased=[workspace, state / "versions", state / "logs", state / "chat_history"],
        )
        return Forgetting(
            SqliteErasures(self.db),
            kept,
            self.clock,
            ask=model.ask if model is not None else None,
            texts=(stored, notes, versions, typed),
            said=stored.said,
            copies=copies.list,
            tell=tell,
        )

    async def say(self, text: str, answer: str, session: SessionKey = MAIN) -> int:
        """A turn; gives the number of the user's row."""
        await self.clock.advance(60)
        name = f"m{self.clock.monotonic()}"
        receipt = await self.sessions.receive(TurnRequest(session, text, name))
        [row] = await self.sessions.begin(receipt.turn_id)
        ended = Turn(session, name, answer, StopReason.END_TURN)
        last = NewRow(RowRole.ASSISTANT, (Text(answer),))
        await self.sessions.finish(receipt.turn_id, ended, [last])
        return row.seq

    async def said(self, session: SessionKey = MAIN) -> list[str]:
        """The words of a session."""
        return [row.text for row in await self.sessions.rows(session)]

    async def evidence(self, fact: Fact, seq: int, quote: str, session=MAIN) -> Evidence:
        """The words of a row that say the fact."""
        [row] = await self.sessions.rows(session, seq, 1)
        start = row.text.index(quote)
        return Evidence(row.at, session, seq, start, start + len(quote), fact_id=fact.id)

    async def write(self, path: str, text: str, by: str = "flush") -> None:
        async with self.files.lock(path):
            intent = await self.files.plan(path, FileAction.APPEND, text.encode())
            await self.files.apply(intent, Reader(MAIN, SessionKind.OWNER), Author(by))

    def read(self, path: str) -> str:
        return (self.root / "workspace" / path).read_text("utf-8")

    def type(self, text: str) -> None:
        """As a chat notes it."""
        FileHistory(str(self.root / "state/chat_history")).store_string(text)

    async def alert(self, text: str) -> None:
        await self.outbox.put(NewAlert(text, "heartbeat", alert_digest(text), ("main",)))

    async def note(self, **fields: str) -> None:
        """A line of the log."""
        log.info("odd_event", **fields)
        while "odd_event" not in (self.root / "state/logs/agentd.log").read_text():
            await asyncio.sleep(0)


def a_fact(
    text: str, value: str = "", at: datetime | None = None, fact_id: str = "k3f9q2ma"
) -> Fact:
    """One fact of the user's."""
    at = at or FakeClock().now()
    triple = Triple("user", "is", value) if value else None
    return Fact(fact_id, text, Category.PERSONAL, FactSource.EXTRACTED, 0.6, at, at, triple=triple)


@asynccontextmanager
async def opened_home(root: Path, clock: FakeClock) -> AsyncIterator[Home]:
    (root / "workspace").mkdir(parents=True, exist_ok=True)
    state = root / "state"
    with open_log(LogSettings(), state, clock, {}, io.StringIO()) as opened:
        async with (
            Database.open(state / "state.db", STATE) as db,
            Database.open(state / "index.db", INDEX, synchronous="NORMAL") as index_db,
            LiveIndex.open(
                SqliteChunks(index_db), clock, patient([HashEmbedder()], clock)
            ) as index,
        ):
            sessions = SqliteSessions(db, clock)
            settings = WorkspaceSettings()
            files = Files(root / "workspace", settings, clock, {}, state / "versions")
            indexer = Indexer(index, files, sessions, clock)
            outbox = SqliteOutbox(db, clock)
            yield Home(root, clock, db, sessions, outbox, files, index, indexer, opened)
