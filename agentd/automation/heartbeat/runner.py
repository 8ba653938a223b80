"""Runs one beat: asks the model about the checklist in silent turns, and stores all results in one
commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agentd.automation.heartbeat.beat_sink import HEARTBEAT, BeatSink
from agentd.automation.heartbeat.dependencies import BeatDependencies
from agentd.automation.heartbeat.gate import Run
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.automation.heartbeat.snapshot import Snapshot
from agentd.automation.heartbeat.watched import WatchedEntries
from agentd.core import failpoints
from agentd.core.alert import AlertSeverity, NewAlert, Recipients, alert_digest
from agentd.core.beat import Beat, BeatFinding, Outcome, Reason, finding_of
from agentd.core.checklist import LOOK, Checklist, ChecklistEntry, Item, item_hashes
from agentd.core.errors import WorkspaceError
from agentd.core.offloading import offload_rows
from agentd.core.turn import MAIN, Origin, PromptScope, SessionKey, TurnRequest
from agentd.core.verdict import Alarm
from agentd.core.watch import WatchedEntry
from agentd.engine.background_turn import TOOLS, compose, run_background_turn
from agentd.engine.durable import when_space


class BeatRunner:
    """Runs beats. `prompt` is the question of a beat, `watching` checks the entries that need tools
    of others, and alerts go to `recipients`.
    """

    def __init__(
        self,
        settings: HeartbeatSettings,
        deps: BeatDependencies,
        prompt: str,
        watching: WatchedEntries,
        recipients: Recipients,
    ) -> None:
        self._settings = settings
        self._deps = deps
        self._prompt = prompt
        self._watching = watching
        self._recipients = recipients
        self.session = SessionKey(settings.session) if settings.context == "main" else HEARTBEAT

    def adapted(
        self, settings: HeartbeatSettings, prompt: str, recipients: Recipients
    ) -> BeatRunner:
        """Return a runner like this one with other settings."""
        watching = self._watching.adapted(settings, recipients)
        return BeatRunner(settings, self._deps, prompt, watching, recipients)

    async def run(self, beat_id: int, run: Run, sight: Snapshot, *, force: bool) -> Beat:
        """Check the due entries, with `force` all of them; store the finished beat in one commit
        with its alerts and the watched answers, and return it. Only what is due counts as done.
        Raises StorageError.
        """
        checklist = sight.view.checklist
        items = checklist.items if force else run.due
        due = await offload_rows(checklist.parts, lambda: checklist.work(items))
        watches = await self.watches(checklist)
        findings: list[BeatFinding] = []
        if not due or any(entry.hash not in watches for entry in due):
            found, named = await self._ask(beat_id, sight, due, watches)
            findings.append(found)
            watches.update((entry.hash, WatchedEntry(entry.hash)) for entry in named)
        for entry in due:
            if (watch := watches.get(entry.hash)) is not None:
                can_ask = not any(found.is_last for found in findings)
                findings += await self._look(beat_id, sight, entry, watch, can_ask=can_ask)
        due_now = {item.hash for item in run.due}
        early = [item for item in items if item.hash not in due_now]
        failpoints.hit("beat.verdict")
        return await self._store(beat_id, sight, [_without(early, found) for found in findings])

    def tools(self) -> tuple[str, ...]:
        """Return the names of the tools of others with which entries can be watched."""
        return self._watching.names()

    async def watches(self, checklist: Checklist) -> dict[str, WatchedEntry]:
        """Return what is stored of the watched entries, by hash; none while no tools of others are
        available. Raises StorageError.
        """
        known = await self._deps.beats.watches([entry.hash for entry in checklist.entries])
        return dict(known) if self.tools() else {}

    async def tell_unreadable(self, beat_id: int, error: WorkspaceError) -> Beat:
        """Alert the user, without a model call, that HEARTBEAT.md cannot be read; finish and return
        the beat.
        """
        text = f"HEARTBEAT.md cannot be read, so no beat looks at it: {error.message}"
        if error.cure:
            text = f"{text}; {error.cure}"
        alert = self._recipients.alert(
            text,
            "heartbeat",
            alert_digest("HEARTBEAT.md unreadable"),
            severity=AlertSeverity.WARNING,
        )
        found = BeatFinding(Outcome.ALERT, Reason.ALERT, text, alert=alert)
        beat, stored = await self._deps.beats.end_beat(beat_id, [found])
        if stored:
            self._deps.wake()
        return beat

    async def _ask(
        self,
        beat_id: int,
        sight: Snapshot,
        due: Sequence[ChecklistEntry],
        watches: Mapping[str, WatchedEntry],
    ) -> tuple[BeatFinding, tuple[ChecklistEntry, ...]]:
        """Ask the model about the due entries that are not watched. Return its finding, and those
        of the entries for which it called `look`, which are watched from now on.
        """
        view, settings, sink = sight.view, self._settings, BeatSink()
        checklist, zone = view.checklist, view.hours.zone
        items = [entry.item for entry in due if entry.item is not None]
        matter = await offload_rows(checklist.parts, lambda: checklist.text(items, without=watches))
        request = TurnRequest(
            session=self.session,
            text=compose(self._prompt, "HEARTBEAT.md", matter, view.now, zone),
            message_id=f"beat:{beat_id}",
            origin=Origin.HEARTBEAT,
            context=PromptScope(settings.context),
            model=settings.model or None,
            tools=TOOLS | {LOOK} if self.tools() else TOOLS,
        )
        if request.session != HEARTBEAT and not await self._deps.exists(request.session):
            request = replace(request, session=MAIN)  # a beat must not create a session
        verdict = await run_background_turn(
            self._deps.turns, request, sink, settings.timeout, settings.ack_max_chars
        )
        left = {entry.hash: entry for entry in due if entry.hash not in watches}
        named = tuple(entry for entry in _entries_looked_at(sink, checklist) if entry.hash in left)
        asked = tuple(entry for entry in left.values() if entry not in named)
        alert = self._alert(verdict, sink.thoughts) if isinstance(verdict, Alarm) else None
        return finding_of(verdict, item_hashes(*asked), alert), named

    async def _look(
        self,
        beat_id: int,
        sight: Snapshot,
        entry: ChecklistEntry,
        known: WatchedEntry,
        *,
        can_ask: bool,
    ) -> list[BeatFinding]:
        """Return the findings about a watched entry; none if a model would be needed and `can_ask`
        is false.
        """
        seen = await self._watching.poll(entry, known)
        if isinstance(seen, BeatFinding):
            return [seen]
        if not can_ask:
            return []
        if self._deps.breaker.is_open():
            text = "the model's service keeps failing, so a change waits until it answers"
            return [BeatFinding(Outcome.FAILED, Reason.BREAKER_OPEN, text)]
        if await self._deps.budget.is_used_up():
            text = "what beats may use in a day is used up, so a change waits for the next day"
            return [BeatFinding(Outcome.FAILED, Reason.BUDGET, text)]
        before = known if known.calls else None
        name = f"beat:{beat_id}:{entry.hash}"
        return [await self._watching.ask(entry, before, seen, name, sight.view.hours.zone)]

    async def _store(self, beat_id: int, sight: Snapshot, findings: Sequence[BeatFinding]) -> Beat:
        # All that was spent since then under this origin is this beat's: no other one runs now.
        tokens, cost = await self._deps.ledger.spending(sight.view.now, Origin.HEARTBEAT)
        deps = self._deps
        # The model's findings have been paid for, so on a full disk wait for space.
        beat, stored = await when_space(
            deps.clock,
            deps.beats.end_beat,
            beat_id,
            findings,
            tokens=tokens,
            cost_usd=cost,
        )
        if stored or any(found.reason is Reason.NOTIFY for found in findings):
            self._deps.wake()
        return beat

    def _alert(self, alarm: Alarm, thoughts: str) -> NewAlert:
        shown = text = alarm.text
        if self._settings.include_reasoning and thoughts:
            shown = f"Reasoning: {thoughts}\n\n{text}"
        digest = alert_digest(text)
        return self._recipients.alert(shown, "heartbeat", digest, tainted=alarm.tainted)


def _without(early: Sequence[Item], found: BeatFinding) -> BeatFinding:
    """Return the finding without what would silence the `early` entries once they are due: that
    they are done and, for an entry that comes once, the answers seen so far, which would then count
    as unchanged.
    """
    undone = {item.hash for item in early}
    once = {item.hash for item in early if item.every is None}
    done = tuple(item for item in found.done_items if item not in undone)
    watch = found.watch if found.watch is None or found.watch.entry not in once else None
    return replace(found, done_items=done, watch=watch)


def _entries_looked_at(sink: BeatSink, checklist: Checklist) -> tuple[ChecklistEntry, ...]:
    """Return the entries for which the model called `look`, each once."""
    found = {
        entry.hash: entry
        for call in sink.calls
        if call.name == LOOK and not call.is_error
        if (entry := checklist.find(str(call.input.get("entry", "")))) is not None
    }
    return tuple(found.values())
