"""Entries of the checklist that need tools of others: looked at alone, and asked about only on a change.

The first look at such an entry is a silent turn of its own, with these tools. The calls it made that only
read are kept with their answers, and made again by agentd at every later beat: while the answers are the
same no model is asked, and when one is not, the model is shown what has changed. So what one program says
reaches the turn of the entries that called it and no other, and can mark nothing else as seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from agentd.automation.heartbeat.beat_turn import HEARTBEAT, BeatSink, CallSeen
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.core.alert import NewAlert, Recipients, alert_digest, as_told
from agentd.core.beat import BeatFinding, Outcome, Reason, finding_of
from agentd.core.checklist import ChecklistEntry, item_hashes
from agentd.core.clock import minute
from agentd.core.message import JsonObject
from agentd.core.offloading import offload
from agentd.core.ports import Clock
from agentd.core.prompt import ToolSpec
from agentd.core.times import format_duration
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import OTHERS, Context, Kind, Origin, TurnRequest
from agentd.core.verdict import Alarm
from agentd.core.watch import MOST_CALLS, WatchedCall, WatchedEntry, answers, changes, merge_answers
from agentd.engine.background_turn import TOOLS, TurnRunner, compose, run_background_turn
from agentd.engine.context import fence

log = structlog.get_logger()

# It cannot alert by itself: its reply is the alert, stored together with what was seen.
_TOOLS = TOOLS - {"notify"} | {OTHERS}
_FAILURE = 400  # characters
_AFRESH = timedelta(days=1)  # after so long without an answer the model looks anew, and can say so


class OutsideTools(Protocol):
    """The tools of other programs and of the web, as silent turns have them."""

    def sourced_specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Those that such a turn has."""

    def reads(self, call: ToolCall, request: TurnRequest) -> bool | None:
        """Whether a call of one of them says that it only reads; None for one of another tool."""

    async def repeat(self, call: ToolCall, request: TurnRequest) -> ToolOutput:
        """The answer now; what goes wrong is an error output."""


@dataclass(frozen=True, slots=True)
class _Poll:
    """The answers of an entry's calls now."""

    calls: tuple[WatchedCall, ...] = ()
    failure: str = ""


