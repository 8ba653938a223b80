"""Beats over days, nights, restarts and jumping clocks."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.automation.heartbeat.dependencies import BeatDependencies
from agentd.automation.heartbeat.heartbeat import Heartbeat
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.automation.heartbeat.runner import BeatRunner
from agentd.automation.heartbeat.snapshot import SnapshotReader
from agentd.automation.heartbeat.watched import HEARTBEAT, WatchedEntries
from agentd.core import failpoints
from agentd.core.alert import Alert, Recipients
from agentd.core.beat import Beat, HeartbeatState, Outcome, Reason
from agentd.core.errors import (
    FileMissing,
    FileUnreadable,
    QueueFull,
    ShuttingDown,
    StorageError,
    StorageFull,
)
from agentd.core.event import ThoughtChunk
from agentd.core.ports import EventSink
from agentd.core.prompt import ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import (
    MAIN,
    Failure,
    FinishedCall,
    Origin,
    SessionKey,
    StopReason,
    Turn,
    TurnRequest,
    Usage,
)
from agentd.core.workspace import FileView
from agentd.engine.background_turn import compose
from agentd.testing import FakeClock, MemoryBeats, MemoryLedger, MemoryOutbox
from agentd.testing.job_doubles import FakeTicket

MONDAY = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)


class Beats(MemoryBeats):
    """A store that outlives the heartbeats of a test, and shows what is in it. Skips are stored
    once `may_skip`.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.outbox = MemoryOutbox(clock)
        self.reads = 0  # of the schedule
        self.may_skip = asyncio.Event()
        self.may_skip.set()
        self.refusals = 0  # for want of room, when a beat is to end
        super().__init__(clock, self.outbox)

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        await self.may_skip.wait()
        return await super().skip_beat(due, next_due, reason, file_hash)

    async def end_beat(self, *told: Any, **spent: Any) -> tuple[Beat, tuple[Alert, ...]]:
        if self.refusals:
            self.refusals -= 1
            raise StorageFull
        return await super().end_beat(*told, **spent)

    async def heartbeat(self) -> HeartbeatState:
        self.reads += 1
        return await super().heartbeat()

    @property
    def next_due(self) -> datetime | None:
        return self._state.next_due

    @property
    def rows(self) -> list[Beat]:
        return list(self._finished.values())

    async def alerts(self) -> list[Alert]:
        return list(reversed(await self.outbox.alerts(100)))


@dataclass
class Turns:
    """The engine's door, with a model that says what `reply` says."""

    ledger: MemoryLedger
    reply: str = "HEARTBEAT_OK"
    requests: list[TurnRequest] = field(default_factory=list)
    busy: set[SessionKey] = field(default_factory=set)
    cancelled: list[SessionKey] = field(default_factory=list)
    failure: Failure | None = None
    refusal: Exception | None = None
    stop: StopReason = StopReason.END_TURN
    tools: tuple[FinishedCall, ...] = ()
    thought: str = ""
    hangs: bool = False
    tainted: bool = False
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    async def submit(self, request: TurnRequest, sink: EventSink) -> FakeTicket:
        if self.refusal is not None:
            raise self.refusal
        self.requests.append(request)
        await self.may_answer.wait()
        await self.ledger.charge(
            request.session, request.origin, request.model or "", Usage(90, 10), 0.25
        )
        if self.thought:
            sink.emit(ThoughtChunk(request.session, self.thought))
        return FakeTicket(
            None
            if self.hangs
            else Turn(
                request.session,
                request.message_id,
                text=self.reply,
                stop_reason=None if self.failure else self.stop,
                usage=Usage(90, 10),
                tool_calls=self.tools,
                failure=self.failure,
                tainted=self.tainted,
            )
        )

    def is_busy(self, session: SessionKey) -> bool:
        return session in self.busy

    def cancel_message(self, session: SessionKey, message_id: str) -> bool:
        self.cancelled.append(session)
        return True


class Breaker:
    is_tripped = False

    def is_open(self) -> bool:
        return self.is_tripped


class World:
    """A heartbeat with everything around it; `restart` makes a new heartbeat on the same store."""

    def __init__(
        self,
        checklist: str | None = "- [ ] look at the disk",
        start: datetime = MONDAY,
        zone: str = "UTC",
        **table: object,
    ) -> None:
        self.clock = FakeClock(start, zone)
        self.beats = Beats(self.clock)
        self.ledger = MemoryLedger(self.clock)
        self.turns = Turns(self.ledger)
        self.breaker = Breaker()
        self.file: str | Exception = FileMissing() if checklist is None else checklist
        self.is_reading, self.may_read = asyncio.Event(), asyncio.Event()
        self.may_read.set()
        self.over_budget = False
        self.wakes = 0
        self.heard: tuple[datetime, str] | None = None
        self.settings = HeartbeatSettings.model_validate(table)
        self.heartbeat = self.restart()

    def restart(self) -> Heartbeat:
        self.deps = deps = BeatDependencies(
            self.clock,
            self.beats,
            self.ledger,
            self.turns,
            self.breaker,
            self.read,
            self,
            self.last_heard,
            self.wake,
            self.exists,
            self.own,
        )
        recipients = Recipients(("journal",), "me")
        watched = WatchedEntries(
            self.settings, self.turns, self, self.clock, "Look at it.", recipients
        )
        runner = BeatRunner(self.settings, deps, "Go through the list.", watched, recipients)
        self.heartbeat = Heartbeat(self.settings, deps, runner)
        return self.heartbeat

    async def read(self) -> FileView:
        self.is_reading.set()
        await self.may_read.wait()
        if isinstance(self.file, Exception):
            raise self.file
        return FileView("HEARTBEAT.md", self.file, hashlib.sha256(self.file.encode()).hexdigest())

    async def last_heard(self) -> tuple[datetime, str] | None:
        return self.heard

    async def is_used_up(self) -> bool:
        return self.over_budget

    async def tokens_today(self) -> tuple[int, int]:
        return 100, 500

    def sourced_specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        return ()

    def reads(self, call: ToolCall, request: TurnRequest) -> bool | None:
        return None

    async def repeat(self, call: ToolCall, request: TurnRequest) -> ToolOutput:
        raise AssertionError

    def wake(self) -> None:
        self.wakes += 1

    async def own(self, work: Coroutine[Any, Any, Beat]) -> Beat:
        self.owned = asyncio.create_task(work)
        return await asyncio.shield(self.owned)

    async def exists(self, session: SessionKey) -> bool:
        return session in {"main", "chat:work"}

    async def live(self, span: timedelta) -> list[Beat]:
        """Do what the scheduler does: tick at the due time and at least every minute."""
        before = len(self.beats.rows)
        end = self.clock.now() + span
        while self.clock.now() < end:
            await self.heartbeat.tick()
            due = await self.heartbeat.next_due()
            wait = 60.0 if due is None else (due - self.clock.now()).total_seconds()
            wait = min(max(wait, 1.0), 60.0, (end - self.clock.now()).total_seconds())
            self.clock.jump(timedelta(seconds=wait))
            self.clock._monotonic += wait
        return self.beats.rows[before:]

    async def beat(self, *, force: bool = False) -> Beat:
        return await self.heartbeat.run(force=force)


