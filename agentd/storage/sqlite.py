"""One SQLite database on one connection: whole transactions; those that wait are committed as a
group.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import aiosqlite
import structlog

from agentd.core.errors import AgentdError, StorageCorrupt, StorageError, StorageFull
from agentd.core.failpoints import hit
from agentd.core.health import Problem
from agentd.core.offloading import until_done
from agentd.storage.erasing import clear, drop_asides, mark_unclean, unmark
from agentd.storage.files import (
    BUSY_TIMEOUT,
    IntegrityWatch,
    Synchronous,
    check_whole,
    copy_database,
    lost_file_problem,
    open_file,
    put_aside,
    put_back,
)
from agentd.storage.migrations import Schema
from agentd.storage.proofs import ProofGuard
from agentd.storage.sqlite_errors import (
    is_lost_sync,
    is_of_the_copied,
    lost_sync_problem,
    translate,
)

log = structlog.get_logger()

T = TypeVar("T")

# Errors that come from our own statements, not from the disk.
_OUR_MISTAKES = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
_COPIED = 64  # pages copied in one step; other work waits for the step


class Database:
    """The only access to a database file; also the Probe `store` (`store_index` for the index).

    `commits` counts the transactions that reached the disk, `begun_anew` how often a derived
    database was found damaged while it was open and replaced by an empty one. There is one
    connection on one thread, because two connections can corrupt a WAL in SQLite up to 3.51.2.
    """

    def __init__(
        self, path: Path, schema: Schema, synchronous: Synchronous, *, checks: bool = True
    ) -> None:
        self.path = path
        self.commits = 0
        self.begun_anew = 0
        self._schema = schema
        self._synchronous = synchronous
        self._writes: deque[QueuedCall[Any]] = deque()
        self._reads: deque[QueuedCall[Any]] = deque()
        self._batch: asyncio.Future[None] | None = None  # done once the queued calls have run
        self._unsubmitted: asyncio.Future[None] | None = None  # the same, until the thread gets it
        self._opened: Problem | None = None
        self._failing: StorageError | None = None  # why the last write was refused
        self._damaged: StorageError | None = None  # seen while open; the next start salvages it
        self._guard = ProofGuard(path, checks=checks) if schema.guarded else None
        self._sync_lost = False
        self._is_closing = False
        self._is_copying = False
        self._erasing = asyncio.Lock()
        self._uncleared: StorageError | None = None  # why the files still hold deleted bytes
        self._integrity = IntegrityWatch(path)
        # Used on the database's thread only; replaced together with the file.
        self._conn: sqlite3.Connection
        self._thread = aiosqlite.Connection(self._connect, iter_chunk_size=64)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path,
        migrations: Schema,
        *,
        synchronous: Synchronous = "FULL",
        checks: bool = True,
    ) -> AsyncIterator[Self]:
        """Open a database; when the block ends, run all queued calls and close it. Without `checks`
        a guarded database proves nothing; tests use that to show what the proofs are for.

        Raises StorageCorrupt for a file that is damaged or not agentd's, StorageError for one of a
        newer agentd. A derived database is put aside in these cases and begins empty.
        """
        database = cls(path, migrations, synchronous, checks=checks)
        try:
            await database._thread
        except BaseException:
            # The thread is stopping; unless joined, it reports that to a loop that may be closed.
            database._thread._thread.join()
            raise
        try:
            yield database
        finally:
            # Calls queued so far are run; later ones are refused.
            database._is_closing = True
            database._submit()
            try:
                await database._run(lambda: database._conn.close())
            finally:
                await database._thread.close()
                if database._guard is not None:
                    database._guard.close()

    @property
    def name(self) -> str:
        """The name of this Probe."""
        return "store" if not self._schema.derived else f"store_{self._schema.name}"

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` as one transaction and return its result; what it wrote is durable by then.

        The transaction shares a commit with other queued ones but fails alone: `fn` is run a second
        time if the shared commit failed, so it must do nothing but use the connection. Cancelling
        the caller does not stop the transaction.
        """
        call = QueuedCall(fn)
        await self._enqueue(self._writes, call)
        return call.outcome(self._translated)

    async def execute(self, sql: str, values: Sequence[object]) -> int:
        """Run one changing statement as a transaction; return how many rows it changed."""
        return await self.write(lambda conn: conn.execute(sql, values).rowcount)

    async def erase(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` like `write`; afterwards no byte that `fn` deleted is left in the database's
        files.

        For that the files are read once, or rewritten if much of them is free; everything else
        waits meanwhile. What a crash or an error cuts short is done when the database is next
        opened. Raises StorageError if another program reads the database: the bytes are then
        removed with the first commit after that program has finished.
        """
        async with self._erasing:
            first = await self._on_thread(lambda: mark_unclean(self.path))
            try:
                result = await self.write(fn)
            except AgentdError:
                if first:  # else bytes of an earlier deletion are still there
                    await self._on_thread(lambda: unmark(self.path))
                raise
            await self._clean()
        return result

    @asynccontextmanager
    async def erasing(self) -> AsyncIterator[None]:
        """Do for several transactions what `erase` does for one: when the block ends, no byte that
        they deleted is left in the files. After a crash or an error, the rest is done when the
        database is next opened.
        """
        async with self._erasing:
            await self._on_thread(lambda: mark_unclean(self.path))
            yield
            await self._clean()

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` and return its result; it sees one state of the database with all earlier
        writes.
        """
        call = QueuedCall(fn)
        await self._enqueue(self._reads, call)
        return call.outcome(self._translated)

    async def copy(self, path: Path) -> None:
        """Write the database, as it is at some moment before this returns, into a new file.

        Reads and writes continue during the copy; erasures wait, because pages already copied would
        still hold the erased bytes. Raises StorageError. An error of the new file, whose folder may
        be missing, is not recorded as a problem of the database. A cancelled caller still waits
        until nothing writes to the file any more.
        """
        async with self._erasing:
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()

            def work() -> None:
                try:
                    self._copy(path)
                finally:
                    loop.call_soon_threadsafe(ended.set_result, None)

            try:
                await self._on_thread(work)
            except asyncio.CancelledError:
                await until_done(ended)
                raise

    async def verify(self) -> None:
        """Check whether other programs deleted, replaced or damaged the file of a derived database,
        and restore it: with its content, or empty if it was damaged. Does nothing for any other
        database.

        The whole file is read only when it seems to have been changed from outside, since that
        takes time.
        """
        await self._on_thread(self._verify)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the database now."""
        found = [self._opened] if self._opened else []
        if self._integrity.is_gone():
            found.append(lost_file_problem(self.path, derived=self._schema.derived))
        if self._sync_lost:
            found.append(lost_sync_problem(self.path))
        if self._uncleared:
            found.append(Problem("storage_not_cut", self._uncleared.message, self._uncleared.cure))
        found += [
            Problem(error.code, error.message, error.cure)
            for error in (self._damaged, self._failing)
            if error is not None
        ]
        return (*found, *(self._guard.problems() if self._guard else ()))

    async def check(self) -> None:
        """Take and release the write lock on the connection's thread; nothing reaches the disk.

        Raises StorageError if nothing can be stored any more.
        """
        await self.read(lambda _: self._take_write_lock())

    async def _clean(self) -> None:
        hit("store.deleted")
        await self.read(lambda _: self._clear())
        if self._schema.derived:
            await self._on_thread(lambda: drop_asides(self.path))

    async def _enqueue(self, queue: deque[QueuedCall[Any]], call: QueuedCall[Any]) -> None:
        """Have the thread run the call, together with all others that are queued when the thread
        gets to it: waking the thread costs more than most calls. Raises StorageError once the
        database closes.
        """
        if self._is_closing:
            raise self._closed_error()
        queue.append(call)
        # The thread may clear `_batch` at any moment; it then runs this call with the others.
        batch = self._batch
        if batch is None:
            loop = asyncio.get_running_loop()
            batch = self._batch = self._unsubmitted = loop.create_future()
            loop.call_soon(self._submit)  # after every task that is about to queue a call
        # Cancelling one task must not cancel the future that others wait for.
        await asyncio.shield(batch)

    def _submit(self) -> None:
        """Hand the batch to the thread, if that has not happened yet: as aiosqlite's `_execute`
        does, but for many calls.
        """
        batch, self._unsubmitted = self._unsubmitted, None
        if batch is not None:
            self._thread._tx.put_nowait((batch, partial(self._run_batch, batch)))

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        if self._is_closing:
            raise self._closed_error()
        self._submit()  # calls that were queued earlier run first
        return await self._run(fn)

    async def _run(self, fn: Callable[[], T]) -> T:
        # aiosqlite offers single statements only, and other tasks could come between two of them;
        # `_execute` is what all of its own methods use to run a function on the thread.
        result: T = await self._thread._execute(fn)  # type: ignore[no-untyped-call]  # aiosqlite's
        return result

    def _connect(self) -> sqlite3.Connection:
        self._conn, self._opened = open_file(
            self.path, self._schema, self._synchronous, self._guard
        )
        self._integrity.begin(self.commits)
        return self._conn

    def _run_batch(self, batch: asyncio.Future[None]) -> None:
        # A batch that already ran between two steps of a copy must not run the calls of the next.
        if self._batch is batch:
            self._run_queued()

    def _run_queued(self) -> None:
        self._batch = None  # first: a call queued from here on begins a new batch
        # Reads are taken first, so that each of them sees all writes that were queued before it.
        reads, group = _drain(self._reads), _drain(self._writes)
        if group:
            self._commit(group)
            self._side_step(self._clear_if_owed)
        for call in reads:
            call.run(self._conn)
            if isinstance(call.error, sqlite3.Error):
                self._side_step(partial(self._note, call.error))
        if self._guard is not None:
            self._side_step(partial(self._guard.name_broken, self._conn))

    def _copy(self, path: Path) -> None:
        self._is_copying = True
        try:
            with closing(sqlite3.connect(path)) as target:
                self._conn.backup(target, pages=_COPIED, progress=self._run_between_steps)
        except sqlite3.Error as error:
            if is_of_the_copied(error):
                self._side_step(partial(self._note, error))
                raise self._translated(error) from error
            raise _copy_error(error, self.path, path) from error
        finally:
            self._is_copying = False

    def _run_between_steps(self, _: int, left: int, __: int) -> None:
        """Run the queued calls between two steps of a copy: SQLite adds their writes to it."""
        batch = self._batch
        if batch is None or not left:
            return
        self._run_queued()
        batch.get_loop().call_soon_threadsafe(_resolve, batch)

    def _side_step(self, step: Callable[[], None]) -> None:
        """Run a step whose result no caller waits for. A failure becomes a problem of the database:
        raised, it would tell all callers of the batch that their writes were not stored, though
        they were.
        """
        try:
            try:
                step()
            except sqlite3.Error as error:
                self._note(error)
        except (StorageError, OSError) as error:
            if not isinstance(error, StorageError):
                error = StorageError(
                    f"{self.path.name} could not be looked after ({error.strerror})",
                    cure=(
                        f"check the disk and the rights of {self.path.parent}, then restart agentd"
                    ),
                )
            log.exception("storage_upkeep_failed", database=self.path.name)
            self._failing = error

    def _clear(self) -> None:
        try:
            clear(self._conn, self.path)
            self._uncleared = None
        except StorageError as error:
            self._uncleared = error
            raise

    def _clear_if_owed(self) -> None:
        """Finish an earlier erasure that could not clean the files. Skipped during another erasure,
        which cleans up itself, and during a copy.
        """
        if self._uncleared is None or self._erasing.locked() or self._is_copying:
            return
        conn = self._conn
        conn.execute("PRAGMA busy_timeout = 0")
        try:
            clear(conn, self.path)
            self._uncleared = None
        except StorageError as error:
            self._uncleared = error
        finally:
            conn.execute(f"PRAGMA busy_timeout = {1000 * BUSY_TIMEOUT:.0f}")

    def _commit(self, group: list[QueuedCall[Any]]) -> None:
        conn = self._conn
        if self._sync_lost:
            for call in group:
                call.error = self._refusal()
            return
        try:
            if conn.in_transaction:  # the last rollback failed
                conn.execute("ROLLBACK")
            conn.execute("BEGIN IMMEDIATE")
            before = conn.total_changes
            if self._guard is not None:
                self._guard.begin()
            for call in group:
                call.run(conn)
                if call.error is not None:
                    self._give_up(group, call.error)
                    return
            is_guarded = self._guard is not None and conn.total_changes > before
            counted = self._guard.count(conn) if self._guard and is_guarded else None
            conn.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(group, error)
            return
        if self._guard is not None and counted is not None:
            self._guard.acknowledge(counted)
        self.commits += 1
        self._failing = None

    def _give_up(self, group: list[QueuedCall[Any]], error: Exception) -> None:
        conn = self._conn
        try:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
        except sqlite3.Error as second:
            self._side_step(partial(self._note, second))
        if isinstance(error, sqlite3.Error):
            self._side_step(partial(self._note, error))
        if len(group) == 1 or self._sync_lost:
            for call in group:
                call.error = error
            return
        for call in group:  # one by one: others may succeed, or fit into the room left
            self._commit([call])

    def _note(self, error: sqlite3.Error) -> None:
        told = translate(error, self.path)
        if is_lost_sync(error):
            self._sync_lost = True
            log.error("storage_sync_failed", database=self.path.name)
        elif told.code == "storage_corrupt":
            log.error("storage_corrupt", database=self.path.name)
            if self._schema.derived:
                self._begin_anew(told)
            else:
                self._damaged = told
        elif not isinstance(error, _OUR_MISTAKES):
            if self._failing is None:
                log.error(told.code, database=self.path.name)
            self._failing = told

    def _begin_anew(self, why: StorageError) -> None:
        self._conn.close()
        problem = put_aside(self.path, self._schema, why)
        self._connect()
        self._opened = problem
        self.begun_anew += 1

    def _verify(self) -> None:
        if not self._schema.derived:
            return
        conn = self._conn
        try:
            if self._integrity.is_gone():
                self._come_back()
            elif self._integrity.is_suspect(self.commits):
                check_whole(conn, self.path)
        except sqlite3.Error as error:
            self._note(error)
            if not isinstance(told := self._translated(error), StorageCorrupt):
                raise told from error
        except StorageCorrupt as error:
            self._begin_anew(error)
        except OSError as error:
            msg = f"{self.path.name} was deleted, and cannot be written again ({error.strerror})"
            raise StorageError(msg, cure=f"make room and rights in {self.path.parent}") from error

    def _come_back(self) -> None:
        """Write the content of the deleted file, which is still open, to its old place."""
        copy = copy_database(self._conn, self.path)
        self._conn.close()
        problem = put_back(copy, self.path, self._schema)
        self._connect()
        self._opened = self._opened or problem
        log.warning("storage_file_written_again", database=self.path.name)

    def _translated(self, error: sqlite3.Error) -> StorageError:
        told = translate(error, self.path)
        if self._schema.derived and isinstance(told, StorageCorrupt):
            return StorageCorrupt(told.message, cure="nothing is lost, it is built again")
        return told

    def _take_write_lock(self) -> None:
        if self._sync_lost:
            raise self._refusal()
        conn = self._conn
        try:
            conn.execute("BEGIN IMMEDIATE")
            conn.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _closed_error(self) -> StorageError:
        return StorageError(f"{self.path.name} is closed", cure="start agentd again")

    def _refusal(self) -> StorageError:
        problem = lost_sync_problem(self.path)
        return StorageError(problem.text, cure=problem.cure)


class QueuedCall(Generic[T]):
    """A transaction or a read in the queue; after its run `error` or `result` holds the outcome."""

    __slots__ = ("error", "fn", "result")

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.result: T
        self.error: Exception | None = None

    def run(self, conn: sqlite3.Connection) -> None:
        """Run the function, for the first time or again."""
        self.error = None
        try:
            self.result = self.fn(conn)
        except Exception as error:  # noqa: BLE001 - the caller raises it, in `outcome`
            self.error = error

    def outcome(self, translated: Callable[[sqlite3.Error], StorageError]) -> T:
        """Return the result, or raise the error of the run, translated if it is SQLite's."""
        if isinstance(self.error, sqlite3.Error):
            raise translated(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.result


def _copy_error(error: sqlite3.Error, path: Path, copy: Path) -> StorageError:
    """Return the error for a failed copy. The database itself lost and refused nothing."""
    is_full = isinstance(translate(error, copy), StorageFull)
    return (StorageFull if is_full else StorageError)(
        f"{path.name} could not be copied to {copy} ({error})",
        cure=f"{'make room on' if is_full else 'look after'} that disk; all is stored as before",
    )


def _resolve(batch: asyncio.Future[None]) -> None:
    if not batch.done():
        batch.set_result(None)


def _drain(queue: deque[QueuedCall[Any]]) -> list[QueuedCall[Any]]:
    """Take all calls out of the queue, one by one: the event loop's thread appends meanwhile, and a
    call added between a copy of the queue and a `clear` would be lost.
    """
    drained = []
    while queue:
        drained.append(queue.popleft())
    return drained
