"""Opens the two databases and the stores in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog
from msgspec import Struct

from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.autobackup import AutoBackups
from agentd.app.restore import refuse_half
from agentd.core.errors import StorageError
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir
from agentd.storage.beats import SqliteBeats
from agentd.storage.blobs import FileBlobs
from agentd.storage.chat_history import TypedHistory
from agentd.storage.companion_files import check_companions, record_companions
from agentd.storage.damages import Damages
from agentd.storage.erasures import SqliteErasures
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.job_store import SqliteJobStore
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.proving import RowCheck
from agentd.storage.rescue import is_used, make_sound
from agentd.storage.retention import SqliteRetention
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database

log = structlog.get_logger()


class Stores(Struct, frozen=True, kw_only=True):
    """The two databases, the stores in them, and the files that are kept beside them."""

    db: Database
    damages: Damages
    index_db: Database
    sessions: SqliteSessions
    journal: SqliteJournal
    ledger: SqliteLedger
    beats: SqliteBeats
    jobs: SqliteJobStore
    outbox: SqliteOutbox
    chunks: SqliteChunks
    retention: SqliteRetention
    typed: TypedHistory
    facts: SqliteFacts
    erasures: SqliteErasures
    graph: SqliteGraph
    blobs: FileBlobs
    proving: RowCheck
    backups: AutoBackups
    note: Work  # records which files are kept beside the database
    is_checked: bool  # whether the whole database was read before it was opened

    def problems(self) -> tuple[Problem, ...]:
        """Return the unreadable rows of the tables that have no digests."""
        parts = (self.ledger, self.beats, self.jobs, self.facts)
        return tuple(problem for part in parts for problem in part.problems())

    @property
    def work(self) -> tuple[Work, ...]:
        """The background work of the stores."""
        backups = partial(self.backups.run, self.db, is_checked=self.is_checked)
        return (self.note, self.proving.run, backups)


@asynccontextmanager
async def open_stores(runtime: RuntimeContext) -> AsyncIterator[Stores]:
    """Open the databases and migrate them; a damaged one is salvaged first. Raises StorageError, of
    which StateMissing means that the database existed and is gone.
    """
    places, clock = runtime.places, runtime.clock
    ensure_private_dir(places.state_dir)
    refuse_half(places.state_dir)
    used = partial(is_used, places.state_dir, runtime.workspace)
    backups = AutoBackups(places, clock, runtime.config.storage.backups)
    sound = partial(make_sound, used=used, backup=backups.newest)
    looked = await asyncio.to_thread(sound, places.database, STATE, clock.now())
    await asyncio.to_thread(_quietly, partial(check_companions, places, clock.now()))
    await asyncio.to_thread(backups.tidy)
    await asyncio.to_thread(backups.before_migration)
    async with (
        Database.open(places.database, STATE) as db,
        Database.open(places.index, INDEX, synchronous="NORMAL") as index_db,
    ):
        sessions = SqliteSessions(db, clock, runtime.redactor)
        blobs = FileBlobs(places.images, sessions.images)
        await _tidy(sessions, blobs)
        note = partial(record_companions, places)
        yield Stores(
            db=db,
            damages=Damages(places.database),
            index_db=index_db,
            sessions=sessions,
            journal=SqliteJournal(db, runtime.redactor),
            ledger=SqliteLedger(db, clock),
            beats=SqliteBeats(db, clock, runtime.redactor),
            jobs=SqliteJobStore(db, clock, runtime.redactor),
            outbox=SqliteOutbox(db, clock),
            chunks=SqliteChunks(index_db),
            retention=SqliteRetention(db),
            typed=TypedHistory(places.chat_history),
            facts=SqliteFacts(db),
            erasures=SqliteErasures(db),
            graph=SqliteGraph(index_db),
            blobs=blobs,
            proving=RowCheck(db, clock),
            backups=backups,
            note=partial(asyncio.to_thread, _quietly, note),
            is_checked=looked.is_complete,
        )
        await asyncio.to_thread(_quietly, note)


def _quietly(step: Callable[[], None]) -> None:
    """Call `step`, and only log a failure: the record of the files beside the database must not
    keep the daemon from starting or from stopping.
    """
    try:
        step()
    except OSError as error:
        log.warning("beside_not_noted", reason=error.strerror)


async def _tidy(sessions: SqliteSessions, blobs: FileBlobs) -> None:
    """Remove sessions that nobody has used, and images that no message refers to; a crash can leave
    such images.
    """
    try:
        await sessions.drop_unused()
        await blobs.sweep()
    except StorageError as error:  # what is left only takes room
        log.warning("not_swept", reason=error.reason)
