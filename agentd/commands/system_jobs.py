"""The daemon's own jobs, as `_agentd/jobs/*` shows them beside the owner's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from agentd.domain.durations import format_duration
from agentd.errors import GraphOff

if TYPE_CHECKING:
    from agentd.domain.beat import Beat, Standing
    from agentd.domain.belief import Consolidated
    from agentd.ports import BeatStore


class SystemJob(Protocol):
    """A job that is always on the list."""

    @property
    def id(self) -> str:
        """How commands name it."""

    @property
    def instead(self) -> str:
        """What to do where one would remove it."""

    async def listed(self) -> dict[str, Any]:
        """Its line in the list. `last` is its newest run, or None."""

    async def run(self) -> dict[str, Any]:
        """Do it now; its times stay as they are."""

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """Its runs, the newest first."""


class Pulse(Protocol):
    """What beats."""

    async def run(self, *, force: bool = False) -> Beat:
        """Beat now."""

    async def status(self) -> Standing:
        """Whether, when next, and what the last came to."""


class Upkeep(Protocol):
    """What consolidates the graph."""

    @property
    def is_on(self) -> bool:
        """Whether there is a graph."""

    @property
    def next_due(self) -> datetime | None:
        """When it does that next."""

    async def consolidate(self) -> Consolidated:
        """Do it now. Raises WorkspaceError, StorageError."""

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """What was done, the newest first."""


class Heartbeat:
    """The beats; they come at every `interval`."""

    id = "heartbeat"
    instead = "pause it with `agentd heartbeat pause`, or set [heartbeat] enabled = false"

    def __init__(self, pulse: Pulse, beats: BeatStore, interval: Callable[[], timedelta]) -> None:
        self._pulse = pulse
        self._beats = beats
        self._interval = interval

    async def listed(self) -> dict[str, Any]:
        """See SystemJob."""
        state = await self._pulse.status()
        return {
            **_line(self.id, "go through HEARTBEAT.md", self._interval()),
            "enabled": state.is_on,
            "last": self._told(state.last) if state.last else None,
            **_due(state.next_due),
        }

    async def run(self) -> dict[str, Any]:
        """See SystemJob."""
        return self._told(await self._pulse.run())

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """See SystemJob."""
        return [self._told(beat) for beat in await self._beats.beats(limit)]

    def _told(self, beat: Beat) -> dict[str, Any]:
        return {**beat.as_json(), "job": self.id}


class Consolidation:
    """The daily work on the concept graph."""

    id = "graph"
    instead = "set [graph] enabled = false to switch the concept graph off"

    def __init__(self, upkeep: Upkeep, interval: timedelta) -> None:
        self._upkeep = upkeep
        self._interval = interval

    async def listed(self) -> dict[str, Any]:
        """See SystemJob."""
        last, due = await self.history(1), self._upkeep.next_due
        return {
            **_line(self.id, "consolidate the concept graph", self._interval),
            "enabled": self._upkeep.is_on,
            "last": last[0] if last else None,
            **_due(due if self._upkeep.is_on else None),
        }

    async def run(self) -> dict[str, Any]:
        """See SystemJob. Raises GraphOff where there is none."""
        if not self._upkeep.is_on:
            raise GraphOff(
                "the concept graph is switched off",
                cure="set [graph] enabled = true, then `agentd restart`",
            )
        return self._told(await self._upkeep.consolidate())

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """See SystemJob."""
        return [self._told(done) for done in await self._upkeep.consolidations(limit)]

    def _told(self, done: Consolidated) -> dict[str, Any]:
        return {
            "outcome": "quiet",
            "reason": "consolidated",
            "text": f"promoted {done.promoted}, swept {done.swept}",
            "tokens": 0,
            "cost_usd": 0.0,
            "at": done.at.isoformat(),
            "due": None,
            "job": self.id,
            "promoted": done.promoted,
            "swept": done.swept,
        }


def _line(name: str, text: str, every: timedelta) -> dict[str, Any]:
    schedule = {"every": format_duration(every)}
    return {
        "id": name,
        "text": text,
        "kind": "system",
        "schedule": schedule,
        "created_by": "system",
    }


def _due(at: datetime | None) -> dict[str, Any]:
    return {
        "next_due": at.isoformat() if at else None,
        "next": [at.isoformat()] if at else [],
    }
