"""A book of facts with all that it stands on: real rows, and a page in memory."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from agentd.core.fact import (
    ErasureReport,
    Evidence,
    Fact,
    FactOperation,
    FactSource,
    FactStatus,
    ForgetRequest,
    OperationKind,
    OperationResult,
)
from agentd.core.turn import MAIN, SessionKey
from agentd.core.workspace import FACTS_PATH as PATH
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.page import parse
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FactIndexDouble, FakeClock, MemoryWorkspace

REX, MAX, TEA = (
    "The user's dog is called Rex.",
    "The user's dog is called Max.",
    "The user likes tea.",
)
CHAT = SessionKey("chat:a")


class Forgotten:
    """Remembers what it was told to erase."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.evidence: list[Evidence] = []
        self.also: list[int] = []
        self.asked: list[ForgetRequest] = []
        self.rounds = 0

    async def begin(self, facts, evidence, also=(), asked=()) -> None:
        self.begun += [fact.text for fact in facts]
        self.evidence += [one for each in evidence.values() for one in each]
        self.also += also
        self.asked += asked

    async def carry_out(self) -> ErasureReport:
        self.rounds += 1
        return ErasureReport({"notes": len(self.begun)})

    async def preview(self, facts, evidence) -> ErasureReport:
        return ErasureReport({"preview": len(facts)})


class BookHome:
    """The book, and short ways to use it. A minute passes before each thing that is said now."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.store: Any = SqliteFacts(db)
        self.clock = FakeClock()
        self.workspace = MemoryWorkspace(clock=self.clock)
        self.forgotten = Forgotten()
        self.index = FactIndexDouble()
        self.numbers = itertools.count(1)
        self.rows = itertools.count(1)
        self.book = self.opened()

    def opened(self, index: FactIndexDouble | None = None) -> FactBook:
        """The book, as after a start."""
        self.index = index or FactIndexDouble()
        self.book = FactBook(
            self.store,
            self.index,
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(self.numbers):03d}",
            key=b"k" * 32,
            forgetting=self.forgotten,
        )
        return self.book

    def said(
        self, text: str = "", op: OperationKind = OperationKind.ADD, *ids: str, **fields: Any
    ) -> FactOperation:
        """What was read out of the user's next message; without evidence where it is not proven."""
        at = fields.pop("at", None)
        if at is None:
            self.clock.jump(timedelta(minutes=1))
            at = self.clock.now()
        row = fields.pop("row", None) or next(self.rows)
        source = fields.pop("source", FactSource.EXTRACTED)
        evidence = (Evidence(at, MAIN, row, 0, 10),) if fields.get("is_proven", True) else ()
        fields.setdefault("evidence", evidence)
        return FactOperation(op, at, source, text, ids=ids, **fields)

    async def learn(
        self, *operations: FactOperation, **options: Any
    ) -> tuple[OperationResult, ...]:
        return await self.book.learn(operations, **options)

    async def add(self, *texts: str, **fields: Any) -> list[str]:
        """Learn new facts; their ids."""
        learned = await self.learn(*(self.said(text, **fields) for text in texts))
        assert all(one.is_new for one in learned)
        return [one.fact.id for one in learned if one.fact]

    async def replace(self, text: str, *ids: str, **fields: Any) -> OperationResult:
        [learned] = await self.learn(self.said(text, OperationKind.REPLACE, *ids, **fields))
        return learned

    async def fact(self, fact_id: str) -> Fact:
        return next(fact for fact in await self.book.all() if fact.id == fact_id)

    async def evidence(self, fact_id: str) -> list[Evidence]:
        return list((await self.store.evidence([fact_id]))[fact_id])

    @property
    def page(self) -> str:
        return self.workspace.files[PATH].decode() if PATH in self.workspace.files else ""

    def write(self, text: str) -> None:
        self.workspace.files[PATH] = text.encode()

    def edit(self, old: str, new: str) -> None:
        assert old in self.page
        self.write(self.page.replace(old, new))

    def take_out(self, *words: str) -> None:
        lines = [line for line in self.page.split("\n") if not any(w in line for w in words)]
        self.write("\n".join(lines))

    async def texts(self, status: FactStatus = FactStatus.ACTIVE) -> list[str]:
        return [fact.text for fact in await self.book.all() if fact.status is status]

    async def ops(self) -> list[tuple[str, bool]]:
        """The list of changes, the newest first."""
        return [(str(one.op), one.undone) for one in await self.book.changes(100)]

    async def check(self) -> None:
        """Page, rows and index say the same."""
        facts = {fact.id: fact for fact in await self.book.all()}
        assert {fact.id: fact for fact in await self.store.facts()} == facts
        entries = parse(self.page).entries()
        alive = {i: f for i, f in facts.items() if f.status is not FactStatus.FORGOTTEN}
        missing = {fact.id for fact in await self.book.parked()}
        assert {i: e.fact(i, self.clock.now()) for i, e in entries.items()} == {
            i: f for i, f in alive.items() if i not in missing
        }
        assert self.index.facts == {i: f for i, f in alive.items() if f.is_active}
        assert not parse(self.page).troubles()


@asynccontextmanager
async def opened_book_home(root: Path) -> AsyncIterator[BookHome]:
    async with Database.open(root / "state" / "state.db", STATE) as db:
        yield BookHome(db)
