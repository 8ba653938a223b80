"""Databases and clocks for the tests of the stores."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentd.core.ports import BeatStore, JobStore, Journal, Ledger, Outbox, SessionStore
from agentd.storage.beats import SqliteBeats
from agentd.storage.job_store import SqliteJobStore
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import (
    FakeClock,
    MemoryBeats,
    MemoryJobStore,
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
    beats: BeatStore
    outbox: Outbox
    jobs: JobStore


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
        beats, ledger = MemoryBeats(clock, outbox), MemoryLedger(clock)
        yield Stores(
            sessions,
            sessions,
            ledger,
            beats,
            outbox,
            MemoryJobStore(clock, outbox),
        )
        return
    folder = request.getfixturevalue("tmp_path") / "state"
    async with Database.open(folder / "state.db", STATE) as db:
        yield Stores(
            SqliteSessions(db, clock),
            SqliteJournal(db),
            SqliteLedger(db, clock),
            SqliteBeats(db, clock),
            SqliteOutbox(db, clock),
            SqliteJobStore(db, clock),
        )
