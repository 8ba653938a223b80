"""One SQLite database: whole transactions on one connection, waiting ones committed together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Generic, Self, TypeVar

import aiosqlite
import structlog

from agentd.domain.health import Problem
from agentd.errors import AgentdError, StorageCorrupt, StorageError
from agentd.failpoints import hit
from agentd.storage.erasing import drop_asides, mark_unclean, unmark, write_anew
from agentd.storage.faults import is_lost_sync, translate
from agentd.storage.files import Synchronous, open_file, put_aside
from agentd.storage.migrations import Schema

log = structlog.get_logger()

T = TypeVar("T")


class _Job(Generic[T]):
    """A transaction that waits; after its run `error` or `result` holds the outcome."""

    __slots__ = ("error", "fn", "result")

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.result: T
        self.error: Exception | None = None


class Database:
    """The only door to a database file; also the Probe `store`.

    `commits` counts transactions that reached the disk. There is one connection on one thread,
    because two of them can corrupt a WAL in SQLite up to 3.51.2.
    """

    def __init__(self, path: Path, schema: Schema, synchronous: Synchronous) -> None:
        self.path = path
        self.commits = 0
        self._schema = schema
        self._synchronous = synchronous
        self._waiting: deque[_Job[object]] = deque()
        self._opened: Problem | None = None
        self._full: StorageError | None = None
        self._latched = False
        self._erasing = asyncio.Lock()
        self._thread = aiosqlite.Connection(self._connect, iter_chunk_size=64)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: Path, migrations: Schema, *, synchronous: Synchronous = "FULL"
    ) -> AsyncIterator[Self]:
        """An open database, closed when the block ends, after everything that waits.

        Raises StorageCorrupt for a file that is damaged or not ours, StorageError for one of a
        newer agentd; a derived database is put aside in these cases and begins anew.
        """
        database = cls(path, migrations, synchronous)
        try:
            await database._thread
        except BaseException:
            # It has been told to stop; left alone it would report that to a loop that may be gone.
            database._thread._thread.join()
            raise
        try:
            yield database
        finally:
            await database._thread.close()

    @property
    def name(self) -> str:
        """The name as a Probe."""
        return "store" if not self._schema.derived else f"store_{self._schema.name}"

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` as one transaction; when this returns, what it did is durable.

        It shares a commit with whatever else waits, yet fails alone. `fn` may be run a second time
        when the shared commit failed, so it must do nothing but use the connection. Cancelling the
        caller does not stop the transaction.
        """
        job = _Job(fn)
        self._waiting.append(job)  # type: ignore[arg-type]  # the outcome is read by this call alone
        # The thread works in order, so when this call's turn is over its job is done: by this call,
        # or by an earlier one that found both waiting.
        await self._on_thread(self._commit_waiting)
        if isinstance(job.error, sqlite3.Error):
            raise self._told(job.error) from job.error
        if job.error is not None:
            raise job.error
        return job.result

    async def execute(self, sql: str, values: Sequence[object]) -> int:
        """Run one changing statement as a transaction; returns how many rows it changed."""
        return await self.write(lambda conn: conn.execute(sql, values).rowcount)

    async def erase(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """`write`, after which no byte of what `fn` deleted is left in the database's files.

        They are written anew, which takes memory and time in proportion to their size; everything
        else waits. What a crash or an error cuts short is done when the database is next opened.
        """
        async with self._erasing:
            first = await self._on_thread(lambda: mark_unclean(self.path))
            try:
                result = await self.write(fn)
            except AgentdError:
                if first:  # else an earlier deletion still has bytes there
                    await self._on_thread(lambda: unmark(self.path))
                raise
            hit("store.deleted")
            await self.read(lambda conn: write_anew(conn, self.path))
            if self._schema.derived:
                await self._on_thread(lambda: drop_asides(self.path))
        return result

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """What `fn` finds; it sees one state of the database and all earlier writes."""
        try:
            return await self._on_thread(lambda: self._look(fn))
        except sqlite3.Error as error:
            raise self._told(error) from error

    async def copy(self, path: Path) -> None:
        """Write the database as it is now into a new file, over the one connection."""

        def run(conn: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(path)) as target:
                conn.backup(target)

        await self.read(run)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now."""
        found = [self._opened] if self._opened else []
        if self._latched:
            found.append(_lost_sync(self.path))
        if self._full:
            found.append(Problem(self._full.code, self._full.message, self._full.cure))
        return tuple(found)

    async def prove(self) -> None:
        """Take and give back the write lock on the connection's thread; nothing reaches the disk.

        Raises StorageError when nothing can be stored any more.
        """
        await self._on_thread(self._take_write_lock)

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        # aiosqlite offers single statements only, and other tasks could come between two of them;
        # `_execute` is what all of its own methods use to run a function on the thread.
        try:
            result: T = await self._thread._execute(fn)  # type: ignore[no-untyped-call]  # aiosqlite's
        except ValueError as error:
            if "Connection closed" not in str(error):
                raise
            raise StorageError(f"{self.path.name} is closed", cure="start agentd again") from error
        return result

    def _connect(self) -> sqlite3.Connection:
        conn, self._opened = open_file(self.path, self._schema, self._synchronous)
        return conn

    def _commit_waiting(self) -> None:
        group: list[_Job[object]] = []
        while self._waiting:
            group.append(self._waiting.popleft())
        if group:
            self._commit(group)

    def _look(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return fn(self._thread._conn)
        except sqlite3.Error as error:
            self._note(error)
            raise

    def _commit(self, group: list[_Job[object]]) -> None:
        conn = self._thread._conn
        if self._latched:
            for job in group:
                job.error = self._refusal()
            return
        try:
            if conn.in_transaction:  # the disk failed in the middle of the last rollback
                conn.execute("ROLLBACK")
            conn.execute("BEGIN IMMEDIATE")
            for job in group:
                _attempt(conn, job)
            conn.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(group, error)
            return
        self.commits += 1
        self._full = None
        for job in group:
            if isinstance(job.error, sqlite3.Error):
                self._note(job.error)

    def _give_up(self, group: list[_Job[object]], error: sqlite3.Error) -> None:
        conn = self._thread._conn
        try:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
        except sqlite3.Error as second:
            self._note(second)
        self._note(error)
        if len(group) == 1 or self._latched:
            for job in group:
                job.error = error
            return
        for job in group:  # a small write may still fit where a large one did not
            job.error = None
            self._commit([job])

    def _note(self, error: sqlite3.Error) -> None:
        told = translate(error, self.path)
        if is_lost_sync(error):
            self._latched = True
            log.error("storage_sync_failed", database=self.path.name)
        elif told.code == "storage_full":
            if self._full is None:
                log.error("storage_full", database=self.path.name)
            self._full = told
        elif told.code == "storage_corrupt":
            log.error("storage_corrupt", database=self.path.name)
            if self._schema.derived:
                self._begin_anew(told)

    def _begin_anew(self, why: StorageError) -> None:
        self._thread._conn.close()
        problem = put_aside(self.path, self._schema, why)
        # Where aiosqlite keeps the connection; we are on the one thread that uses it.
        self._thread._connection = self._connect()
        self._opened = problem

    def _told(self, error: sqlite3.Error) -> StorageError:
        told = translate(error, self.path)
        if self._schema.derived and isinstance(told, StorageCorrupt):
            return StorageCorrupt(told.message, cure="nothing is lost, it is built again")
        return told

    def _take_write_lock(self) -> None:
        if self._latched:
            raise self._refusal()
        conn = self._thread._conn
        try:
            conn.execute("BEGIN IMMEDIATE")
            conn.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._told(error) from error

    def _refusal(self) -> StorageError:
        problem = _lost_sync(self.path)
        return StorageError(problem.text, cure=problem.cure)


def _attempt(conn: sqlite3.Connection, job: _Job[object]) -> None:
    conn.execute("SAVEPOINT job")
    try:
        job.result = job.fn(conn)
    except Exception as error:
        if not conn.in_transaction:  # SQLite has rolled back the whole group
            raise
        conn.execute("ROLLBACK TO job")
        job.error = error
    conn.execute("RELEASE job")


def _lost_sync(path: Path) -> Problem:
    return Problem(
        "storage_sync_failed",
        f"the disk failed to store {path.name}; nothing more is accepted",
        "check the disk, then restart agentd",
    )
