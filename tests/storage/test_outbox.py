"""The contract of Outbox, over every implementation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from agentd.core.alert import AlertSeverity, DeliveryState, NewAlert, standing
from agentd.core.errors import NotFound


def alert(text="water the plants", sinks=("journal", "main")):
    return NewAlert(text, "heartbeat", f"digest of {text}", sinks, to="someone")


async def test_equal_text_within_a_day_is_put_once(stores, clock):
    first = await stores.outbox.put(alert())
    assert first is not None
    clock.jump(timedelta(hours=23, minutes=59))
    assert await stores.outbox.put(alert()) is None
    clock.jump(timedelta(minutes=1))
    assert await stores.outbox.put(alert()) is not None
    assert len(await stores.outbox.alerts(10)) == 2


async def test_what_comes_from_outside_keeps_back_nothing_that_does_not(stores):
    tainted = replace(alert(), tainted=True)
    assert await stores.outbox.put(tainted) is not None
    assert await stores.outbox.put(tainted) is None
    assert await stores.outbox.put(alert()) is not None
    assert await stores.outbox.put(tainted) is None  # it was told, and better
    assert await stores.outbox.put(alert()) is None


async def test_an_alert_that_only_was_recorded_keeps_no_other_from_being_told(stores):
    assert await stores.outbox.put(alert(sinks=())) is not None
    assert await stores.outbox.put(alert(sinks=())) is not None
    assert await stores.outbox.put(alert()) is not None
    assert await stores.outbox.put(alert()) is None


async def test_the_journal_alone_has_told_nobody(stores):
    sinks = ("journal", "socket")
    first = await stores.outbox.put(alert(sinks=sinks))
    await stores.outbox.mark_sent(first.id, "journal")
    assert await stores.outbox.put(alert(sinks=sinks)) is None  # the socket still tries
    await stores.outbox.retry(first.id, "socket", None)
    second = await stores.outbox.put(alert(sinks=sinks))
    assert second is not None
    await stores.outbox.mark_sent(second.id, "socket")
    assert await stores.outbox.put(alert(sinks=sinks)) is None


async def test_where_the_journal_is_all_that_was_asked_for_it_is_written_once(stores):
    first = await stores.outbox.put(alert(sinks=("journal",)))
    await stores.outbox.mark_sent(first.id, "journal")
    assert await stores.outbox.put(alert(sinks=("journal",))) is None
    assert await stores.outbox.put(alert(sinks=("main",))) is not None


async def test_an_acknowledged_alert_has_been_told_whichever_way(stores):
    first = await stores.outbox.put(alert(sinks=()))
    await stores.outbox.ack(first.id)
    assert await stores.outbox.put(alert()) is None


async def test_each_sink_gets_its_own_delivery(stores, clock):
    stored = await stores.outbox.put(alert())
    assert (stored.text, stored.to, stored.at) == ("water the plants", "someone", clock.now())
    assert {(d.alert.id, d.sink, d.attempts) for d in await stores.outbox.due()} == {
        (stored.id, "journal", 0),
        (stored.id, "main", 0),
    }
    await stores.outbox.mark_sent(stored.id, "journal")
    assert [d.sink for d in await stores.outbox.due()] == ["main"]
    assert (await stores.outbox.alerts(1))[0].delivered == {
        "journal": DeliveryState.SENT,
        "main": DeliveryState.PENDING,
    }


async def test_a_failed_try_comes_again_later_or_is_given_up(stores, clock):
    stored = await stores.outbox.put(alert(sinks=("hook",)))
    await stores.outbox.retry(stored.id, "hook", clock.now() + timedelta(seconds=30))
    assert await stores.outbox.due() == ()
    assert await stores.outbox.next_due() == clock.now() + timedelta(seconds=30)
    clock.jump(timedelta(seconds=30))
    (again,) = await stores.outbox.due()
    assert again.attempts == 1
    await stores.outbox.retry(stored.id, "hook", None)
    assert await stores.outbox.next_due() is None
    assert (await stores.outbox.alerts(1))[0].delivered == {"hook": DeliveryState.FAILED}


async def test_what_waits_for_its_next_try_is_due_once_its_sink_works(stores, clock):
    alert = await stores.outbox.put(NewAlert("a", "test", "d", ("main", "phone")))
    later = clock.now() + timedelta(hours=1)
    await stores.outbox.hold(alert.id, "main", later)
    await stores.outbox.retry(alert.id, "phone", later)
    assert await stores.outbox.due() == ()
    assert await stores.outbox.due({"main"}) == ()
    assert [(d.sink, d.attempts) for d in await stores.outbox.due({"phone"})] == [("phone", 1)]


async def test_acknowledged_alerts_can_be_left_out(stores):
    first = await stores.outbox.put(alert("a"))
    second = await stores.outbox.put(alert("b", sinks=()))
    assert (await stores.outbox.ack(first.id)).acked
    assert [a.id for a in await stores.outbox.alerts(10)] == [second.id, first.id]
    assert [a.id for a in await stores.outbox.alerts(10, unacked=True)] == [second.id]
    with pytest.raises(NotFound):
        await stores.outbox.ack(99)


async def test_an_acknowledged_alert_waits_for_nobody(stores, clock):
    first = await stores.outbox.put(alert("a", sinks=("main", "socket", "hook")))
    await stores.outbox.put(alert("b", sinks=("hook",)))
    later = clock.now() + timedelta(minutes=5)
    await stores.outbox.mark_sent(first.id, "main")
    await stores.outbox.retry(first.id, "socket", later, "nobody is there")
    await stores.outbox.hold(first.id, "hook", later)
    acked = await stores.outbox.ack(first.id)
    assert acked.delivered == {
        "main": DeliveryState.SENT,
        "socket": DeliveryState.WITHDRAWN,
        "hook": DeliveryState.WITHDRAWN,
    }
    assert (await stores.outbox.alerts(2))[1] == acked
    assert not any(one.next_try or one.error for one in acked.handovers)
    await stores.outbox.hold(2, "hook", later + timedelta(minutes=5))
    assert await stores.outbox.next_due() == later + timedelta(minutes=5)
    clock.jump(timedelta(minutes=6))
    assert await stores.outbox.due({"socket"}) == ()
    await stores.outbox.retry(first.id, "socket", later)  # a try that was under way
    assert await stores.outbox.due({"socket"}) == ()
    await stores.outbox.mark_sent(first.id, "socket")
    assert (await stores.outbox.alerts(2))[1].delivered["socket"] is DeliveryState.SENT
    newest = await stores.outbox.alerts(2)
    assert standing("socket", newest).waiting == 0
    assert standing("hook", newest).waiting == 1


async def test_why_a_try_failed_and_when_the_next_one_is_stay_with_the_alert(stores, clock):
    stored = await stores.outbox.put(replace(alert(), severity=AlertSeverity.WARNING))
    assert stored.severity is AlertSeverity.WARNING
    minute = timedelta(minutes=1)
    await stores.outbox.retry(stored.id, "main", clock.now() + minute, "it is off")
    await stores.outbox.mark_sent(stored.id, "journal")
    (found,) = await stores.outbox.alerts(1)
    assert found.severity is AlertSeverity.WARNING
    journal, main = sorted(found.handovers, key=lambda one: one.sink)
    assert (journal.state, journal.tries, journal.error) == (DeliveryState.SENT, 1, "")
    assert (journal.tried_at, journal.next_try) == (clock.now(), None)
    assert (main.tries, main.error) == (1, "it is off")
    assert (main.tried_at, main.next_try) == (clock.now(), clock.now() + minute)
    clock.jump(minute)
    await stores.outbox.retry(stored.id, "main", None, "it is gone")
    (found,) = await stores.outbox.alerts(1)
    told = standing("main", (found,))
    assert (told.waiting, told.failed, told.error) == (0, 1, "it is gone")
    await stores.outbox.ack(stored.id)
    assert standing("main", await stores.outbox.alerts(1)).failed == 0
    assert standing("journal", (found,)).sent_at == found.at


async def test_what_is_held_waits_without_a_try_and_together_with_what_waits_already(stores, clock):
    first = await stores.outbox.put(alert("a", sinks=("hook",)))
    await stores.outbox.hold(first.id, "hook", clock.now() + timedelta(minutes=15))
    clock.jump(timedelta(minutes=10))
    second = await stores.outbox.put(alert("b", sinks=("hook", "main")))
    await stores.outbox.hold(second.id, "hook", clock.now() + timedelta(minutes=15))
    assert [d.sink for d in await stores.outbox.due()] == ["main"]
    await stores.outbox.mark_sent(second.id, "main")
    assert await stores.outbox.next_due() == clock.now() + timedelta(minutes=5)
    clock.jump(timedelta(minutes=5))
    assert [(d.alert.id, d.attempts) for d in await stores.outbox.due()] == [
        (first.id, 0),
        (second.id, 0),
    ]


async def test_what_is_held_does_not_wait_for_what_is_tried_again(stores, clock):
    first = await stores.outbox.put(alert("a", sinks=("hook",)))
    await stores.outbox.retry(first.id, "hook", clock.now() + timedelta(minutes=1))
    second = await stores.outbox.put(alert("b", sinks=("hook",)))
    await stores.outbox.hold(second.id, "hook", clock.now() + timedelta(minutes=15))
    clock.jump(timedelta(minutes=1))
    assert [d.alert.id for d in await stores.outbox.due()] == [first.id]


YEAR = timedelta(days=365)


async def test_what_a_clock_that_was_ahead_has_told_keeps_nothing_back(stores, clock):
    clock.jump(YEAR)
    assert await stores.outbox.put(alert()) is not None
    clock.jump(-YEAR)
    assert await stores.outbox.put(alert()) is not None
    assert await stores.outbox.put(alert()) is None


@pytest.mark.parametrize("ahead", [timedelta(hours=2), YEAR])
@pytest.mark.parametrize("is_tried", [False, True])
async def test_what_a_clock_that_was_ahead_has_put_off_is_due(stores, clock, ahead, is_tried):
    clock.jump(ahead)
    put = await stores.outbox.put(alert(sinks=("main",)))
    if is_tried:
        await stores.outbox.retry(put.id, "main", clock.now() + timedelta(minutes=5), "it is away")
        assert await stores.outbox.due() == ()
    clock.jump(-ahead)
    (delivery,) = await stores.outbox.due()
    assert (delivery.alert.id, delivery.attempts) == (put.id, is_tried)


@pytest.mark.parametrize(("held", "due"), [(timedelta(hours=30), 0), (YEAR, 1)])
async def test_what_was_held_by_a_clock_that_was_ahead_is_due(stores, clock, held, due):
    put = await stores.outbox.put(alert(sinks=("main",)))
    await stores.outbox.hold(put.id, "main", clock.now() + held)
    assert len(await stores.outbox.due()) == due
