"""Databases and clocks for the tests of the stores."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentd.ports import JobBook, JobStore, Journal, Ledger, Outbox, SessionStore
from agentd.storage.jobs import SqliteJobs
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.schedule import SqliteJobBook
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import (
    FakeClock,
    MemoryJobBook,
    MemoryJobs,
    MemoryLedger,
    MemoryOutbox,
    MemorySessions,
)


@dataclass
class Stores:
    """One implementation of every store port."""

    sessions: SessionStore
    journal: Journal
    ledger: Ledger
    jobs: JobStore
    outbox: Outbox
    book: JobBook


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def state_db(tmp_path):
    async with Database.open(tmp_path / "state" / "state.db", STATE) as db:
        yield db


@pytest.fixture
async def index_db(tmp_path):
    async with Database.open(tmp_path / "state" / "index.db", INDEX, synchronous="NORMAL") as db:
        yield db


@pytest.fixture(params=["sqlite", "memory"])
async def stores(request, clock):
    if request.param == "memory":
        sessions, outbox = MemorySessions(clock), MemoryOutbox(clock)
        jobs, ledger = MemoryJobs(clock, outbox), MemoryLedger(clock)
        yield Stores(
            sessions,
            sessions,
            ledger,
            jobs,
            outbox,
            MemoryJobBook(clock, outbox),
        )
        return
    folder = request.getfixturevalue("tmp_path") / "state"
    async with Database.open(folder / "state.db", STATE) as db:
        yield Stores(
            SqliteSessions(db, clock),
            SqliteJournal(db),
            SqliteLedger(db, clock),
            SqliteJobs(db, clock),
            SqliteOutbox(db, clock),
            SqliteJobBook(db, clock),
        )
