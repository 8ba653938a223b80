"""A silent turn with a deadline, and what its reply comes to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from agentd.domain.durations import format_duration
from agentd.domain.turn import Origin, SessionKey, StopReason, Turn, TurnRequest
from agentd.domain.verdict import Empty, Verdict, judge
from agentd.errors import AgentdError, ShuttingDown
from agentd.ports import Audience

log = structlog.get_logger()

# What a turn without the user may do: look things up, keep a dated note, tell the owner. Fewer tools,
# fewer tokens.
TOOLS = frozenset({"memory_read", "memory_search", "memory_write", "notify"})


class Ticket(Protocol):
    """A submitted turn."""

    async def wait(self) -> Turn:
        """The turn when it has ended, well or not."""


class Door(Protocol):
    """The engine's door."""

    async def submit(self, request: TurnRequest, sink: Audience) -> Ticket:
        """Queue a turn. Raises AgentdError when it is not taken."""

    def is_busy(self, session: SessionKey) -> bool:
        """Whether the session's lane is taken."""

    def cancel(self, session: SessionKey, origin: Origin) -> bool:
        """Have the session's running turn of that origin end soon; False if there is none."""


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no reply. `is_cut` says that somebody ended it, not a fault."""

    text: str = ""
    is_cut: bool = False


def compose(prompt: str, title: str, matter: str, now: datetime, zone: ZoneInfo) -> str:
    """The whole user message. The time stands last: what is before it stays the same from turn to
    turn, which a provider's cache may use.
    """
    local = now.astimezone(zone)
    parts = [prompt.strip()]
    if matter:
        parts.append(f"## {title}\n\n{matter}")
    parts.append(f"Current time: {local:%Y-%m-%d %H:%M} ({local:%A}, {zone.key})")
    return "\n\n".join(parts)


async def run_errand(
    door: Door, request: TurnRequest, sink: Audience, limit: timedelta, ack_max_chars: int
) -> Verdict | Failed:
    """The verdict on the reply to a silent request, or why there is none; one that takes longer than
    `limit` is cancelled. Never raises for what a turn can do wrong.
    """
    try:
        async with asyncio.timeout(limit.total_seconds()):
            ticket = await door.submit(request, sink)
            turn = await ticket.wait()
    except TimeoutError:
        log.warning("errand_timed_out", origin=request.origin, errand=request.message_id)
        door.cancel(request.session, request.origin)
        return Failed(f"no answer within {format_duration(limit)}")
    except ShuttingDown as error:
        return Failed(error.message, is_cut=True)
    except AgentdError as error:
        log.warning("errand_refused", origin=request.origin, error=error.code)
        return Failed(error.message)
    if turn.failure is not None:
        return Failed(turn.failure.message)
    if turn.stop_reason is StopReason.CANCELLED:
        return Failed(is_cut=True)
    told = any(call.name == "notify" and not call.is_error for call in turn.tool_calls)
    verdict = judge(turn.text, ack_max_chars, notified=told)
    return verdict if isinstance(verdict, Empty) else replace(verdict, tainted=turn.tainted)