def ran(rows: Sequence[Beat]) -> list[Beat]:
    return [beat for beat in rows if beat.outcome is not Outcome.SKIPPED]


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("Europe/Berlin", datetime(2026, 3, 26, 12, 0, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 22, 12, 0, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 3, 5, 17, 0, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 10, 29, 17, 0, tzinfo=UTC)),
    ],
)
async def test_a_week_over_a_change_of_the_clocks(zone: str, start: datetime) -> None:
    world = World(start=start, zone=zone)
    rows = await world.live(timedelta(days=7))
    local = [beat.at.astimezone(ZoneInfo(zone)) for beat in ran(rows)]
    assert all(8 <= at.hour < 22 for at in local)
    days = {at.date() for at in local}
    for day in sorted(days)[1:-1]:  # whole days
        assert [(at.hour, at.minute) for at in local if at.date() == day] == [
            (hour, minute) for hour in range(8, 22) for minute in (0, 30)
        ]
    nights = [beat for beat in rows if beat.outcome is Outcome.SKIPPED]
    assert [beat.reason for beat in nights] == [Reason.OUTSIDE_ACTIVE_HOURS] * 7
    assert len(world.turns.requests) == len(local)


async def test_the_first_beat_comes_an_interval_after_the_first_start() -> None:
    world = World()
    assert await world.live(timedelta(minutes=29, seconds=59)) == []
    rows = await world.live(timedelta(minutes=1))
    assert [beat.due for beat in rows] == [MONDAY + timedelta(minutes=30)]


async def test_a_hundred_restarts_neither_move_nor_repeat_a_slot() -> None:
    world = World()
    for _ in range(100):
        world.restart()
        await world.live(timedelta(minutes=3))
    due = [beat.due for beat in world.beats.rows]
    assert due == [MONDAY + timedelta(minutes=30 * n) for n in range(1, 10)]


async def test_a_restart_storm_at_the_due_time_beats_once() -> None:
    world = World()
    await world.live(timedelta(minutes=30))
    for _ in range(50):
        await world.restart().tick()
    assert len(world.beats.rows) == 1


async def test_a_suspend_is_caught_up_once() -> None:
    world = World(active_hours_end="24:00", active_hours_start="00:00")
    await world.live(timedelta(minutes=31))
    world.clock.jump(timedelta(hours=8))
    rows = await world.live(timedelta(minutes=20))
    assert len(rows) == 1
    assert rows[0].due == MONDAY + timedelta(hours=8, minutes=30)
    assert world.beats.next_due == MONDAY + timedelta(hours=9)


@pytest.mark.parametrize("days", [365, -365, 1, -1])
async def test_a_jump_of_the_clock_neither_storms_nor_silences(days: int) -> None:
    world = World("- [ ] a (every: 1h)", active_hours_start="00:00", active_hours_end="24:00")
    await world.live(timedelta(hours=3))
    world.clock.jump(timedelta(days=days))
    rows = ran(await world.live(timedelta(hours=5)))
    assert 4 <= len(rows) <= 6
    assert all(beat.reason is Reason.ACK for beat in rows)


_NIGHTS = (  # some hours before clocks change
    ("Europe/Berlin", datetime(2026, 3, 28, 20, 0, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 24, 20, 0, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 10, 0, tzinfo=UTC)),
    ("America/St_Johns", datetime(2026, 11, 1, 0, 0, tzinfo=UTC)),
)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["live", "sleep", "back", "restart"]), st.integers(1, 400)),
    min_size=1,
    max_size=10,
)


@given(night=st.sampled_from(_NIGHTS), steps=_STEPS)
def test_nights_of_suspends_restarts_and_turned_clocks_keep_the_beat(
    night: tuple[str, datetime], steps: Sequence[tuple[str, int]]
) -> None:
    """Awake for so long, it beats every half hour, one more or less, and no slot twice between two
    turns of the clock backwards.
    """

    async def spend() -> None:
        zone, start = night
        hours = {"active_hours_start": "00:00", "active_hours_end": "24:00"}
        world = World("- [ ] look", start=start, zone=zone, **hours)
        slots: list[datetime | None] = []
        for step, minutes in (*steps, ("live", 120)):
            match step:
                case "live":
                    rows = ran(await world.live(timedelta(minutes=minutes)))
                    assert minutes // 30 - 1 <= len(rows) <= minutes // 30 + 2
                    slots += [beat.due for beat in rows]
                case "sleep":
                    world.clock.jump(timedelta(minutes=minutes))
                case "back":
                    assert len(set(slots)) == len(slots), "a slot came twice"
                    slots.clear()
                    world.clock.jump(-timedelta(minutes=minutes))
                case "restart":
                    world.restart()
        assert len(set(slots)) == len(slots), "a slot came twice"

    asyncio.run(spend())


async def test_a_suspend_into_the_night_leaves_one_row_and_waits_for_the_morning() -> None:
    world = World()
    await world.live(timedelta(minutes=31))
    world.clock.jump(timedelta(hours=14))
    rows = await world.live(timedelta(hours=1))
    assert [beat.reason for beat in rows] == [Reason.OUTSIDE_ACTIVE_HOURS]
    assert world.beats.next_due == datetime(2026, 5, 5, 8, 0, tzinfo=UTC)


