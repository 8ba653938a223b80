"""One SQLite database: whole transactions on one connection, waiting ones committed together."""

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
    PATIENCE,
    IntegrityWatch,
    Synchronous,
    check_whole,
    copied,
    lost_file,
    open_file,
    put_aside,
    put_back,
)
from agentd.storage.migrations import Schema
from agentd.storage.proofs import Guard
from agentd.storage.sqlite_errors import is_lost_sync, is_of_the_copied, lost_sync, translate

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
        self._writes: deque[Waiting[Any]] = deque()
        self._reads: deque[Waiting[Any]] = deque()
        self._trip: asyncio.Future[None] | None = None  # the one to the thread that has not begun
        self._unsent: asyncio.Future[None] | None = None  # the same, before the thread has it
        self._opened: Problem | None = None
        self._failing: StorageError | None = None  # why the last write was refused
        self._damaged: StorageError | None = None  # seen while open; it is salvaged at a start
        self._guard = Guard(path, checks=checks) if schema.guarded else None
        self._latched = False
        self._is_closing = False
        self._is_copying = False
        self._erasing = asyncio.Lock()
        self._uncut: StorageError | None = None  # why the files hold deleted bytes yet
        self._wear = IntegrityWatch(path)
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
            database._send()
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
        waiting = Waiting(fn)
        await self._travel(self._writes, waiting)
        return waiting.outcome(self._told)

    async def execute(self, sql: str, values: Sequence[object]) -> int:
        """Run one changing statement as a transaction; returns how many rows it changed."""
        return await self.write(lambda conn: conn.execute(sql, values).rowcount)

    async def erase(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """`write`, after which no byte of what `fn` deleted is left in the database's files.

        They are read once for that, or written anew if much is free; everything else waits. What a crash or an error cuts short is done when the database is next opened.
        Raises StorageError if another program reads it: the bytes go with the first commit after that.
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
        """What `fn` finds; it sees one state of the database and all earlier writes."""
        waiting = Waiting(fn)
        await self._travel(self._reads, waiting)
        return waiting.outcome(self._told)

    async def copy(self, path: Path) -> None:
        """Write the database into a new file, over the one connection, as it is at some moment before this
        returns. Other work goes on in between, but for erasing: a part that is copied already would keep
        what it takes away. Raises StorageError; one of the new file, whose folder may be gone by then,
        is no problem of the database.
        """
        async with self._erasing:
            await self._on_thread(lambda: self._copy(path))

    async def verify(self) -> None:
        """Notice that the file was deleted, exchanged or damaged by others. A derived database comes
        back then, with all it held unless it was damaged, as after an error of a read. Reading all
        of it takes time, so that is done when something seems to have changed it.
        """
        await self._on_thread(self._verify)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now."""
        found = [self._opened] if self._opened else []
        if self._wear.is_gone():
            found.append(lost_file(self.path, derived=self._schema.derived))
        if self._latched:
            found.append(lost_sync(self.path))
        if self._uncut:
            found.append(Problem("storage_not_cut", self._uncut.message, self._uncut.cure))
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

    async def _travel(self, line: deque[Waiting[Any]], waiting: Waiting[Any]) -> None:
        """Have the thread do it, with all else that waits. A trip costs more than most of what it is made
        for, so all that wait when it begins share it. Raises StorageError once the database closes.
        """
        if self._is_closing:
            raise self._closed()
        line.append(waiting)
        trip = self._trip  # the thread clears it at any moment, and does then what waits by now
        if trip is None:
            loop = asyncio.get_running_loop()
            trip = self._trip = self._unsent = loop.create_future()
            loop.call_soon(self._send)  # after all that are about to wait as well
        # One task's end must not be the end of a wait that others share.
        await asyncio.shield(trip)

    def _send(self) -> None:
        """Give the trip to the thread, if it has not been: as aiosqlite's `_execute` does it, but for many."""
        trip, self._unsent = self._unsent, None
        if trip is not None:
            self._thread._tx.put_nowait((trip, partial(self._do_trip, trip)))

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        if self._is_closing:
            raise self._closed()
        self._send()  # what came before this is done before it
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
        self._wear.begin(self.commits)
        return self._conn

    def _do_trip(self, trip: asyncio.Future[None]) -> None:
        # One that was made between two steps of a copy must not end the next, which has not been sent.
        if self._trip is trip:
            self._do_waiting()

    def _do_waiting(self) -> None:
        self._trip = None  # before looking: what comes from here on makes a trip of its own
        looks, group = taken(self._reads), taken(self._writes)  # a look sees all writes before it
        if group:
            self._commit(group)
            self._beside(self._cut)
        for waiting in looks:
            waiting.run(self._conn)
            if isinstance(waiting.error, sqlite3.Error):
                self._beside(partial(self._note, waiting.error))
        if self._guard is not None:
            self._beside(partial(self._guard.name_broken, self._conn))

    def _copy(self, path: Path) -> None:
        self._is_copying = True
        try:
            with closing(sqlite3.connect(path)) as target:
                self._conn.backup(target, pages=_COPIED, progress=self._do_between)
        except sqlite3.Error as error:
            if is_of_the_copied(error):
                self._beside(partial(self._note, error))
                raise self._told(error) from error
            raise _uncopied(error, self.path, path) from error
        finally:
            self._is_copying = False

    def _do_between(self, _: int, left: int, __: int) -> None:
        """Do what waits by now between two steps of a copy: SQLite carries what the connection of the copy
        writes into it.
        """
        trip = self._trip
        if trip is None or not left:
            return
        self._do_waiting()
        trip.get_loop().call_soon_threadsafe(_arrive, trip)

    def _beside(self, step: Callable[[], None]) -> None:
        """Do what nobody waits for. It fails as a problem of the database: raised, it would tell all who
        share the trip that theirs was not stored, though it was.
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
            self._uncut = None
        except StorageError as error:
            self._uncut = error
            raise

    def _cut(self) -> None:
        """Leave nothing of what was deleted, if that is owed, unless an erasure goes on that does so itself
        in the end, or a copy, which may have it already.
        """
        if self._uncut is None or self._erasing.locked() or self._is_copying:
            return
        conn = self._conn
        conn.execute("PRAGMA busy_timeout = 0")
        try:
            clear(conn, self.path)
            self._uncut = None
        except StorageError as error:
            self._uncut = error
        finally:
            conn.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE:.0f}")

    def _commit(self, group: list[Waiting[Any]]) -> None:
        conn = self._conn
        if self._latched:
            for waiting in group:
                waiting.error = self._refusal()
            return
        try:
            if conn.in_transaction:  # the disk failed in the middle of the last rollback
                conn.execute("ROLLBACK")
            conn.execute("BEGIN IMMEDIATE")
            before = conn.total_changes
            if self._guard is not None:
                self._guard.begin()
            for waiting in group:
                waiting.run(conn)
                if waiting.error is not None:
                    self._give_up(group, waiting.error)
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

    def _give_up(self, group: list[Waiting[Any]], error: Exception) -> None:
        conn = self._conn
        try:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
        except sqlite3.Error as second:
            self._beside(partial(self._note, second))
        if isinstance(error, sqlite3.Error):
            self._beside(partial(self._note, error))
        if len(group) == 1 or self._latched:
            for waiting in group:
                waiting.error = error
            return
        for waiting in group:  # the others are right, or small enough for what room there is
            self._commit([waiting])

    def _note(self, error: sqlite3.Error) -> None:
        told = translate(error, self.path)
        if is_lost_sync(error):
            self._latched = True
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
            if self._wear.is_gone():
                self._come_back()
            elif self._wear.is_suspect(self.commits):
                check_whole(conn, self.path)
        except sqlite3.Error as error:
            self._note(error)
            if not isinstance(told := self._told(error), StorageCorrupt):
                raise told from error
        except StorageCorrupt as error:
            self._begin_anew(error)
        except OSError as error:
            msg = f"{self.path.name} was deleted, and cannot be written again ({error.strerror})"
            raise StorageError(msg, cure=f"make room and rights in {self.path.parent}") from error

    def _come_back(self) -> None:
        """Write what the deleted file holds, which is open yet, to its old place."""
        copy = copied(self._conn, self.path)
        self._conn.close()
        problem = put_back(copy, self.path, self._schema)
        self._connect()
        self._opened = self._opened or problem
        log.warning("storage_file_written_again", database=self.path.name)

    def _told(self, error: sqlite3.Error) -> StorageError:
        told = translate(error, self.path)
        if self._schema.derived and isinstance(told, StorageCorrupt):
            return StorageCorrupt(told.message, cure="nothing is lost, it is built again")
        return told

    def _take_write_lock(self) -> None:
        if self._latched:
            raise self._refusal()
        conn = self._conn
        try:
            conn.execute("BEGIN IMMEDIATE")
            conn.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._told(error) from error

    def _closed(self) -> StorageError:
        return StorageError(f"{self.path.name} is closed", cure="start agentd again")

    def _refusal(self) -> StorageError:
        problem = lost_sync(self.path)
        return StorageError(problem.text, cure=problem.cure)


class Waiting(Generic[T]):
    """A transaction or a look that waits; after its run `error` or `result` holds the outcome."""

    __slots__ = ("error", "fn", "result")

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.result: T
        self.error: Exception | None = None

    def run(self, conn: sqlite3.Connection) -> None:
        """Run it; it may be run again."""
        self.error = None
        try:
            self.result = self.fn(conn)
        except Exception as error:  # noqa: BLE001 - the caller raises it, in `outcome`
            self.error = error

    def outcome(self, told: Callable[[sqlite3.Error], StorageError]) -> T:
        """The result, or the error raised.

        Raises that error, as one of ours where it is of SQLite.
        """
        if isinstance(self.error, sqlite3.Error):
            raise told(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.result


def _uncopied(error: sqlite3.Error, path: Path, copy: Path) -> StorageError:
    """Why the copy failed: of what is stored in the database nothing is lost or refused."""
    is_full = isinstance(translate(error, copy), StorageFull)
    return (StorageFull if is_full else StorageError)(
        f"{path.name} could not be copied to {copy} ({error})",
        cure=f"{'make room on' if is_full else 'look after'} that disk; all is stored as before",
    )


def _arrive(trip: asyncio.Future[None]) -> None:
    if not trip.done():
        trip.set_result(None)


def taken(waiting: deque[Waiting[Any]]) -> list[Waiting[Any]]:
    """All that wait, who wait no longer."""
    found = []
    while waiting:
        found.append(waiting.popleft())
    return found
