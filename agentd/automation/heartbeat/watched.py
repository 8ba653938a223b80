"""Watched entries of the checklist: entries that need tools of others, each checked in a turn of
its own.

The first check of such an entry is a silent turn with these tools. Those of its calls that only
read are stored with their answers, and agentd repeats them at every later beat: while the answers
stay the same, no model is asked; when one changes, the model is shown the change. So the answers of
a tool reach only the turns of entries that called it, and cannot mark other entries as checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.automation.heartbeat.beat_sink import HEARTBEAT, BeatSink, SilentCall
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.core.alert import NewAlert, Recipients, alert_digest, as_told
from agentd.core.beat import BeatFinding, Outcome, Reason, finding_of
from agentd.core.checklist import ChecklistEntry, item_hashes
from agentd.core.clock import minute
from agentd.core.message import JsonObject
from agentd.core.offloading import offload
from agentd.core.ports import Clock, TurnRunner
from agentd.core.prompt import ToolSpec
from agentd.core.times import format_duration
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import OTHERS, Origin, PromptScope, SessionKind, TurnRequest
from agentd.core.verdict import Alarm
from agentd.core.watch import MOST_CALLS, WatchedCall, WatchedEntry, answers, changes, merge_answers
from agentd.engine.background_turn import TOOLS, compose, run_background_turn
from agentd.engine.rendering import fence

log = structlog.get_logger()

# Without `notify`: the reply is the alert, which is stored in one commit with the answers.
_TOOLS = TOOLS - {"notify"} | {OTHERS}
_FAILURE = 400  # characters
_AFRESH = timedelta(days=1)  # after failing for so long, the model is asked, and can report that


class OutsideTools(Protocol):
    """The tools of other programs and of the web that silent turns may use."""

    def sourced_specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the tools that such a turn has."""

    def reads(self, call: ToolCall, request: TurnRequest) -> bool | None:
        """Whether the call only reads, according to its tool; None if it is not a call of one of
        these tools.
        """

    async def repeat(self, call: ToolCall, request: TurnRequest) -> ToolOutput:
        """Make the call again and return its output; failures are error outputs."""


class _PollResult(Struct, frozen=True):
    """The current answers to an entry's calls, and the last failure among them."""

    calls: tuple[WatchedCall, ...] = ()
    failure: str = ""


class WatchedEntries:
    """Checks watched entries, one at a time. `prompt` is the question of their turns."""

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
        """Return an object like this one with other settings."""
        return WatchedEntries(
            settings, self._turns, self._tools, self._clock, self._prompt, recipients
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of the tools of others that the turns have."""
        return tuple(spec.name for spec in self._tools.sourced_specs(self._request("")))

    async def poll(self, entry: ChecklistEntry, watch: WatchedEntry) -> WatchedEntry | BeatFinding:
        """Repeat the stored calls of an entry. Return a finding if no model is needed. Otherwise
        return the watch with the current answers: one has changed, the calls cannot be repeated, or
        they have failed for a day.
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
        """Ask the model about an entry, from scratch or about the change from `before` to `now`;
        return its finding, with the watch to store.
        """
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
            context=PromptScope.LIGHT,
            model=self._settings.model or None,
            tools=_TOOLS,
        )

    async def _repeat(self, calls: Iterable[WatchedCall]) -> _PollResult:
        """Make the calls again. Calls that fail, or are not made within the timeout of a beat, have
        no answer; `failure` is the error of the last of them.
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
        return _PollResult(tuple(found), failure)

    def _seen(
        self,
        watch: WatchedEntry,
        calls: Iterable[SilentCall],
        found: BeatFinding,
        request: TurnRequest,
        *,
        is_change: bool,
    ) -> WatchedEntry:
        """Return the watch to store after a turn. The calls of a first check, or of one from
        scratch, replace the stored ones; a check of a change only updates their answers.
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

    def _outside(self, calls: Iterable[SilentCall], request: TurnRequest) -> Iterator[WatchedCall]:
        """Yield the successful calls of tools of others."""
        for call in calls:
            reads = self._tools.reads(_call(call.name, call.input), request)
            if reads is not None and not call.is_error:
                yield WatchedCall.answered(call.name, call.input, call.text, repeats=reads)

    def _alert(self, alarm: Alarm, entry: ChecklistEntry, change: str) -> NewAlert:
        """Return the alert. Its digest includes the change, so the same text about another change
        is not a duplicate.
        """
        digest = alert_digest(f"{alarm.text}\n{entry.hash}\n{change}")
        return self._recipients.alert(alarm.text, "heartbeat", digest, tainted=alarm.tainted)


def _matter(
    entry: ChecklistEntry, before: WatchedEntry | None, now: WatchedEntry, zone: ZoneInfo
) -> tuple[str, tuple[str, ...]]:
    """Return what the turn is about, and the parts of that text that come from outside."""
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
    """Return a tool's failure as one line for people, without the fence that is meant for
    models.
    """
    lines = (line for line in failure.splitlines() if not line.startswith("```"))
    return " ".join(" ".join(lines).split())[:_FAILURE]


def _call(name: str, given: JsonObject) -> ToolCall:
    return ToolCall("watch", name, given, HEARTBEAT, SessionKind.OWNER, Origin.HEARTBEAT)