async def test_a_clock_at_the_beginning_of_time_beats_on() -> None:
    world = World(start=datetime(1970, 1, 1, 10, 0, tzinfo=UTC))
    assert len(await world.live(timedelta(hours=1, minutes=1))) == 2


@pytest.mark.parametrize("text", [None, "", "# Heartbeat\n\n- [ ]\n- [x] old\n"])
async def test_an_empty_checklist_costs_no_model_call(text: str | None) -> None:
    world = World(text)
    rows = await world.live(timedelta(hours=4))
    assert {beat.reason for beat in rows} == {Reason.EMPTY_CHECKLIST}
    assert len(rows) == 7
    assert world.turns.requests == []
    assert world.heartbeat.problems() == ()


async def test_a_file_that_cannot_be_read_is_told_until_it_can() -> None:
    world = World()
    world.file = FileUnreadable("HEARTBEAT.md is a directory", cure="remove it")
    assert (await world.beat()).reason is Reason.ALERT
    world.file = FileUnreadable("HEARTBEAT.md is not UTF-8", cure="write it anew")
    assert (await world.beat()).reason is Reason.DUPLICATE
    told = await world.heartbeat.explain()
    assert (told["would_run"], told["reason"]) == (False, "alert")
    assert told["checklist"]["unreadable"] == "HEARTBEAT.md is not UTF-8"
    (alert,) = await world.beats.alerts()
    assert alert.text.endswith("HEARTBEAT.md is a directory; remove it")
    assert (world.turns.requests, world.wakes) == ([], 1)
    assert [p.code for p in world.heartbeat.problems()] == ["heartbeat_unreadable"]
    world.file = "- [ ] x"
    await world.beat()
    assert world.heartbeat.problems() == ()


@pytest.mark.parametrize("gone", [FileMissing(), FileUnreadable("HEARTBEAT.md is a directory")])
async def test_what_was_done_is_kept_while_the_file_cannot_be_had(gone: Exception) -> None:
    world = World("- [ ] pay the rent (due: 2026-05-04 09:00)")
    await world.beat()
    world.file, file = gone, world.file
    await world.live(timedelta(hours=1))
    await world.heartbeat.explain()
    await world.beat(force=True)
    world.file = file
    rows = await world.live(timedelta(hours=1))
    assert {beat.reason for beat in rows} == {Reason.NOTHING_DUE}


async def test_an_entry_that_was_taken_out_before_a_beat_is_a_new_one_after_it() -> None:
    rent = "- [ ] pay the rent (due: 2026-05-04 09:00)"
    world = World(f"{rent}\n- [ ] look at the disk")
    await world.beat()
    world.file = "- [ ] look at the disk"
    await world.beat()
    world.file = rent
    assert (await world.beat()).reason is Reason.ACK


async def test_a_forced_beat_asks_no_model_about_a_file_that_cannot_be_read() -> None:
    world = World()
    world.file = FileUnreadable("HEARTBEAT.md is a directory", cure="remove it")
    assert (await world.beat(force=True)).reason is Reason.ALERT
    assert (await world.beat(force=True)).reason is Reason.DUPLICATE
    assert world.turns.requests == []
    world.file = ""
    assert (await world.beat(force=True)).reason is Reason.ACK


async def test_a_dated_item_brings_the_beat_forward_and_is_done_once() -> None:
    world = World("- [ ] call (due: 2026-05-04 10:47)")
    rows = await world.live(timedelta(hours=6))
    assert [(b.at, b.reason) for b in ran(rows)] == [
        (datetime(2026, 5, 4, 10, 47, tzinfo=UTC), Reason.ACK)
    ]
    assert rows[0].reason is Reason.NOTHING_DUE
    assert {b.reason for b in rows if b.outcome is Outcome.SKIPPED} == {Reason.NOTHING_DUE}


async def test_an_item_written_between_two_beats_is_seen() -> None:
    world = World("# nothing yet")
    await world.live(timedelta(minutes=5))
    world.file = "- [ ] call (due: 2026-05-04 10:10)"
    rows = await world.live(timedelta(minutes=6))
    assert [beat.due for beat in rows] == [datetime(2026, 5, 4, 10, 10, tzinfo=UTC)]


@pytest.mark.parametrize("second", range(0, 120, 7))
async def test_an_item_comes_to_the_minute_whenever_it_was_written(second: int) -> None:
    world = World("# nothing yet", interval="2h")
    await world.live(timedelta(minutes=5, seconds=second))
    world.file = "- [ ] call (due: 2026-05-04 10:07)"
    written = world.clock.now()
    world.clock.jump(timedelta(seconds=50))  # nothing looks for almost a minute
    (beat,) = ran(await world.live(timedelta(minutes=10)))
    wanted = max(written, datetime(2026, 5, 4, 10, 7, tzinfo=UTC))
    assert timedelta() <= beat.at - wanted <= timedelta(minutes=1)


@pytest.mark.parametrize("when", ["due: 2026-05-04 09:00", "every: 5h"])
async def test_what_is_overdue_when_written_comes_at_once_and_once(when: str) -> None:
    world = World("# nothing yet", interval="1h")
    await world.live(timedelta(minutes=65, seconds=30))
    world.file = f"- [ ] call ({when})"
    await world.heartbeat.tick()
    await world.live(timedelta(hours=3))
    (beat,) = ran(world.beats.rows)
    assert (beat.at, beat.reason) == (MONDAY + timedelta(minutes=65, seconds=30), Reason.ACK)


async def test_an_overdue_item_that_failed_waits_for_its_slot_over_restarts_and_jumps() -> None:
    world = World("- [ ] call (due: 2026-05-04 09:00)", interval="1h")
    world.turns.failure = Failure("provider_auth", "no key")
    for _ in range(10):
        world.restart()
        await world.live(timedelta(minutes=3))
    assert len(ran(world.beats.rows)) == 1
    world.clock.jump(timedelta(hours=-1))
    await world.live(timedelta(minutes=30))
    assert len(ran(world.beats.rows)) == 1


