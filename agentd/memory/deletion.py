"""Deleting a session everywhere, and erasing what is too old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from agentd.core.errors import AgentdError
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.retention import Aged, Retained
from agentd.core.turn import SessionKey
from agentd.engine.sessions import Sessions
from agentd.memory.index.indexer import Indexer

log = structlog.get_logger()

_EVERY = timedelta(days=1)
_AGAIN = timedelta(hours=1)  # after a failure


class SessionErasure:
    """Deletes in the order in which a crash in between is made good: the index follows the store.

    `drop_images` erases images that nothing refers to any more, `forget_typed` what was typed in the
    session, `deleted` tells those who know where words came from.
    """

    def __init__(
        self,
        sessions: Sessions,
        indexer: Indexer,
        drop_images: Callable[[], Awaitable[object]],
        forget_typed: Callable[[SessionKey], Awaitable[None]],
        deleted: Callable[[SessionKey], Awaitable[object]],
    ) -> None:
        self._sessions = sessions
        self._indexer = indexer
        self._drop_images = drop_images
        self._forget_typed = forget_typed
        self._deleted = deleted

    async def delete(self, session: SessionKey) -> None:
        """Erase the session, what search knows of it and what was typed in it; `main` is emptied and stays.

        When this returns, no file of the daemon's state holds a byte of it. Notes that were made from
        it are the user's and stay. Raises NotFound, Busy, ShuttingDown, StorageError.
        """
        await self._sessions.delete(session)
        await self._drop_images()
        await self._indexer.forget(session)
        await self._forget_typed(session)
        await self._deleted(session)


class OldRows(Protocol):
    """Where conversations are kept."""

    async def survey(self, before: datetime) -> Aged:
        """What is older than the moment."""

    async def remove(self, before: datetime, sessions: Sequence[SessionKey]) -> None:
        """Erase what may go of these sessions, down to the bytes."""


class Retention:
    """A Tick: works at the start and then once a day, unless `days` is 0.

    The index lets go of a session before the store does and takes up again what is left: a crash
    anywhere in between leaves rows that the next run erases, and never words that search still knows
    of rows that are gone. `others` erase what is as old and kept elsewhere.
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
        return self._due if self._days else None

    async def run(self) -> None:
        """Erase what is too old now. Raises StorageError; what is left then goes the next time."""
        now = self._clock.now()
        before = now - timedelta(days=self._days)
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
