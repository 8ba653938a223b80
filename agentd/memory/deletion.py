"""Deletes a session everywhere, and erases rows that are too old."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from agentd.core.errors import AgentdError, NotFound, StorageError
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.retention import AgedRows, Retained
from agentd.core.turn import SessionKey
from agentd.engine.context_requests import ContextRequests
from agentd.memory.index.indexer import Indexer

log = structlog.get_logger()

_EVERY = timedelta(days=1)
_AGAIN = timedelta(hours=1)  # after a failure
_QUIET = timedelta(days=7)  # how far a clock may be ahead of the newest row and still be trusted


class Deletions(Protocol):
    """The deletions whose words other places may still hold, by number."""

    async def unerased(self) -> Mapping[int, SessionKey]:
        """Return all of them. Raises StorageError."""

    async def mark_erased(self, deletion: int) -> None:
        """Delete the record of one, because no place holds its words any more. Raises
        StorageError.
        """


class SessionErasure:
    """Deletes a session in the store, which records the deletion in the same commit, and then in
    the other `places`, given by their names for the user. Erasing a place twice is harmless: what a
    crash, a failure or a client that leaves has interrupted is done at the next `tick`.

    It is also a Tick, which checks once a minute for anything left over.
    """

    def __init__(
        self,
        requests: ContextRequests,
        deletions: Deletions,
        places: Mapping[str, Callable[[SessionKey], Awaitable[object]]],
    ) -> None:
        self._requests = requests
        self._deletions = deletions
        self._places = places
        self._lock = asyncio.Lock()
        self._left: dict[int, dict[str, Exception]] = {}  # failed places, with the error

    async def delete(self, session: SessionKey) -> None:
        """Erase the session in the store and in every place; `main` is emptied and stays.

        When this returns, no file of the daemon's state holds a byte of it. Notes made from the
        session are the user's and stay. A session whose deletion is unfinished may be deleted
        again. Raises NotFound, Busy, ShuttingDown, and StorageError, also if the session is gone
        but a place has failed: that place is retried automatically.
        """
        try:
            await self._requests.delete(session, self._finish)
        except NotFound:
            if session not in (await self._deletions.unerased()).values():
                raise
            await self._finish(session)

    async def tick(self) -> None:
        """Finish unfinished deletions; where some places failed before, only in those."""
        async with self._lock:
            for number, session in (await self._deletions.unerased()).items():
                await self._carry_out(number, session)

    async def next_due(self) -> datetime | None:
        """Return None: a check every minute is enough."""
        return None

    def problems(self) -> tuple[Problem, ...]:
        """Return the places that still hold deleted text."""
        faults = {name: fault for left in self._left.values() for name, fault in left.items()}
        if not faults:
            return ()
        fault = _failure("what was deleted", faults)
        return (Problem("deletion_pending", fault.message, fault.cure),)

    async def _finish(self, session: SessionKey) -> None:
        async with self._lock:  # a tick may have been faster
            for number, deleted in (await self._deletions.unerased()).items():
                if deleted != session:
                    continue
                await self._carry_out(number, session)
                if number in self._left:
                    raise _failure(
                        f"session {session!r} is deleted, yet its text", self._left[number]
                    )

    async def _carry_out(self, number: int, session: SessionKey) -> None:
        """Erase in every place, independently, and end the deletion if nothing is left."""
        failed: dict[str, Exception] = {}
        for name in tuple(self._left.get(number, self._places)):
            try:
                await self._places[name](session)
            except Exception as error:
                # A failure must not hold up the other places; this one is done again.
                if number not in self._left:  # logged once; `problems` reports it from then on
                    log.exception("deleting_failed", place=name)
                failed[name] = error
        if failed:
            self._left[number] = failed
            return
        await self._deletions.mark_erased(number)
        self._left.pop(number, None)


def _failure(what: str, faults: Mapping[str, Exception]) -> StorageError:
    first = next(iter(faults.values()))
    told, cure = type(first).__name__, ""
    if isinstance(first, AgentdError):
        told, cure = first.message, first.cure
    return StorageError(
        f"{what} still stands in the {' and the '.join(faults)}: {told}",
        cure=cure or "it is tried again every minute; see `agentd logs`",
    )


class OldRows(Protocol):
    """The store of rows, as retention uses it."""

    async def newest(self, now: datetime) -> datetime | None:
        """Return the time of the newest row that is not later than `now`; None if there is none."""

    async def survey(self, before: datetime) -> AgedRows:
        """Return what is older than `before`."""

    async def remove(self, before: datetime, sessions: Sequence[SessionKey]) -> None:
        """Erase the old rows of these sessions that may go, down to the bytes."""


class Retention:
    """A Tick that erases old rows at the start and then once a day, unless `days` is 0.

    A session is removed from the index before the store erases its rows, and what is left is
    indexed again. After a crash in between some old rows are left, which the next run erases, but
    search never knows rows that are gone. `others` erase what is as old and stored elsewhere.

    A clock that is years ahead must not erase everything. So the days are counted back from now, or
    from a week after the newest row if that is earlier.
    """

    def __init__(
        self,
        rows: OldRows,
        indexer: Indexer,
        clock: Clock,
        days: int,
        others: Sequence[Callable[[datetime], Awaitable[object]]] = (),
    ) -> None:
        self._rows = rows
        self._indexer = indexer
        self._clock = clock
        self._days = days
        self._others = tuple(others)
        self._due = clock.now()
        self._last: datetime | None = None
        self._found = AgedRows()
        self._failure: Problem | None = None

    def adopt(self, days: int) -> None:
        """Keep conversations for this many days from now on."""
        if days != self._days:
            self._days = days
            self._due = self._clock.now()

    async def tick(self) -> None:
        """Erase what has become too old, if a run is due."""
        now = self._clock.now()
        self._due = min(self._due, now + _EVERY)  # a clock that was ahead does not put it off
        if not self._days or now < self._due:
            return
        self._due = now + _AGAIN
        try:
            await self.run()
        except AgentdError as error:
            # What is left is erased an hour later; conversations go on meanwhile.
            log.warning("retention_failed", reason=error.reason)
            self._failure = Problem("retention_failed", error.message, error.cure)
        else:
            self._due = now + _EVERY
            self._failure = None

    async def next_due(self) -> datetime | None:
        """Return when the next run is due; None while everything is kept."""
        return min(self._due, self._clock.now() + _EVERY) if self._days else None

    async def run(self) -> None:
        """Erase now what is too old. Raises StorageError; the rest is erased at the next run."""
        now = self._clock.now()
        newest = await self._rows.newest(now)
        today = now if newest is None else min(now, newest + _QUIET)
        before = today - timedelta(days=self._days)
        found = await self._rows.survey(before)
        if found.sessions or found.silent:
            async with self._indexer.without(found.sessions):
                await self._rows.remove(before, found.sessions)
        for erase in self._others:
            await erase(before)
        self._last, self._found = now, found
        log.info(
            "retention_done",
            before=before.isoformat(),
            sessions=len(found.sessions),
            rows=found.rows,
            silent_turns=found.silent,
            kept=sum(found.kept.values()),
        )

    def status(self) -> Retained:
        """Return the result of the last run, unless everything is kept now."""
        if not self._days or self._last is None:
            return Retained(self._days)
        return Retained(self._days, self._last, self._found.rows, self._found.kept)

    def problems(self) -> tuple[Problem, ...]:
        """Return why old rows are still there."""
        return (self._failure,) if self._failure and self._days else ()
