"""Deleting a session everywhere, and erasing what is too old."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from agentd.core.errors import AgentdError, NotFound, StorageError
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.retention import Aged, Retained
from agentd.core.turn import SessionKey
from agentd.engine.sessions import Sessions
from agentd.memory.index.indexer import Indexer

log = structlog.get_logger()

_EVERY = timedelta(days=1)
_AGAIN = timedelta(hours=1)  # after a failure
_QUIET = timedelta(days=7)  # for how long a clock is believed that no new row speaks for


class Deletions(Protocol):
    """The deletions whose words may still stand elsewhere, by number."""

    async def unerased(self) -> Mapping[int, SessionKey]:
        """All of them. Raises StorageError."""

    async def erased(self, deletion: int) -> None:
        """Nothing is left of this one. Raises StorageError."""


class SessionErasure:
    """Deletes a session in the store, which remembers that with the same commit, and then what the other
    `places` have of it, by their names for the user. Doing a place twice is harmless: whatever a crash, a
    failure or a client that leaves has cut short is done at the next `tick`.

    Also a Tick: it looks once a minute for what is left over.
    """

    def __init__(
        self,
        sessions: Sessions,
        deletions: Deletions,
        places: Mapping[str, Callable[[SessionKey], Awaitable[object]]],
    ) -> None:
        self._sessions = sessions
        self._deletions = deletions
        self._places = places
        self._lock = asyncio.Lock()
        self._left: dict[int, dict[str, Exception]] = {}  # places that failed, and how

    async def delete(self, session: SessionKey) -> None:
        """Erase the session and what any place has of it; `main` is emptied and stays.

        When this returns, no file of the daemon's state holds a byte of it. Notes that were made from
        it are the user's and stay. One whose deletion is not finished may be deleted again. Raises
        NotFound, Busy, ShuttingDown, and StorageError, also where the session is gone and a place has
        failed: that is tried again by itself.
        """
        try:
            await self._sessions.delete(session, self._finish)
        except NotFound:
            if session not in (await self._deletions.unerased()).values():
                raise
            await self._finish(session)

    async def tick(self) -> None:
        """Finish what is left over; of what failed before, the places that failed."""
        async with self._lock:
            for number, session in (await self._deletions.unerased()).items():
                await self._carry_out(number, session)

    async def next_due(self) -> datetime | None:
        """Never at a set time: a look a minute is enough."""
        return None

    def problems(self) -> tuple[Problem, ...]:
        """Places that still have what was deleted."""
        faults = {name: fault for left in self._left.values() for name, fault in left.items()}
        if not faults:
            return ()
        fault = _told("what was deleted", faults)
        return (Problem("deletion_pending", fault.message, fault.cure),)

    async def _finish(self, session: SessionKey) -> None:
        async with self._lock:  # a tick may have been faster
            for number, deleted in (await self._deletions.unerased()).items():
                if deleted != session:
                    continue
                await self._carry_out(number, session)
                if number in self._left:
                    raise _told(f"session {session!r} is deleted, yet its text", self._left[number])

    async def _carry_out(self, number: int, session: SessionKey) -> None:
        """Erase it in every place, each on its own, and end the deletion if nothing is left."""
        failed: dict[str, Exception] = {}
        for name in tuple(self._left.get(number, self._places)):
            try:
                await self._places[name](session)
            except Exception as error:
                # The other places must not wait for this one, which is done again.
                if number not in self._left:  # once; `problems` says it from then on
                    log.exception("deleting_failed", place=name)
                failed[name] = error
        if failed:
            self._left[number] = failed
            return
        await self._deletions.erased(number)
        self._left.pop(number, None)


def _told(what: str, faults: Mapping[str, Exception]) -> StorageError:
    first = next(iter(faults.values()))
    told, cure = type(first).__name__, ""
    if isinstance(first, AgentdError):
        told, cure = first.message, first.cure
    return StorageError(
        f"{what} still stands in the {' and the '.join(faults)}: {told}",
        cure=cure or "it is tried again every minute; see `agentd logs`",
    )


class OldRows(Protocol):
    """Where conversations are kept."""

    async def newest(self, now: datetime) -> datetime | None:
        """When the newest row was stored that is not later than `now`; None if there is none."""

    async def survey(self, before: datetime) -> Aged:
        """What is older than the moment."""

    async def remove(self, before: datetime, sessions: Sequence[SessionKey]) -> None:
        """Erase what may go of these sessions, down to the bytes."""


class Retention:
    """A Tick: works at the start and then once a day, unless `days` is 0.

    The index lets go of a session before the store does and takes up again what is left: a crash
    anywhere in between leaves rows that the next run erases, and never words that search still knows
    of rows that are gone. `others` erase what is as old and kept elsewhere.

    What a clock that is years ahead would erase is lost for good. So days are counted back from now, but no
    further on than from a week after the newest row.
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
        self._found = Aged()
        self._failure: Problem | None = None

    def adopt(self, days: int) -> None:
        """Keep conversations for as many days from now on."""
        if days != self._days:
            self._days = days
            self._due = self._clock.now()

    async def tick(self) -> None:
        """Erase what has become too old, if it is time for that."""
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
        """When it is time again; None while everything is kept."""
        return min(self._due, self._clock.now() + _EVERY) if self._days else None

    async def run(self) -> None:
        """Erase what is too old now. Raises StorageError; what is left then goes the next time."""
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
        """What it came to when it last ran, unless everything is kept by now."""
        if not self._days or self._last is None:
            return Retained(self._days)
        return Retained(self._days, self._last, self._found.rows, self._found.kept)

    def problems(self) -> tuple[Problem, ...]:
        """Why old rows are still there."""
        return (self._failure,) if self._failure and self._days else ()
