"""Runs a background turn (silent, with a time limit and few tools) and judges its reply."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from msgspec.structs import replace

from agentd.core.errors import AgentdError, ShuttingDown
from agentd.core.ports import TurnAudience, TurnRunner
from agentd.core.times import format_duration
from agentd.core.turn import StopReason, Turn, TurnRequest
from agentd.core.verdict import Empty, Failed, Told, Verdict, judge

log = structlog.get_logger()

# What a turn without the user may do: look things up, keep a dated note, tell the owner. A short
# list also saves tokens.
TOOLS = frozenset({"memory_read", "memory_search", "memory_write", "notify"})


def compose(prompt: str, title: str, matter: str, now: datetime, zone: ZoneInfo) -> str:
    """Return the whole user message: the prompt, `matter` under the heading `title`, and the
    current time in `zone`. The time comes last, so that the text before it stays the same from turn
    to turn and a provider can cache it.
    """
    local = now.astimezone(zone)
    parts = [prompt.strip()]
    if matter:
        parts.append(f"## {title}\n\n{matter}")
    parts.append(f"Current time: {local:%Y-%m-%d %H:%M} ({local:%A}, {zone.key})")
    return "\n\n".join(parts)


_UNFINISHED = {
    StopReason.REFUSAL: "the model or its service refused to answer",
    StopReason.MAX_TOKENS: "the answer was cut at [provider] max_tokens",
    StopReason.MAX_TURN_REQUESTS: "the turn was cut at the most model calls that one may make",
}


async def run_background_turn(
    turns: TurnRunner,
    request: TurnRequest,
    sink: TurnAudience,
    limit: timedelta,
    ack_max_chars: int,
) -> Verdict:
    """Run a silent request and return the verdict on its reply, or `Failed` with the reason. A turn
    that takes longer than `limit` is cancelled. `ack_max_chars` is how many characters may stand
    beside HEARTBEAT_OK in a quiet reply. Never raises for a failure of the turn.
    """
    try:
        async with asyncio.timeout(limit.total_seconds()):
            ticket = await turns.submit(request, sink)
            turn = await ticket.wait()
    except TimeoutError:
        log.warning("background_turn_timed_out", origin=request.origin, message=request.message_id)
        turns.cancel_message(request.session, request.message_id)
        return Failed(f"no answer within {format_duration(limit)}")
    except ShuttingDown as error:
        return Failed(error.message, is_cut=True)
    except AgentdError as error:
        log.warning("background_turn_refused", origin=request.origin, error=error.code)
        return Failed(error.message)
    if (failed := _failed(turn)) is not None:
        return failed
    alerts = [call for call in turn.tool_calls if call.name == "notify" and not call.is_error]
    notified = [str(call.input.get("text", "")) for call in alerts]
    verdict = judge(turn.text, ack_max_chars, notified=notified)
    if isinstance(verdict, Empty):
        return verdict
    if isinstance(verdict, Told):
        verdict = replace(verdict, is_repetition=all(call.is_repetition for call in alerts))
    return replace(verdict, tainted=turn.tainted)


def _failed(turn: Turn) -> Failed | Empty | None:
    """Return why the reply of an ended turn cannot be judged; None if it can."""
    if turn.failure is not None and turn.failure.code == "provider_empty_answer":
        return Empty()
    if turn.failure is not None:
        return Failed(turn.failure.message, is_over_budget=turn.failure.code == "provider_budget")
    if turn.stop_reason is StopReason.CANCELLED:
        return Failed(is_cut=True)
    if (why := _UNFINISHED.get(turn.stop_reason or StopReason.END_TURN)) is not None:
        log.warning("background_turn_unfinished", message=turn.message_id, stop=turn.stop_reason)
        return Failed(why)
    return None
