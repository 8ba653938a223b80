"""The contract of BeatStore, over every implementation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentd.core.alert import NewAlert
from agentd.core.beat import BeatFinding, HeartbeatState, ItemState, Outcome, Reason
from agentd.core.errors import NotFound
from agentd.core.watch import WatchedEntry

ALERT = NewAlert("look", "heartbeat", "d1", ("main",))
ALARM = BeatFinding(Outcome.ALERT, Reason.ALERT, "look", alert=ALERT)


async def test_the_schedule_is_kept(stores, clock):
    assert await stores.beats.heartbeat() == HeartbeatState()
    due, until = clock.now() + timedelta(hours=1), clock.now() + timedelta(days=1)
    await stores.beats.schedule(due)
    await stores.beats.pause(until)
    assert await stores.beats.heartbeat() == HeartbeatState(due, until, clock.now())
    await stores.beats.pause(None)
    await stores.beats.schedule(None)
    assert await stores.beats.heartbeat() == HeartbeatState()


async def test_a_beat_ends_with_its_alert_and_its_items(stores, clock):
    due = clock.now()
    beat_id = await stores.beats.begin_beat(due, due + timedelta(hours=1), "hash")
    assert await stores.beats.beats(10) == ()
    assert (await stores.beats.heartbeat()).next_due == due + timedelta(hours=1)
    await stores.beats.items(["x", "y"])
    clock.jump(timedelta(minutes=1))
    found = BeatFinding(Outcome.ALERT, Reason.NOTIFY, "look", ("x",), ALERT)
    beat, put = await stores.beats.end_beat(beat_id, [found], tokens=7, cost_usd=0.5)
    assert (beat.outcome, beat.reason, beat.text, beat.tokens) == ("alert", "notify", "look", 7)
    assert (beat.due, beat.file_hash, beat.at) == (due, "hash", due)
    assert await stores.beats.beats(10) == (beat,)
    assert await stores.outbox.alerts(10) == put
    states = await stores.beats.items(["x", "y"])
    assert states == {"x": ItemState("x", due, clock.now()), "y": ItemState("y", due)}


async def test_a_beat_keeps_what_made_it_run_and_which_entries_were_due(stores, clock):
    for due, forced, trigger in (
        (clock.now(), False, "schedule"),
        (None, False, "hand"),
        (None, True, "force"),
    ):
        beat_id = await stores.beats.begin_beat(due, None, "", entries=["x", "y"], forced=forced)
        beat, _ = await stores.beats.end_beat(beat_id, [BeatFinding(Outcome.QUIET, Reason.ACK)])
        assert (beat.trigger, beat.entries, beat.repeats) == (trigger, ("x", "y"), None)
        assert (await stores.beats.beats(1))[0] == beat


async def test_an_alert_told_before_makes_a_quiet_duplicate(stores):
    told = await stores.outbox.put(ALERT)
    beat_id = await stores.beats.begin_beat(None, None, "")
    beat, put = await stores.beats.end_beat(beat_id, [ALARM])
    assert (beat.outcome, beat.reason, put) == (Outcome.QUIET, Reason.DUPLICATE, ())
    assert (beat.repeats, beat.repeats_at) == (told.id, told.at)
    assert (await stores.beats.beats(1))[0] == beat
    assert len(await stores.outbox.alerts(10)) == 1


@pytest.mark.parametrize(
    ("beside", "outcome", "reason"),
    [
        (BeatFinding(Outcome.ALERT, Reason.NOTIFY), Outcome.ALERT, Reason.NOTIFY),
        (BeatFinding(Outcome.FAILED, Reason.LOOK_FAILED), Outcome.FAILED, Reason.LOOK_FAILED),
        (BeatFinding(Outcome.QUIET, Reason.ACK), Outcome.QUIET, Reason.DUPLICATE),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_an_alert_told_before_hides_nothing_that_came_of_other_parts(
    stores, beside, outcome, reason, is_first
):
    await stores.outbox.put(ALERT)
    beat_id = await stores.beats.begin_beat(None, None, "")
    findings = [ALARM, beside] if is_first else [beside, ALARM]
    beat, put = await stores.beats.end_beat(beat_id, findings)
    assert (beat.outcome, beat.reason, put) == (outcome, reason, ())


async def test_of_two_alerts_the_one_not_told_before_is_put(stores):
    await stores.outbox.put(ALERT)
    other = NewAlert("smoke", "heartbeat", "d2", ("main",))
    beat_id = await stores.beats.begin_beat(None, None, "")
    found = BeatFinding(Outcome.ALERT, Reason.ALERT, "smoke", alert=other)
    beat, put = await stores.beats.end_beat(beat_id, [ALARM, found])
    assert (beat.outcome, beat.reason) == (Outcome.ALERT, Reason.ALERT)
    assert [alert.text for alert in put] == ["smoke"]
    assert beat.text == "look\n\nsmoke"


async def test_a_beat_ends_once_and_a_second_end_puts_no_alert(stores):
    beat_id = await stores.beats.begin_beat(None, None, "")
    await stores.beats.end_beat(beat_id, [BeatFinding(Outcome.QUIET, Reason.ACK)])
    with pytest.raises(NotFound):
        await stores.beats.end_beat(beat_id, [ALARM])
    assert await stores.outbox.alerts(10) == ()


async def test_beats_cut_by_a_crash_are_marked_once(stores):
    await stores.beats.begin_beat(None, None, "")
    assert await stores.beats.interrupt_beats() == 1
    assert await stores.beats.interrupt_beats() == 0
    (beat,) = await stores.beats.beats(10)
    assert (beat.outcome, beat.reason) == (Outcome.FAILED, Reason.INTERRUPTED)


async def test_a_skip_is_a_row_and_moves_the_schedule(stores, clock):
    later = clock.now() + timedelta(hours=8)
    beat = await stores.beats.skip_beat(clock.now(), later, Reason.QUIET_HOURS, "h")
    assert (beat.outcome, beat.reason, beat.file_hash) == ("skipped", "quiet_hours", "h")
    second = await stores.beats.skip_beat(None, later, Reason.BUSY)
    assert await stores.beats.beats(10) == (second, beat)
    assert await stores.beats.beats(1) == (second,)
    assert (await stores.beats.heartbeat()).next_due == later


async def test_a_skip_of_a_beat_asked_for_leaves_the_schedule_alone(stores, clock):
    due = clock.now() + timedelta(hours=1)
    await stores.beats.schedule(due)
    await stores.beats.skip_beat(None, None, Reason.BUSY)
    await stores.beats.skip_beat(None, clock.now(), Reason.BUSY)
    assert (await stores.beats.heartbeat()).next_due == due


async def test_a_look_at_some_items_and_entries_forgets_no_others(stores, clock):
    seen = clock.now()
    await _done_and_watched(stores, "a")
    clock.jump(timedelta(hours=1))
    assert await stores.beats.items([]) == {}
    assert await stores.beats.watches([]) == {}
    assert set(await stores.beats.items(["c"])) == {"c"}
    assert await stores.beats.items(["a"]) == {"a": ItemState("a", seen, seen)}
    assert (await stores.beats.watches(["c", "a"])).keys() == {"a"}


async def test_a_beat_forgets_what_is_no_longer_listed(stores, clock):
    seen = clock.now()
    await _done_and_watched(stores, "a", "b")
    clock.jump(timedelta(hours=1))
    await stores.beats.begin_beat(None, None, "", listed={"b", "c"})
    assert (await stores.beats.watches(["a", "b"])).keys() == {"b"}
    states = await stores.beats.items(["a", "b"])
    assert states == {"a": ItemState("a", clock.now()), "b": ItemState("b", seen, seen)}
    await stores.beats.begin_beat(None, None, "", listed=())
    assert await stores.beats.watches(["a", "b"]) == {}


async def test_a_beat_without_a_checklist_forgets_nothing(stores, clock):
    await _done_and_watched(stores, "a")
    await stores.beats.begin_beat(None, None, "")
    assert (await stores.beats.items(["a"]))["a"].last_done == clock.now()
    assert (await stores.beats.watches(["a"])).keys() == {"a"}


async def _done_and_watched(stores, *entries):
    beat_id = await stores.beats.begin_beat(None, None, "")
    findings = [
        BeatFinding(Outcome.QUIET, Reason.ACK, done_items=(entry,), watch=WatchedEntry(entry))
        for entry in entries
    ]
    await stores.beats.end_beat(beat_id, findings)