async def test_what_is_written_just_after_a_beat_keeps_its_distance() -> None:
    world = World("- [ ] look", interval="1h")
    await world.live(timedelta(minutes=60, seconds=2))
    world.file = "- [ ] look\n- [ ] call (every: 5h)"
    await world.live(timedelta(minutes=5))
    first, second = ran(world.beats.rows)
    assert second.at - first.at == timedelta(minutes=1)


async def test_an_item_written_at_night_comes_when_the_hours_begin() -> None:
    world = World("# nothing yet", start=datetime(2026, 5, 4, 23, 0, tzinfo=UTC), interval="24h")
    await world.live(timedelta(minutes=1))
    world.file = "- [ ] call (due: 2026-05-05 03:00)"
    rows = ran(await world.live(timedelta(hours=12)))
    assert [beat.at for beat in rows] == [datetime(2026, 5, 5, 8, 0, tzinfo=UTC)]


async def test_an_item_of_the_night_waits_for_the_morning() -> None:
    world = World("- [ ] call (due: 2026-05-04 23:00)")
    rows = ran(await world.live(timedelta(days=1)))
    assert [beat.at for beat in rows] == [datetime(2026, 5, 5, 8, 0, tzinfo=UTC)]


async def test_a_cadence_is_kept() -> None:
    world = World("- [ ] water (every: 2h)", active_hours_start="00:00", active_hours_end="24:00")
    rows = ran(await world.live(timedelta(hours=9)))
    gaps = {b.at - a.at for a, b in pairwise(rows)}
    assert gaps == {timedelta(hours=2)}
    assert len(rows) == 5


async def test_a_cadence_shorter_than_the_interval_is_kept() -> None:
    world = World("- [ ] water (every: 10m)")
    rows = ran(await world.live(timedelta(hours=2)))
    gaps = {b.at - a.at for a, b in pairwise(rows)}
    assert gaps == {timedelta(minutes=10)}


async def test_an_item_is_done_only_after_a_successful_call() -> None:
    world = World("- [ ] water (every: 5h)")
    world.turns.failure = Failure("provider_auth", "no key")
    rows = ran(await world.live(timedelta(minutes=95)))
    assert [beat.reason for beat in rows] == [Reason.PROVIDER_ERROR] * 4
    assert {(beat.tokens, beat.text) for beat in rows} == {(100, "no key")}
    (problem,) = world.heartbeat.problems()
    assert problem.text == "the last heartbeat failed (provider_error): no key"
    world.turns.failure = None
    rows = ran(await world.live(timedelta(hours=2)))
    assert [beat.reason for beat in rows] == [Reason.ACK]
    assert world.heartbeat.problems() == ()


async def test_only_what_is_due_is_asked_and_the_file_stands_there_once() -> None:
    world = World("# Home\n- [ ] now (every: 1h)\n- [ ] later (due: 2027-01-01)\n- [ ] always\n")
    await world.beat()
    (request,) = world.turns.requests
    assert request.text.startswith("Go through the list.\n\n## HEARTBEAT.md\n\n# Home")
    assert request.text.count("## HEARTBEAT.md") == 1
    assert "now" in request.text
    assert "always" in request.text
    assert "later" not in request.text
    assert request.text.endswith("Current time: 2026-05-04 10:00 (Monday, UTC)")


async def test_a_beat_has_the_tools_for_looking_noting_and_telling_alone() -> None:
    world = World()
    await world.beat()
    (request,) = world.turns.requests
    assert request.tools == {"memory_read", "memory_search", "memory_write", "notify"}
    assert request.origin is Origin.HEARTBEAT


async def test_beats_go_on_however_many_have_failed() -> None:
    world = World(active_hours_start="00:00", active_hours_end="24:00")
    world.turns.failure = Failure("provider_server", "down", "wait")
    await world.live(timedelta(days=2))
    rows = world.beats.rows
    assert {row.outcome for row in rows} == {Outcome.FAILED}
    assert len(rows) >= 95
    world.turns.failure = None
    await world.live(timedelta(hours=1))
    assert world.beats.rows[-1].reason is Reason.ACK


async def test_beat_fifty_asks_what_beat_one_asked() -> None:
    world = World()
    await world.live(timedelta(days=3))
    sizes = {len(request.text) for request in world.turns.requests if "Monday" in request.text}
    assert len(sizes) == 1
    assert {request.session for request in world.turns.requests} == {HEARTBEAT}
    assert len({request.message_id for request in world.turns.requests}) == len(
        world.turns.requests
    )


async def test_the_context_of_a_conversation_is_a_setting() -> None:
    world = World(context="main", session="chat:work", model="small")
    await world.beat()
    (request,) = world.turns.requests
    assert (request.session, request.context, request.model) == ("chat:work", "main", "small")


async def test_a_conversation_that_does_not_exist_is_said_and_not_made() -> None:
    world = World(context="main", session="chat:wrok")
    await world.heartbeat.recover()
    (problem,) = world.heartbeat.problems()
    assert (problem.code, "chat:wrok" in problem.text) == ("heartbeat_session", True)
    await world.beat()
    (request,) = world.turns.requests
    assert request.session == "main"
    assert [found.code for found in world.heartbeat.problems()] == ["heartbeat_session"]
    right = World(context="main", session="chat:work")
    await right.heartbeat.recover()
    assert right.heartbeat.problems() == ()


async def test_an_alert_is_put_once_a_day() -> None:
    world = World(active_hours_start="00:00", active_hours_end="24:00")
    world.turns.reply = "Disk  FULL"
    first = await world.beat()
    world.turns.reply = "disk full"
    second = await world.beat()
    assert (first.outcome, first.reason) == (Outcome.ALERT, Reason.ALERT)
    assert (second.outcome, second.reason) == (Outcome.QUIET, Reason.DUPLICATE)
    world.clock.jump(timedelta(hours=24))
    assert (await world.beat()).reason is Reason.ALERT
    alerts = await world.beats.alerts()
    assert [alert.text for alert in alerts] == ["Disk  FULL", "disk full"]
    assert [(tuple(alert.delivered), alert.to) for alert in alerts] == [(("journal",), "me")] * 2
    assert world.wakes == 2


