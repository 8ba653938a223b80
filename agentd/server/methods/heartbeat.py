"""`_agentd/heartbeat/*`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from pydantic import Field

from agentd.domain.beat import Beat
from agentd.domain.settings import parse_duration
from agentd.errors import InvalidRequest
from agentd.ports import BeatStore, Clock
from agentd.server.methods.params import NoParams, Params, handler
from agentd.server.peer import Handler


class Pulse(Protocol):
    """What beats."""

    async def run(self, *, force: bool) -> Beat:
        """Beat now; `force` skips every gate but budget and lane."""

    async def explain(self) -> dict[str, Any]:
        """What the next beat would do, and why."""


class RunParams(Params):
    """A beat by hand."""

    force: bool = False


class HistoryParams(Params):
    """The newest beats."""

    limit: int = Field(20, ge=1, le=1000)


class PauseParams(Params):
    """A pause of `duration` from now ("2h"); without one the heartbeat goes on."""

    duration: str | None = None


class HeartbeatMethods:
    """The heartbeat as the commands see it."""

    def __init__(self, pulse: Pulse, beats: BeatStore, clock: Clock) -> None:
        self._pulse = pulse
        self._beats = beats
        self._clock = clock

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/heartbeat/run": handler(RunParams, self._run),
            "_agentd/heartbeat/history": handler(HistoryParams, self._history),
            "_agentd/heartbeat/explain": handler(NoParams, self._explain),
            "_agentd/heartbeat/pause": handler(PauseParams, self._pause),
        }

    async def _run(self, params: RunParams) -> dict[str, Any]:
        return (await self._pulse.run(force=params.force)).as_json()

    async def _history(self, params: HistoryParams) -> dict[str, Any]:
        return {"runs": [beat.as_json() for beat in await self._beats.beats(params.limit)]}

    async def _explain(self, params: NoParams) -> dict[str, Any]:
        return await self._pulse.explain()

    async def _pause(self, params: PauseParams) -> dict[str, Any]:
        until = None if params.duration is None else self._until(params.duration)
        await self._beats.pause(until)
        return {"paused_until": until.isoformat() if until else None}

    def _until(self, words: str) -> datetime:
        now = self._clock.now()
        try:
            until = now + parse_duration(words)
        except (ValueError, OverflowError):
            until = now
        if until == now:
            raise InvalidRequest(
                f"duration: {words[:100]!r} is none to wait for", cure='write it like "2h"'
            )
        return until