class WatchedEntries:
    """Looks at one entry at a time. `prompt` is what its turns are asked."""

    def __init__(
        self,
        settings: HeartbeatSettings,
        turns: TurnRunner,
        tools: OutsideTools,
        clock: Clock,
        prompt: str,
        recipients: Recipients,
    ) -> None:
        self._settings = settings
        self._turns = turns
        self._tools = tools
        self._clock = clock
        self._prompt = prompt
        self._recipients = recipients

    def adapted(self, settings: HeartbeatSettings, recipients: Recipients) -> WatchedEntries:
        """The same under other settings."""
        return WatchedEntries(
            settings, self._turns, self._tools, self._clock, self._prompt, recipients
        )

    def names(self) -> tuple[str, ...]:
        """The tools of others that its turns have."""
        return tuple(spec.name for spec in self._tools.sourced_specs(self._request("")))

    async def poll(self, entry: ChecklistEntry, watch: WatchedEntry) -> WatchedEntry | BeatFinding:
        """Make the calls of an entry again. A finding if a model need not look; else the watch with the
        answers as they are now: one has changed, or they cannot be had by repeating, or not for a day.
        """
        if not watch.repeats:
            return watch
        now = self._clock.now()
        found = await self._repeat(watch.calls)
        size = sum(len(call.answer) for call in (*watch.calls, *found.calls))
        fresh = await offload(size, lambda: merge_answers(watch.calls, found.calls))
        watch = replace(watch, failure=found.failure)
        if not found.failure:
            watch = replace(watch, failing_since=None)
        elif watch.failing_since is None:
            watch = replace(watch, failing_since=now)
        if fresh != watch.calls:
            return replace(watch, calls=fresh)
        if not found.failure:
            watch = replace(watch, looked_at=now)
            done = item_hashes(entry)
            return BeatFinding(Outcome.QUIET, Reason.UNCHANGED, done_items=done, watch=watch)
        if watch.failing_since is not None and now - watch.failing_since >= _AFRESH:
            return replace(watch, failing_since=now)
        log.warning("look_failed", entry=watch.entry, since=str(watch.failing_since))
        return BeatFinding(Outcome.FAILED, Reason.LOOK_FAILED, found.failure, watch=watch)

    async def ask(
        self,
        entry: ChecklistEntry,
        before: WatchedEntry | None,
        now: WatchedEntry,
        message_id: str,
        zone: ZoneInfo,
    ) -> BeatFinding:
        """Have the model look at an entry: anew, or at what has changed from `before` to `now`."""
        sink = BeatSink()
        size = sum(len(call.answer) for call in now.calls)
        matter, outside = await offload(size, lambda: _matter(entry, before, now, zone))
        text = compose(self._prompt, "HEARTBEAT.md", matter, self._clock.now(), zone)
        quoted = tuple((text.index(part), text.index(part) + len(part)) for part in outside)
        request = replace(self._request(text), message_id=message_id, quoted=quoted)
        settings = self._settings
        verdict = await run_background_turn(
            self._turns, request, sink, settings.timeout, settings.ack_max_chars
        )
        is_change = before is not None and before.calls != now.calls
        change = message_id if is_change else ""
        alert = self._alert(verdict, entry, change) if isinstance(verdict, Alarm) else None
        found = finding_of(verdict, item_hashes(entry), alert)
        if found.outcome is Outcome.FAILED:
            return found
        seen = self._seen(now, sink.calls, found, request, is_change=is_change)
        return replace(found, watch=seen)

    def _request(self, text: str) -> TurnRequest:
        return TurnRequest(
            session=HEARTBEAT,
            text=text,
            message_id="",
            origin=Origin.HEARTBEAT,
            context=Context.LIGHT,
            model=self._settings.model or None,
            tools=_TOOLS,
        )

    async def _repeat(self, calls: Iterable[WatchedCall]) -> _Poll:
        """The answers; those that fail, or come after the time of a turn, are missing, and the last of them
        says why.
        """
        request, limit = self._request(""), self._settings.timeout
        found: list[WatchedCall] = []
        failure = ""
        try:
            async with asyncio.timeout(limit.total_seconds()):
                for call in calls:
                    output = await self._tools.repeat(_call(call.name, call.input), request)
                    if output.is_error:
                        failure = as_told(_in_one_line(output.text), tainted=output.tainted)
                    else:
                        found.append(WatchedCall.answered(call.name, call.input, output.text))
        except TimeoutError:
            failure = f"its calls took longer than {format_duration(limit)}"
        return _Poll(tuple(found), failure)

    def _seen(
        self,
        watch: WatchedEntry,
        calls: Iterable[CallSeen],
        found: BeatFinding,
        request: TurnRequest,
        *,
        is_change: bool,
    ) -> WatchedEntry:
        """What is known of the entry after its turn. The calls of a first look, and of one anew, are the
        ones that are kept; a look at a change only brings newer answers of these.
        """
        made = tuple(self._outside(calls, request))
        now = self._clock.now()
        if is_change or not made:
            seen = replace(watch, calls=merge_answers(watch.calls, made), looked_at=now)
        else:
            once = {call.key: call for call in made}
            kept = tuple(once.values())[:MOST_CALLS]
            seen = replace(watch, calls=kept, looked_at=now, failing_since=None, failure="")
        if found.outcome is Outcome.ALERT:
            seen = replace(seen, told=found.text, told_at=now)
        return seen

    def _outside(self, calls: Iterable[CallSeen], request: TurnRequest) -> Iterator[WatchedCall]:
        """The calls of tools of others that were answered."""
        for call in calls:
            reads = self._tools.reads(_call(call.name, call.input), request)
            if reads is not None and not call.is_error:
                yield WatchedCall.answered(call.name, call.input, call.text, repeats=reads)

    def _alert(self, alarm: Alarm, entry: ChecklistEntry, change: str) -> NewAlert:
        """The alert; the same words about another change are another alert."""
        digest = alert_digest(f"{alarm.text}\n{entry.hash}\n{change}")
        return self._recipients.alert(alarm.text, "heartbeat", digest, tainted=alarm.tainted)


def _matter(
    entry: ChecklistEntry, before: WatchedEntry | None, now: WatchedEntry, zone: ZoneInfo
) -> tuple[str, tuple[str, ...]]:
    """What the turn is about, and the parts of it that come from outside."""
    outside: list[str] = []
    parts = [entry.text]

    def add(title: str, label: str, text: str) -> None:
        if text:
            outside.append(fence(label, text))
            parts.append(f"## {title}\n\n{outside[-1]}")

    if before is not None:
        at = minute(before.looked_at, zone) if before.looked_at else "the last look"
        if changed := changes({call.key: call for call in before.calls}, now.calls):
            add("What has changed", f"answers of tools now, as a diff to those of {at}", changed)
        else:
            add(
                "What the tools answered before", f"answers of tools at {at}", answers(before.calls)
            )
    add("What could not be asked", "why a call failed", now.failure)
    if now.told_at is not None:
        add("What the owner was told before", f"at {minute(now.told_at, zone)}", now.told)
    return "\n\n".join(parts), tuple(outside)


def _in_one_line(failure: str) -> str:
    """A tool's failure as people are told it, without the fence that is for models."""
    lines = (line for line in failure.splitlines() if not line.startswith("```"))
    return " ".join(" ".join(lines).split())[:_FAILURE]


def _call(name: str, given: JsonObject) -> ToolCall:
    return ToolCall("watch", name, given, HEARTBEAT, Kind.MAIN, Origin.HEARTBEAT)
