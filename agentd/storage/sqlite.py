"""One SQLite database: whole transactions on one connection; those that wait are committed as a group."""

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
from agentd.storage.proofs import Guard
from agentd.storage.sqlite_errors import (
    is_lost_sync,
    is_of_the_copied,
    lost_sync_problem,
    translate,
)

log = structlog.get_logger()

T = TypeVar("T")

# What a statement of ours can get wrong, whatever the disk does.
_OUR_MISTAKES = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
_COPIED = 64  # pages that are copied in one step, which other work waits for


class Database:
    """The only door to a database file; also the Probe `store`.

    `commits` counts transactions that reached the disk, `begun_anew` how often a derived database
    was found damaged while open, and emptied. There is one connection on one thread, because two of
    them can corrupt a WAL in SQLite up to 3.51.2.
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
        self._batch: asyncio.Future[None] | None = None  # done when the queued calls have been run
        self._unsubmitted: asyncio.Future[None] | None = None  # the same, until the thread has it
        self._opened: Problem | None = None
        self._failing: StorageError | None = None  # why the last write was refused
        self._damaged: StorageError | None = None  # seen while open; it is salvaged at a start
        self._guard = Guard(path, checks=checks) if schema.guarded else None
        self._sync_lost = False
        self._is_closing = False
        self._is_copying = False
        self._erasing = asyncio.Lock()
        self._uncleared: StorageError | None = None  # why the files hold deleted bytes yet
        self._integrity = IntegrityWatch(path)
        self._conn: (
            sqlite3.Connection
        )  # used on the thread alone; another one if the file is another
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
        """An open database, closed when the block ends, after everything that waits. Without `checks` a
        guarded one proves nothing, which only shows what its proofs are for.

        Raises StorageCorrupt for a file that is damaged or not ours, StorageError for one of a
        newer agentd; a derived database is put aside in these cases and begins anew.
        """
        database = cls(path, migrations, synchronous, checks=checks)
        try:
            await database._thread
        except BaseException:
            # It has been told to stop; left alone it would report that to a loop that may be gone.
            database._thread._thread.join()
            raise
        try:
            yield database
        finally:
            # What came until now is done, and nothing queues behind the end.
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
        """The name as a Probe."""
        return "store" if not self._schema.derived else f"store_{self._schema.name}"

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` as one transaction; when this returns, what it did is durable.

        It shares a commit with whatever else waits, yet fails alone: `fn` is run a second time when
        the shared commit failed, so it must do nothing but use the connection. Cancelling the
        caller does not stop the transaction.
        """
        call = QueuedCall(fn)
        await self._enqueue(self._writes, call)
        return call.outcome(self._translated)

    async def execute(self, sql: str, values: Sequence[object]) -> int:
        """Run one changing statement as a transaction; returns how many rows it changed."""
        return await self.write(lambda conn: conn.execute(sql, values).rowcount)

    async def erase(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """`write`, after which no byte of what `fn` deleted is left in the database's files.

        The files are read once for that, or written anew if much of them is free; everything else waits.
        What a crash or an error cuts short is done when the database is next opened. Raises StorageError
        if another program reads the database: the bytes go with the first commit after that.
        """
        async with self._erasing:
            first = await self._on_thread(lambda: mark_unclean(self.path))
            try:
                result = await self.write(fn)
            except AgentdError:
                if first:  # else an earlier deletion still has bytes there
                    await self._on_thread(lambda: unmark(self.path))
                raise
            await self._clean()
        return result

    @asynccontextmanager
    async def erasing(self) -> AsyncIterator[None]:
        """`erase` for many transactions: when the block ends, no byte of what those within it deleted
        is left. What a crash or an error cuts short is done when the database is next opened.
        """
        async with self._erasing:
            await self._on_thread(lambda: mark_unclean(self.path))
            yield
            await self._clean()

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `fn` finds; it sees one state of the database and all earlier writes."""
        call = QueuedCall(fn)
        await self._enqueue(self._reads, call)
        return call.outcome(self._translated)

    async def copy(self, path: Path) -> None:
        """Write the database into a new file, as it is at some moment before this returns.

        Reads and writes continue during the copy; erasures wait, because pages already copied would still
        hold the erased bytes. Raises StorageError; an error of the new file, whose folder may be gone, is
        no problem of the database.
        """
        async with self._erasing:
            await self._on_thread(lambda: self._copy(path))

    async def verify(self) -> None:
        """Notice that others deleted, exchanged or damaged the file, and bring a derived database back, with
        all it held unless it was damaged.

        The whole file is read only when something seems to have changed it, since that takes time.
        """
        await self._on_thread(self._verify)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now."""
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

    async def prove(self) -> None:
        """Take and give back the write lock on the connection's thread; nothing reaches the disk.

        Raises StorageError when nothing can be stored any more.
        """
        await self.read(lambda _: self._take_write_lock())

    async def _clean(self) -> None:
        hit("store.deleted")
        await self.read(lambda _: self._clear())
        if self._schema.derived:
            await self._on_thread(lambda: drop_asides(self.path))

    async def _enqueue(self, queue: deque[QueuedCall[Any]], call: QueuedCall[Any]) -> None:
        """Have the thread run the call, together with all that wait when it comes to it: waking the thread
        costs more than most calls. Raises StorageError once the database closes.
        """
        if self._is_closing:
            raise self._closed_error()
        queue.append(call)
        # The thread clears it at any moment, and has this call among those that it runs then.
        batch = self._batch
        if batch is None:
            loop = asyncio.get_running_loop()
            batch = self._batch = self._unsubmitted = loop.create_future()
            loop.call_soon(self._submit)  # after all that are about to wait as well
        # One task's end must not be the end of a wait that others share.
        await asyncio.shield(batch)

    def _submit(self) -> None:
        """Give the thread the batch that it has not got: as aiosqlite's `_execute` does, but for many calls."""
        batch, self._unsubmitted = self._unsubmitted, None
        if batch is not None:
            self._thread._tx.put_nowait((batch, partial(self._run_batch, batch)))

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        if self._is_closing:
            raise self._closed_error()
        self._submit()  # calls that were queued before are run before
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
        # A batch that was run between two steps of a copy is over; the calls of the next wait for it.
        if self._batch is batch:
            self._run_queued()

    def _run_queued(self) -> None:
        self._batch = None  # first: a call that comes from here on makes a batch of its own
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
        """Run the queued calls between two steps of a copy: SQLite carries over what they write."""
        batch = self._batch
        if batch is None or not left:
            return
        self._run_queued()
        batch.get_loop().call_soon_threadsafe(_resolve, batch)

    def _side_step(self, step: Callable[[], None]) -> None:
        """Do what no caller waits for. Its failure becomes a problem of the database: raised, it would tell
        all callers of the batch that theirs was not stored, though it was.
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
                    cure=f"check the disk and the rights of {self.path.parent}, then restart agentd",
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
        """Finish an erasure that could not clean the files before. Skipped while another erasure, which will
        clean up itself, or a copy goes on.
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
            if conn.in_transaction:  # the disk failed in the middle of the last rollback
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
        for call in group:  # the others are right, or small enough for what room there is
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
        """Write what the deleted file holds, which is open yet, to its old place."""
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
        """Return the result. Raises the error of the run, translated where it is SQLite's."""
        if isinstance(self.error, sqlite3.Error):
            raise translated(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.result


def _copy_error(error: sqlite3.Error, path: Path, copy: Path) -> StorageError:
    """Why the copy failed: of what is stored in the database nothing is lost or refused."""
    is_full = isinstance(translate(error, copy), StorageFull)
    return (StorageFull if is_full else StorageError)(
        f"{path.name} could not be copied to {copy} ({error})",
        cure=f"{'make room on' if is_full else 'look after'} that disk; all is stored as before",
    )


def _resolve(batch: asyncio.Future[None]) -> None:
    if not batch.done():
        batch.set_result(None)


def _drain(queue: deque[QueuedCall[Any]]) -> list[QueuedCall[Any]]:
    """Take all calls out of the queue, one by one: the loop's thread appends meanwhile, and what it adds
    between a copy and a `clear` would be lost.
    """
    drained = []
    while queue:
        drained.append(queue.popleft())
    return drained