async def test_an_acknowledged_reply_leaves_its_rest_in_the_row() -> None:
    world = World()
    world.turns.reply = "HEARTBEAT_OK Disk at 40 %."
    beat = await world.beat()
    assert (beat.outcome, beat.reason, beat.text) == (Outcome.QUIET, Reason.ACK, "Disk at 40 %.")
    assert (beat.tokens, beat.cost_usd) == (100, 0.25)
    assert world.wakes == 0


async def test_an_empty_reply_has_failed() -> None:
    world = World()
    world.turns.reply = " "
    assert (await world.beat()).reason is Reason.EMPTY_REPLY
    world.turns.failure = Failure("provider_empty_answer", "The model said nothing.")
    beat = await world.beat()
    assert (beat.outcome, beat.reason) == (Outcome.FAILED, Reason.EMPTY_REPLY)


@pytest.mark.parametrize(
    "stop", [StopReason.REFUSAL, StopReason.MAX_TOKENS, StopReason.MAX_TURN_REQUESTS]
)
async def test_an_answer_that_was_refused_or_cut_has_failed_and_its_line_is_due_again(
    stop: StopReason,
) -> None:
    world = World("- [ ] 2026-01-01 10:00 call the roofer\n")
    world.turns.reply, world.turns.stop = "The first half of", stop
    beat = await world.beat()
    assert (beat.outcome, beat.reason) == (Outcome.FAILED, Reason.PROVIDER_ERROR)
    assert "refused" in beat.text or "cut" in beat.text
    assert await world.beats.alerts() == []
    world.turns.reply, world.turns.stop = "Call the roofer.", StopReason.END_TURN
    assert (await world.beat()).reason is Reason.ALERT
    assert len(world.turns.requests) == 2
    assert "roofer" in world.turns.requests[1].text


async def test_a_call_that_would_pass_a_limit_is_named_so() -> None:
    world = World()
    world.turns.failure = Failure("provider_budget", "The call was not made.")
    beat = await world.beat()
    assert (beat.outcome, beat.reason) == (Outcome.FAILED, Reason.BUDGET)


async def test_notify_is_the_alert_and_the_reply_is_none() -> None:
    world = World()
    world.turns.reply = "I told them."
    world.turns.tools = (FinishedCall("c1", "notify", {"text": "The roof leaks."}, is_error=False),)
    beat = await world.beat()
    assert (beat.outcome, beat.reason) == (Outcome.ALERT, Reason.NOTIFY)
    assert beat.text == "The roof leaks."
    assert await world.beats.alerts() == []
    assert world.wakes == 1


async def test_a_notify_that_failed_leaves_the_reply_to_be_judged() -> None:
    world = World()
    world.turns.reply = "Disk full"
    world.turns.tools = (FinishedCall("c1", "notify", {}, is_error=True),)
    assert (await world.beat()).reason is Reason.ALERT


async def test_reasoning_stands_before_an_alert_only_when_asked_for() -> None:
    world = World(include_reasoning=True)
    world.turns.reply, world.turns.thought = "Disk full", "df says 99 %"
    await world.beat()
    assert [a.text for a in await world.beats.alerts()] == ["Reasoning: df says 99 %\n\nDisk full"]
    world.turns.thought = "df says something else"
    assert (await world.beat()).reason is Reason.DUPLICATE
    plain = World()
    plain.turns.reply, plain.turns.thought = "Disk full", "df says 99 %"
    await plain.beat()
    assert [a.text for a in await plain.beats.alerts()] == ["Disk full"]


async def test_a_beat_that_takes_too_long_is_cancelled_and_has_failed() -> None:
    world = World()
    world.settings = world.settings.model_copy(update={"timeout": timedelta(microseconds=1)})
    world.restart()
    world.turns.hangs = True
    assert (await world.beat()).reason is Reason.PROVIDER_ERROR
    assert world.turns.cancelled == [HEARTBEAT]


async def test_a_turn_that_is_refused_or_cancelled_has_failed() -> None:
    world = World()
    world.turns.refusal = QueueFull()
    assert (await world.beat()).reason is Reason.PROVIDER_ERROR
    world.turns.refusal = ShuttingDown()
    assert (await world.beat()).reason is Reason.INTERRUPTED
    world.turns.refusal = None
    world.turns.stop = StopReason.CANCELLED
    assert (await world.beat()).reason is Reason.INTERRUPTED


async def test_a_pause_asked_for_while_the_clock_was_ahead_lasts_no_longer_than_it_was_to() -> None:
    world = World("- [ ] x", interval="30m")
    world.clock.jump(timedelta(days=90))
    await world.beats.pause(world.clock.now() + timedelta(hours=2))
    world.clock.jump(-timedelta(days=90))
    await world.heartbeat.tick()
    noticed = world.clock.now()
    status = await world.heartbeat.status()
    assert status.paused_until == noticed + timedelta(hours=2)
    assert (await world.beats.heartbeat()).paused_until == noticed + timedelta(hours=2)
    world.clock.jump(timedelta(minutes=119))
    assert (await world.beat()).reason is Reason.PAUSED
    world.clock.jump(timedelta(minutes=1))
    assert (await world.beat()).reason is not Reason.PAUSED


async def test_each_gate_has_its_reason_in_order() -> None:
    world = World("", enabled=False, start=datetime(2026, 5, 4, 23, 0, tzinfo=UTC))
    await world.beats.pause(datetime(2027, 1, 1, tzinfo=UTC))
    world.breaker.is_tripped = world.over_budget = True
    world.turns.busy.add(SessionKey("main"))

    async def reason(**table: object) -> Reason:
        if table:
            world.settings = HeartbeatSettings.model_validate(table)
            world.restart()
        return (await world.beat()).reason

    assert await reason() is Reason.DISABLED
    assert await reason(interval="0m") is Reason.DISABLED
    assert await reason(interval="30m") is Reason.PAUSED
    await world.beats.pause(None)
    assert await reason() is Reason.OUTSIDE_ACTIVE_HOURS
    assert (
        await reason(active_hours_end="24:00", quiet_hours_start="22:00", quiet_hours_end="23:30")
        is Reason.QUIET_HOURS
    )
    assert await reason(active_hours_end="24:00") is Reason.BREAKER_OPEN
    world.breaker.is_tripped = False
    assert await reason() is Reason.BUDGET
    world.over_budget = False
    assert await reason() is Reason.EMPTY_CHECKLIST
    world.file = "- [ ] x (due: 2027-01-01)"
    assert await reason() is Reason.NOTHING_DUE
    world.file = "- [ ] x"
    assert await reason() is Reason.BUSY
    world.turns.busy.clear()
    assert await reason() is Reason.ACK
    assert {beat.due for beat in world.beats.rows} == {None}


