"""Reads what the gates decide on: HEARTBEAT.md, the switches, and what is running."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import structlog
from msgspec import Struct

from agentd.automation.heartbeat.dependencies import BeatDependencies
from agentd.automation.heartbeat.gate import GateView
from agentd.automation.heartbeat.hours import Hours
from agentd.core.beat import ItemState
from agentd.core.checklist import Checklist, parse
from agentd.core.errors import FileMissing, WorkspaceError
from agentd.core.offloading import offload
from agentd.core.turn import SessionKey

log = structlog.get_logger()


class Snapshot(Struct, frozen=True):
    """The input of the gates, and the state of HEARTBEAT.md. `digest` is "" if there is no readable
    file; `item_time` is when the next dated entry is due.
    """

    view: GateView
    digest: str
    item_time: datetime | None

    @property
    def listed(self) -> frozenset[str] | None:
        """The hashes of all entries; None if there is no readable file, since its entries are
        unknown.
        """
        if not self.digest:
            return None
        checklist = self.view.checklist
        entries = frozenset(entry.hash for entry in checklist.entries)
        return entries | frozenset(item.hash for item in checklist.items)


class SnapshotReader:
    """Reads snapshots. `session` is the session that the settings name, `awaited` are the sessions
    whose turns a beat waits for. `patience` is how long beats go on while the owner is silent (0:
    forever).
    """

    def __init__(
        self,
        deps: BeatDependencies,
        hours: Hours,
        session: SessionKey,
        awaited: frozenset[SessionKey],
        *,
        is_on: bool,
        patience: timedelta,
    ) -> None:
        self._deps = deps
        self._hours = hours
        self._session = session
        self._awaited = awaited
        self._is_on = is_on
        self._patience = patience
        self.unreadable: WorkspaceError | None = None  # the error of the last read of HEARTBEAT.md
        self.mistakes: tuple[str, ...] = ()  # times in HEARTBEAT.md that cannot be parsed
        self.is_session_missing = False
        self._parsed: tuple[str, Checklist, list[str]] | None = None  # digest, entries, hashes

    async def look_for_session(self) -> None:
        """Update `is_session_missing`: whether the session that the settings name does not exist.
        Raises StorageError.
        """
        self.is_session_missing = not await self._deps.exists(self._session)

    async def look(self) -> Snapshot:
        """Return a snapshot of the current state. Raises StorageError."""
        deps, now = self._deps, self._deps.clock.now()
        await self.look_for_session()
        text, digest = await self._read()
        checklist, states = await self._taken_apart(text, digest)
        due, item_time = await offload(
            len(text), lambda: (checklist.due(states, now), checklist.next_time(states, now))
        )
        view = GateView(
            now=now,
            hours=self._hours,
            is_on=self._is_on,
            paused_until=(await deps.beats.heartbeat()).pause_ends(now),
            is_idle=await self._is_idle(now),
            breaker_open=deps.breaker.is_open(),
            over_budget=await deps.budget.is_used_up(),
            unreadable=self.unreadable,
            checklist=checklist,
            due=due,
            busy=any(deps.turns.is_busy(session) for session in self._awaited),
        )
        return Snapshot(view, digest, item_time)

    async def _is_idle(self, now: datetime) -> bool:
        heard = await self._deps.last_heard() if self._patience else None
        return heard is not None and now - heard[0] > self._patience

    async def peek(self, known: str) -> tuple[str, datetime | None]:
        """Return the file's digest, and when its next dated entry is due: now, if one is due that
        was first seen since the last beat. The time is None if there is no such entry or the digest
        is the `known` one.
        """
        text, digest = await self._read()
        if digest == known:
            return digest, None
        now = self._deps.clock.now()
        checklist, states = await self._taken_apart(text, digest)
        last = await self._deps.beats.beats(1)
        since = last[0].at if last else datetime.min.replace(tzinfo=UTC)

        def next_time() -> datetime | None:
            # An entry on which a beat has failed waits for the next slot, and so does one that was
            # first seen before the clock was set back.
            if any(since < states[i.hash].first_seen <= now for i in checklist.due(states, now)):
                return now
            return checklist.next_time(states, now)

        return digest, await offload(len(text), next_time)

    async def _taken_apart(
        self, text: str, digest: str
    ) -> tuple[Checklist, Mapping[str, ItemState]]:
        """Return the parsed file and the stored states of its dated entries. An unchanged file is
        not parsed again. Raises StorageError.
        """

        def entries() -> tuple[str, Checklist, list[str]]:
            checklist = parse(text, self._hours.zone)
            _ = checklist.entries  # a cached property: compute it here, off the event loop
            return digest, checklist, [item.hash for item in checklist.items]

        if self._parsed is None or self._parsed[0] != digest:
            self._parsed = await offload(len(text), entries)
        _, checklist, hashes = self._parsed
        self.mistakes = checklist.mistakes
        return checklist, await self._deps.beats.items(hashes)

    async def _read(self) -> tuple[str, str]:
        try:
            file = await self._deps.read()
        except FileMissing:
            self.unreadable = None
            return "", ""
        except WorkspaceError as error:
            if self.unreadable is None:
                log.warning("heartbeat_unreadable", error=error.code)
            self.unreadable = error
            return "", ""
        self.unreadable = None
        return file.text, file.digest
