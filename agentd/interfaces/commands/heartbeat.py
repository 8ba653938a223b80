"""`heartbeat`: run a beat, explain and list beats, pause them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import InvalidRequest
from agentd.core.times import parse_duration
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param, outcome_failed
from agentd.interfaces.commands.plain import TimeFormatter, fields, table, words

if TYPE_CHECKING:
    from agentd.core.beat import Beat, HeartbeatStatus
    from agentd.core.ports import BeatStore, Clock
    from agentd.core.turn import SessionKey

HEARTBEAT = Group("heartbeat")

# Gates that `--force` does not skip either. With an open breaker a forced beat's model call fails.
_FINAL = frozenset({"budget", "busy", "breaker_open"})
_RESUMING = "`agentd heartbeat pause --resume` lets the beats go on"
_RUN_COLUMNS = ("id", "at", "by", "outcome", "reason", "tokens", "cost_usd", "entries", "text")


class HeartbeatControl(Protocol):
    """Port: the heartbeat."""

    async def run(self, *, force: bool) -> Beat:
        """Run a beat now; `force` skips every gate except the budget and a busy session."""

    async def explain(self) -> dict[str, Any]:
        """Return what the next beat would do, and why."""

    async def entries(self) -> dict[str, str]:
        """Return the texts of the dated entries of HEARTBEAT.md by their hashes."""

    async def status(self) -> HeartbeatStatus:
        """Return whether the heartbeat is on, when the next beat is due, and how the last one
        ended.
        """


def _ran(beat: dict[str, Any]) -> str:
    outcome, reason, text = (str(beat.get(key) or "") for key in ("outcome", "reason", "text"))
    if outcome == "alert":
        return f"alerted: {text or words(reason)}"
    line = f"{words(outcome)}: {_reason(beat)}"
    if outcome == "skipped" and reason not in _FINAL:
        line += " (`agentd heartbeat run --force` runs it anyway)"
    return f"{line}\n{text}" if text else line


def _runs(result: dict[str, Any]) -> str:
    return table(map(_run_row, result["runs"]), _RUN_COLUMNS, "no beat has run yet")


def _run_row(run: dict[str, Any]) -> dict[str, Any]:
    """Return a beat as a row; of entries that were due and stand no more only how many."""
    texts = [text for text in run["due_entries"] if text is not None]
    gone = len(run["due_entries"]) - len(texts)
    entries = [*texts, *([f"{gone} no longer listed"] if gone else [])]
    told = {"by": run["trigger"], "reason": _reason(run), "entries": ", ".join(entries)}
    return {**run, **told}


def _reason(run: dict[str, Any]) -> str:
    """Return the reason of a beat; of a duplicate also the alert that it would have repeated."""
    if run.get("repeats") is None:
        return words(run.get("reason"))
    when = f" ({run['repeats_at']})" if run["repeats_at"] else ""
    return f"{run['reason']} of alert {run['repeats']}{when}"


def _explained(result: dict[str, Any]) -> str:
    """Return what a beat would do, the state of each gate, and the entries of the checklist."""
    checklist = result["checklist"]
    timed = [f"{item['text']}{_stands(item)}" for item in checklist["items"]]
    timed += [f"and {more:,} more"] if (more := checklist["more_items"]) else []
    wrong = checklist["mistakes"]
    seen = {
        **({"cannot be read": why} if (why := checklist["unreadable"]) else {}),
        **({"there is no file": "HEARTBEAT.md"} if checklist["missing"] else {}),
        **({"times_that_count_as_none": "\n".join(wrong)} if wrong else {}),
        "entries_for_each_beat": checklist["open"],
        "entries_with_a_time": "\n".join(timed) or "none",
    }
    gates = {one["gate"]: _answer(one, result) for one in result["gates"]}
    return fields(
        {
            "a_beat_now": _foretold(result),
            "next_due": _when_next(result),
            "gates": gates,
            "checklist": seen,
            "times_in": _zones(result),
            "tools": ", ".join(result["tools"]) or "none",
            "watched": "\n".join(map(_watched, result["watched"])) or "none",
        }
    )


def _stands(item: dict[str, Any]) -> str:
    """Return how a dated entry stands: due now, done for good, or done and when it comes again."""
    if item["due"]:
        return " (now)"
    if not item["done_at"]:
        return ""
    again = f"; next {item['next']}" if item["next"] else ", and does not come again"
    return f" (done {item['done_at']}{again})"


def _when_next(result: dict[str, Any]) -> str:
    """Return when the next beat is due, and if hours or a pause skip it, when one can run."""
    due, possible = result["next_due"], result["not_before"]
    if due == possible:
        return words(due)
    return f"{words(due)}: skipped; none can run before {possible}"


def _foretold(result: dict[str, Any]) -> str:
    """Return what a beat would do, as far as that is known before it looks at an entry."""
    if result["would_run"]:
        return "runs; it stays quiet if nothing needs you, or what does was told within 24 hours"
    reason, gate = result["reason"], result["decided_by"]
    if reason == "alert":
        return f"tells you, once in 24 hours, that HEARTBEAT.md cannot be read (the gate {gate!r})"
    return f"is skipped: {reason} (the gate {gate!r} decides)"


def _answer(gate: dict[str, Any], result: dict[str, Any]) -> str:
    """Return whether a gate lets the beat pass, and the values that decide it. A gate is neither
    open nor shut here: an open `breaker` would read as a service that fails.
    """
    name, reason = gate["gate"], gate["reason"]
    told = "passes" if reason is None else f"stops it: {reason}"
    if name == "pause" and reason:
        return f"{told}, until {result['paused_until']}"
    if name == "hours":
        opening = f", open again {result['next_opening']}" if reason else ""
        return f"{told} ({result['hours']} in {result['zone']}){opening}"
    if name == "budget":
        used, most = result["tokens_today"], result["daily_tokens"]
        limit = f"{most:,} tokens" if most else "no limit"
        return f"{told} ({used:,} today; [budget] heartbeat_daily_tokens: {limit})"
    return told


def _zones(result: dict[str, Any]) -> str:
    here, there = result["times_in"], result["zone"]
    return here if here == there else f"{here}; entries and hours in {there}"


def _watched(entry: dict[str, Any]) -> str:
    """Return one entry: its calls, and when they last answered."""
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
    return f"paused until {until}; {_RESUMING}" if until else "not paused: the beats go on"


class HeartbeatCommands:
    """The owner's commands for the heartbeat."""

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
        texts = await self._heartbeat.entries()
        return {
            "runs": [
                {**beat.as_json(), "due_entries": [texts.get(one) for one in beat.entries]}
                for beat in await self._beats.beats(limit)
            ]
        }

    @HEARTBEAT.command(_explained)
    async def explain(self) -> dict[str, Any]:
        """Say what a beat would do now: what each gate says, and which decides."""
        return await self._heartbeat.explain()

    @HEARTBEAT.command(_paused)
    async def pause(
        self,
        duration: Annotated[str | None, Param('For how long, like "30m", "2h" or "1d12h".')] = None,
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
                f"duration: {text[:100]!r} is none to wait for",
                cure=f'write it like "30m", "2h" or "1d12h"; {_RESUMING}',
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

    def _standing(self, standing: HeartbeatStatus) -> str:
        if standing.next_due is None:
            return "The heartbeat is off."
        parts = [f"The heartbeat is due {self._local(standing.next_due)}"]
        if standing.paused_until:
            parts.append(f"paused until {self._local(standing.paused_until)}")
        if standing.last:
            parts.append(f"last time: {_said(standing.last)}")
        return "; ".join(parts)

    def _local(self, at: datetime) -> str:
        return TimeFormatter(self._clock).short(at.isoformat())


def _said(beat: Beat) -> str:
    outcome, reason = str(beat.outcome), str(beat.reason)
    told = outcome if outcome == reason else f"{outcome} ({reason})"
    return f"{told}: {beat.text}" if beat.text else told