async def test_force_opens_all_but_budget_and_lane() -> None:
    world = World("", enabled=False, start=datetime(2026, 5, 4, 23, 0, tzinfo=UTC))
    world.breaker.is_tripped = world.over_budget = True
    world.turns.busy.add(HEARTBEAT)
    assert (await world.beat(force=True)).reason is Reason.BUDGET
    world.over_budget = False
    assert (await world.beat(force=True)).reason is Reason.BUSY
    world.turns.busy.clear()
    assert (await world.beat(force=True)).reason is Reason.ACK


async def test_a_forced_beat_shows_what_is_not_due_and_leaves_it_for_its_time() -> None:
    world = World("- [ ] call the plumber (due: 2026-05-04 10:10)\n- [ ] stretch (every: 2h)")
    await world.beat()  # the stretching, which is due at first sight
    world.clock.jump(timedelta(minutes=5))
    forced = await world.beat(force=True)
    assert forced.reason is Reason.ACK
    shown = world.turns.requests[-1].text
    assert "plumber" in shown
    assert "stretch" in shown
    world.turns.reply = "Call the plumber."
    rows = ran(await world.live(timedelta(minutes=20)))
    assert [beat.text for beat in rows] == ["Call the plumber."]
    assert "stretch" not in world.turns.requests[-1].text
    world.turns.reply = "Stretch."
    rows = ran(await world.live(timedelta(minutes=110)))
    assert [(beat.text, beat.at) for beat in rows] == [("Stretch.", MONDAY + timedelta(hours=2))]


async def test_a_beat_keeps_which_entries_were_due_and_whether_it_was_forced() -> None:
    world = World("- a (due: 2026-05-04 09:00)\n- b (due: 2026-05-05 09:00)\n- c")
    beat = await world.beat(force=True)
    texts = await world.heartbeat.entries()
    assert [texts[one] for one in beat.entries] == ["- a (due: 2026-05-04 09:00)"]
    assert beat.trigger == "force"
    rows = ran(await world.live(timedelta(minutes=35)))
    assert [row.trigger for row in rows] == ["schedule"]


async def test_a_forced_beat_counts_what_is_due_as_done() -> None:
    world = World("- [ ] call the plumber (due: 2026-05-04 09:50)")
    await world.beat(force=True)
    assert ran(await world.live(timedelta(hours=1))) == []


async def test_beats_that_are_off_never_come() -> None:
    world = World(interval="0m")
    await world.beats.schedule(MONDAY)
    assert await world.live(timedelta(days=2)) == []
    assert await world.heartbeat.next_due() is None
    assert (await world.heartbeat.status()).next_due is None


async def test_a_busy_lane_delays_the_beat_and_leaves_one_row_a_slot() -> None:
    world = World()
    world.turns.busy.add(SessionKey("main"))
    rows = await world.live(timedelta(minutes=40))
    assert [beat.reason for beat in rows] == [Reason.BUSY]
    assert (await world.beat()).reason is Reason.BUSY
    assert await world.live(timedelta(minutes=5)) == []
    world.turns.busy.clear()
    rows = await world.live(timedelta(minutes=1))
    assert [(beat.reason, beat.due) for beat in rows] == [
        (Reason.ACK, MONDAY + timedelta(minutes=30))
    ]
    assert world.beats.next_due == MONDAY + timedelta(hours=1)


async def test_a_run_asked_for_moves_no_slot() -> None:
    world = World()
    await world.live(timedelta(minutes=10))
    await world.beat()
    assert world.beats.next_due == MONDAY + timedelta(minutes=30)


async def test_beats_never_overlap() -> None:
    world = World()
    await world.live(timedelta(minutes=29))
    world.turns.hangs = True
    async with asyncio.TaskGroup() as group:
        running = group.create_task(world.beat())
        await FakeClock.settle()
        world.clock.jump(timedelta(minutes=2))
        await world.heartbeat.tick()
        assert (await world.beat(force=True)).reason is Reason.BUSY
        assert len(world.turns.requests) == 1
        running.cancel()


async def test_whoever_looks_at_the_schedule_stores_none() -> None:
    world = World()
    first = MONDAY + timedelta(minutes=30)
    assert (await world.heartbeat.status()).next_due == first
    assert (await world.heartbeat.explain())["next_due"] == first.isoformat()
    assert await world.heartbeat.next_due() == first
    assert world.beats.next_due is None
    await world.heartbeat.tick()
    assert world.beats.next_due == first
    world.clock.jump(timedelta(days=-1))  # back: the due time is a day ahead until a tick
    assert (await world.heartbeat.status()).next_due == world.clock.now() + timedelta(minutes=30)
    assert world.beats.next_due == first
    await world.heartbeat.tick()
    assert world.beats.next_due == world.clock.now() + timedelta(minutes=30)


async def test_a_tick_reads_the_schedule_once_and_who_asks_for_it_then_reads_none() -> None:
    world = World()
    await world.heartbeat.tick()
    world.beats.reads = 0
    await world.heartbeat.tick()
    for _ in range(2):  # for the scheduler, and for the sign of life
        await world.heartbeat.next_due()
    assert world.beats.reads == 1


async def test_a_skip_of_a_beat_that_was_asked_for_leaves_the_schedule_alone() -> None:
    world = World("")
    await world.heartbeat.tick()
    due = world.beats.next_due
    world.clock.jump(timedelta(minutes=7))
    assert (await world.beat()).reason is Reason.EMPTY_CHECKLIST
    assert world.beats.next_due == await world.heartbeat.next_due() == due


