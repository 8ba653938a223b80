"""`/heartbeat`: when it beats next, and a beat by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from agentd.domain.beat import Beat, Standing
from agentd.domain.turn import Kind, SessionKey, kind_of
from agentd.errors import InvalidRequest
from agentd.ports import Clock
from agentd.server.commands import Command


class Pulse(Protocol):
    """What beats."""

    async def run(self, *, force: bool) -> Beat:
        """Beat now, if every gate lets it."""

    async def status(self) -> Standing:
        """Whether it is on, when the next beat is due, and how the last one ended."""


class HeartbeatCommands:
    """The heartbeat as a person in a chat sees it."""

    def __init__(self, pulse: Pulse, clock: Clock) -> None:
        """`clock` has the owner's zone."""
        self._pulse = pulse
        self._clock = clock

    def all(self) -> tuple[Command, ...]:
        """The one command."""
        told = "Say when the heartbeat is due, or beat now with `run`"
        return (Command("heartbeat", told, self._heartbeat, "run"),)

    async def _heartbeat(self, session: SessionKey, text: str) -> str:
        if kind_of(session) is not Kind.MAIN:
            raise InvalidRequest(
                "the heartbeat is not for this session", cure="say it in main or a chat"
            )
        match text.strip():
            case "run":
                return f"The heartbeat: {_told(await self._pulse.run(force=False))}"
            case "":
                return self._told_of(await self._pulse.status())
        raise InvalidRequest(
            f"/heartbeat knows no {text.strip()[:50]!r}", cure="write /heartbeat run"
        )

    def _told_of(self, standing: Standing) -> str:
        if standing.next_due is None:
            return "The heartbeat is off."
        parts = [f"The heartbeat is due at {self._local(standing.next_due)}"]
        if standing.paused_until:
            parts.append(f"paused until {self._local(standing.paused_until)}")
        if standing.last:
            parts.append(f"last time: {_told(standing.last)}")
        return "; ".join(parts)

    def _local(self, at: datetime) -> str:
        return f"{at.astimezone(self._clock.zone):%Y-%m-%d %H:%M}"


def _told(beat: Beat) -> str:
    outcome, reason = str(beat.outcome), str(beat.reason)
    words = outcome if outcome == reason else f"{outcome} ({reason})"
    return f"{words}: {beat.text}" if beat.text else words
