"""`heartbeat`: run a beat, see what the others came to, and put them off."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import InvalidRequest
from agentd.core.times import parse_duration
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param, outcome_failed
from agentd.interfaces.commands.plain import fields, table, words

if TYPE_CHECKING:
    from agentd.core.beat import Beat, Standing
    from agentd.core.ports import BeatStore, Clock
    from agentd.core.turn import SessionKey

HEARTBEAT = Group("heartbeat")

# What `--force` does not pass either; of an open breaker the call behind the gate fails.
_FINAL = frozenset({"budget", "busy", "breaker_open"})
_RUN_COLUMNS = ("at", "outcome", "reason", "tokens", "cost_usd", "text")


class HeartbeatControl(Protocol):
    """What beats."""

    async def run(self, *, force: bool) -> Beat:
        """Beat now; `force` skips every gate but the budget and a busy session."""

    async def explain(self) -> dict[str, Any]:
        """What the next beat would do, and why."""

    async def status(self) -> Standing:
        """Whether it is on, when the next beat is due, and how the last one ended."""


def _ran(beat: dict[str, Any]) -> str:
    outcome, reason, text = (str(beat.get(key) or "") for key in ("outcome", "reason", "text"))
    if outcome == "alert":
        return f"alerted: {text or words(reason)}"
    line = f"{words(outcome)}: {words(reason)}"
    if outcome == "skipped" and reason not in _FINAL:
        line += " (`agentd heartbeat run --force` runs it anyway)"
    return f"{line}\n{text}" if text else line


def _runs(result: dict[str, Any]) -> str:
    return table(result["runs"], _RUN_COLUMNS, "no beat has run yet")


def _explained(result: dict[str, Any]) -> str:
    """The gates, and of the checklist what a beat would look at."""
    checklist = result["checklist"]
    timed = [f"{item['text']}{' (now)' if item['due'] else ''}" for item in checklist["items"]]
    wrong = checklist.get("mistakes") or []
    seen = {
        **({"cannot be read": why} if (why := checklist.get("unreadable")) else {}),
        **({"there is no file": "HEARTBEAT.md"} if checklist.get("missing") else {}),
        **({"times_that_count_as_none": "\n".join(wrong)} if wrong else {}),
        "entries_for_each_beat": checklist["open"],
        "entries_with_a_time": "\n".join(timed) or "none",
    }
    watched = "\n".join(map(_watched, result["watched"])) or "none"
    tools = ", ".join(result["tools"]) or "none"
    return fields({**result, "checklist": seen, "tools": tools, "watched": watched})


def _watched(entry: dict[str, Any]) -> str:
    """One entry: what is called for it, and when that answered last."""
    calls = ", ".join(f"{call['name']} {json.dumps(call['input'])}" for call in entry["calls"])
    parts = [
        f"{entry['text']}: {calls or 'no call yet'}",
        f"a model is asked {entry['asks_model']}",
    ]
    if entry["looked_at"]:
        parts.append(f"answered last {entry['looked_at']}")
    if entry["failing_since"]:
        parts.append(f"failing since {entry['failing_since']}: {entry['failure']}")
    if entry["told"]:
        parts.append(f"told {entry['told_at']}: {entry['told']}")
    return "; ".join(parts)


def _paused(result: dict[str, Any]) -> str:
    until = result["paused_until"]
    return f"paused until {until}" if until else "not paused: the beats go on"


class HeartbeatCommands:
    """The heartbeat as its owner sees it."""

    def __init__(self, heartbeat: HeartbeatControl, beats: BeatStore, clock: Clock) -> None:
        """`clock` has the owner's zone."""
        self._heartbeat = heartbeat
        self._beats = beats
        self._clock = clock

    @HEARTBEAT.command(_ran, seconds=MODEL_SECONDS, has_failed=outcome_failed)
    async def run(
        self,
        *,
        force: Annotated[
            bool, Param("Pass every gate but the budget and a busy conversation.")
        ] = False,
    ) -> dict[str, Any]:
        """Run one beat now."""
        return (await self._heartbeat.run(force=force)).as_json()

    @HEARTBEAT.command(_runs)
    async def history(
        self,
        *,
        limit: Annotated[int, Param("How many, the newest first.", least=1, most=1000)] = 20,
    ) -> dict[str, Any]:
        """List what past beats came to."""
        return {"runs": [beat.as_json() for beat in await self._beats.beats(limit)]}

    @HEARTBEAT.command(_explained)
    async def explain(self) -> dict[str, Any]:
        """Say what the next beat would do, gate by gate."""
        return await self._heartbeat.explain()

    @HEARTBEAT.command(_paused)
    async def pause(
        self,
        duration: Annotated[
            str | None, Param('For how long, like "2h"; without it the beats go on.')
        ] = None,
    ) -> dict[str, Any]:
        """Pause the heartbeat, or let it go on."""
        until = None if duration is None else self._until(duration)
        await self._beats.pause(until)
        return {"paused_until": until.isoformat() if until else None}

    def _until(self, text: str) -> datetime:
        now = self._clock.now()
        try:
            until = now + parse_duration(text)
        except (ValueError, OverflowError):
            until = now
        if until == now:
            raise InvalidRequest(
                f"duration: {text[:100]!r} is none to wait for", cure='write it like "2h"'
            )
        return until

    @HEARTBEAT.slash(
        "heartbeat",
        "Say when the heartbeat is due, or beat now with `run`",
        "run",
        owners="the heartbeat is not for this session",
    )
    async def typed(self, session: SessionKey, text: str) -> str:
        """When it beats next, or what a beat came to.

        Raises InvalidRequest if it asks for anything else.
        """
        match text.strip():
            case "run":
                return f"The heartbeat: {_said(await self._heartbeat.run(force=False))}"
            case "":
                return self._standing(await self._heartbeat.status())
        raise InvalidRequest(
            f"/heartbeat knows no {text.strip()[:50]!r}", cure="write /heartbeat run"
        )

    def _standing(self, standing: Standing) -> str:
        if standing.next_due is None:
            return "The heartbeat is off."
        parts = [f"The heartbeat is due at {self._local(standing.next_due)}"]
        if standing.paused_until:
            parts.append(f"paused until {self._local(standing.paused_until)}")
        if standing.last:
            parts.append(f"last time: {_said(standing.last)}")
        return "; ".join(parts)

    def _local(self, at: datetime) -> str:
        return f"{at.astimezone(self._clock.zone):%Y-%m-%d %H:%M}"


def _said(beat: Beat) -> str:
    outcome, reason = str(beat.outcome), str(beat.reason)
    told = outcome if outcome == reason else f"{outcome} ({reason})"
    return f"{told}: {beat.text}" if beat.text else told