async def test_a_tick_that_only_looks_does_not_refuse_a_manual_beat() -> None:
    world = World()
    await world.heartbeat.next_due()  # half an hour from now: a tick has nothing to do but look
    world.may_read.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.heartbeat.tick())
        await world.is_reading.wait()
        beat = group.create_task(world.beat(force=True))
        second = group.create_task(world.beat(force=True))
        await asyncio.sleep(0)
        world.may_read.set()
    assert beat.result().reason is Reason.ACK
    assert second.result().reason is Reason.BUSY


async def test_a_beat_asked_for_while_one_begins_gives_its_slot_no_second() -> None:
    world = World()
    await world.heartbeat.tick()
    due = await world.heartbeat.next_due()
    assert due is not None
    world.clock.jump(due - world.clock.now())
    world.is_reading.clear()
    world.may_read.clear()
    world.beats.may_skip.clear()  # until the beat has begun
    async with asyncio.TaskGroup() as group:
        beat = group.create_task(world.heartbeat.tick())
        await world.is_reading.wait()
        refused = group.create_task(world.beat())
        await asyncio.sleep(0)
        world.may_read.set()
        await beat
        world.beats.may_skip.set()
    assert refused.result().reason is Reason.BUSY
    assert world.beats.next_due == due + timedelta(minutes=30)
    await world.heartbeat.tick()
    assert len(world.turns.requests) == 1


async def test_a_beat_by_hand_behind_one_that_was_due_refuses_the_next() -> None:
    world = World()
    await world.heartbeat.tick()
    world.clock.jump(timedelta(minutes=20))
    world.file = "- [ ] call Max (due: 2026-05-04 10:05)"  # which brings the beat forward
    reads, by_hand, may_go_on = 0, asyncio.Event(), asyncio.Event()
    world.is_reading.clear()
    world.may_read.clear()
    read = world.read

    async def counted() -> FileView:
        nonlocal reads
        reads += 1
        if reads == 4:  # the tick has looked whether one is due, at the beat, and for the next
            by_hand.set()
            await may_go_on.wait()
        return await read()

    world.read = counted
    world.heartbeat = world.restart()
    async with asyncio.TaskGroup() as group:
        due = group.create_task(world.heartbeat.tick())
        await world.is_reading.wait()
        beat = group.create_task(world.beat(force=True))
        await asyncio.sleep(0)
        world.may_read.set()
        await due
        await by_hand.wait()
        assert (await world.beat(force=True)).reason is Reason.BUSY
        may_go_on.set()
    assert beat.result().reason is not Reason.BUSY


async def test_a_beat_cut_by_a_crash_is_interrupted_and_not_run_again() -> None:
    world = World()
    failpoints.arm("beat.verdict:1:raise")
    try:
        with pytest.raises(failpoints.FailpointError):
            await world.live(timedelta(hours=1))
    finally:
        failpoints.arm("")
    assert await world.restart().recover() == 1
    assert await world.heartbeat.recover() == 0
    rows = await world.live(timedelta(minutes=29))
    assert rows == []
    assert [(b.outcome, b.reason) for b in world.beats.rows] == [
        (Outcome.FAILED, Reason.INTERRUPTED)
    ]


async def test_a_schedule_that_stands_still_is_a_problem() -> None:
    world = World()
    await world.live(timedelta(minutes=1))
    world.clock.jump(timedelta(hours=1, minutes=29))
    assert world.heartbeat.problems() == ()
    world.clock.jump(timedelta(minutes=2))
    assert [p.code for p in world.heartbeat.problems()] == ["heartbeat_stalled"]


async def test_a_store_that_fails_loses_no_slot() -> None:
    world = World()
    await world.live(timedelta(minutes=29))
    world.clock.jump(timedelta(minutes=2))
    world.over_budget = True
    skip, world.beats.skip_beat = world.beats.skip_beat, _broken
    with pytest.raises(StorageError):
        await world.heartbeat.tick()
    world.beats.skip_beat = skip
    await world.heartbeat.tick()
    assert [beat.due for beat in world.beats.rows] == [MONDAY + timedelta(minutes=30)]


async def _broken(*_: object) -> Beat:
    raise StorageError


async def test_explain_says_what_a_beat_would_do() -> None:
    world = World("- [ ] a (due: 2026-05-04 11:00)", zone="Europe/Berlin")
    told = await world.heartbeat.explain()
    assert (told["would_run"], told["reason"]) == (True, "")
    (item,) = told["checklist"]["items"]
    assert (item["text"], item["due"]) == ("- [ ] a (due: 2026-05-04 11:00)", True)
    world.over_budget = True
    told = await world.heartbeat.explain()
    assert (told["would_run"], told["reason"]) == (False, "budget")
    assert world.beats.rows == []


async def test_explain_says_which_entries_are_done_and_when_they_come_again() -> None:
    world = World(
        "- a (due: 2026-05-04 09:00)\n- b (every: 2h)\n- c (due: 2026-05-05 09:00)", start=MONDAY
    )
    await world.beat()
    once, again, later = (await world.heartbeat.explain())["checklist"]["items"]
    at = MONDAY.isoformat()
    assert (once["due"], once["done_at"], once["next"]) == (False, at, None)
    assert (again["done_at"], again["next"]) == (at, (MONDAY + timedelta(hours=2)).isoformat())
    assert (later["done_at"], later["next"]) == (None, "2026-05-05T09:00:00+00:00")


async def test_explain_says_when_a_beat_can_run_that_hours_or_a_pause_put_off() -> None:
    world = World(active_hours_start="08:00", active_hours_end="10:15")
    told = await world.heartbeat.explain()
    assert told["next_due"] == (MONDAY + timedelta(minutes=30)).isoformat()
    assert told["not_before"] == "2026-05-05T08:00:00+00:00"
    await world.beats.pause(datetime(2026, 5, 6, 9, 0, tzinfo=UTC))
    assert (await world.heartbeat.explain())["not_before"] == "2026-05-06T09:00:00+00:00"


async def test_a_time_that_counts_as_none_is_a_problem_until_it_is_mended() -> None:
    world = World("- [ ] a (due: 24.11.2026)\n- [ ] b (every: 1w)")
    told = await world.heartbeat.explain()
    assert ["24.11.2026" in one or "1w" in one for one in told["checklist"]["mistakes"]] == [
        True
    ] * 2
    (problem,) = world.heartbeat.problems()
    assert "'- [ ] a (due: 24.11.2026)'" in problem.text
    assert "and 1 more" in problem.text
    world.file = "- [ ] a (due: 2026-11-24)"
    await world.heartbeat.explain()
    assert world.heartbeat.problems() == ()


async def test_a_list_that_is_still_the_same_is_not_taken_apart_again() -> None:
    world = World("- [ ] a")
    hours, awaited = world.settings.hours(world.clock.zone), frozenset({MAIN})
    eyes = SnapshotReader(world.deps, hours, MAIN, awaited, is_on=True, patience=timedelta(0))
    first, second = await eyes.look(), await eyes.look()
    assert second.view.checklist is first.view.checklist
    world.file = "- [ ] b"
    assert [item.text for item in (await eyes.look()).view.checklist.entries] == ["- [ ] b"]


async def test_explain_says_what_each_gate_answers_and_which_decides() -> None:
    world = World("- [ ] x (due: 2027-01-01)")
    await world.beats.pause(datetime(2026, 6, 1, tzinfo=UTC))
    world.over_budget = True
    told = await world.heartbeat.explain()
    assert {one["gate"]: one["reason"] for one in told["gates"]} == {
        "on": None,
        "pause": "paused",
        "idle": None,
        "hours": None,
        "breaker": None,
        "budget": "budget",
        "file": None,
        "entries": "nothing_due",
        "busy": None,
    }
    assert (told["would_run"], told["reason"], told["decided_by"]) == (False, "paused", "pause")
    assert (await world.beat()).reason == told["reason"]


async def test_explain_of_a_beat_that_would_run_names_no_gate() -> None:
    told = await World("- [ ] x").heartbeat.explain()
    assert (told["would_run"], told["reason"], told["decided_by"]) == (True, "", None)
    assert not any(one["reason"] for one in told["gates"])


async def test_explain_names_the_zone_of_its_times_and_that_of_the_hours() -> None:
    settings = {"quiet_hours_start": "12:00", "quiet_hours_end": "13:00"}
    world = World("- [ ] x", timezone="Asia/Tokyo", **settings)
    told = await world.heartbeat.explain()
    assert (told["times_in"], told["zone"]) == ("UTC", "Asia/Tokyo")
    assert told["hours"] == "08:00-22:00 without 12:00-13:00"


async def test_explain_says_that_there_is_no_file() -> None:
    assert (await World(None).heartbeat.explain())["checklist"]["missing"]
    assert not (await World("").heartbeat.explain())["checklist"]["missing"]


async def test_status_has_the_last_beat_and_the_next() -> None:
    world = World()
    await world.live(timedelta(minutes=31))
    status = await world.heartbeat.status()
    assert status.is_on
    assert status.last.reason is Reason.ACK
    assert status.as_json() == {
        "enabled": True,
        "next_due": "2026-05-04T11:00:00+00:00",
        "paused_until": None,
        "last": status.last.as_json(),
        "tokens_today": 100,
        "daily_tokens": 500,
    }


def test_the_prompt_that_ships_is_small_and_names_the_word() -> None:
    prompt = resources.files("agentd.core").joinpath("prompts", "heartbeat.md").read_text("utf-8")
    text = compose(prompt, "HEARTBEAT.md", "- [ ] x", MONDAY, ZoneInfo("UTC"))
    assert "HEARTBEAT_OK" in text
    assert len(text.encode()) < 1200


async def test_no_beat_runs_while_the_owner_is_away_until_he_writes() -> None:
    world = World(pause_after_idle="2d")
    world.heard = (world.clock.now() - timedelta(days=2, minutes=1), "chat")
    assert (await world.heartbeat.run()).reason is Reason.IDLE
    assert (await world.heartbeat.explain())["idle"]
    world.heard = (world.clock.now(), "chat")
    assert (await world.heartbeat.run()).reason is not Reason.IDLE


async def test_without_a_limit_beats_go_on_however_long_the_owner_is_away() -> None:
    world = World()
    world.heard = (world.clock.now() - timedelta(days=400), "chat")
    assert (await world.heartbeat.run()).reason is not Reason.IDLE


@pytest.mark.parametrize("reply", ["Pay this bill now", "HEARTBEAT_OK pay this bill now"])
async def test_the_history_says_which_beats_may_speak_for_others(reply: str) -> None:
    world = World()
    world.turns.reply, world.turns.tainted = reply, True
    beat = await world.beat(force=True)
    words = reply.removeprefix("HEARTBEAT_OK ")
    assert beat.text == world.beats.rows[-1].text == f"[may come from outside] {words}"
    assert [alert.told for alert in await world.beats.alerts()] in ([], [beat.text])
    world.turns.tainted, world.turns.reply = False, f"HEARTBEAT_OK {words}"
    assert (await world.beat(force=True)).text == words


async def test_an_alert_of_a_beat_by_hand_is_told_though_whoever_asked_has_gone() -> None:
    world = World()
    world.turns.reply = "ALERT: the disk is full of water"
    world.turns.may_answer.clear()
    caller = asyncio.create_task(world.beat())
    while not world.turns.requests:
        await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (await world.beat()).reason is Reason.BUSY
    world.turns.may_answer.set()
    assert (await world.owned).outcome is Outcome.ALERT
    assert len(await world.beats.alerts()) == 1
    assert len(world.turns.requests) == 1


async def test_what_a_beat_found_waits_for_room_on_a_full_disk() -> None:
    world = World()
    world.turns.reply = "ALERT: the disk is full of water"
    world.beats.refusals = 2
    caller = asyncio.create_task(world.beat())
    await world.clock.settle()
    assert await world.beats.alerts() == []
    await world.clock.advance(5)
    assert (await caller).outcome is Outcome.ALERT
    assert len(await world.beats.alerts()) == 1
    assert len(world.turns.requests) == 1
