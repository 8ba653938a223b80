"""From the outbox to the sinks, at least once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import pytest

from agentd.automation.alerts.alert_settings import AlertsSettings
from agentd.automation.alerts.dispatch import Dispatcher
from agentd.automation.alerts.timing import SinkTiming
from agentd.core import failpoints
from agentd.core.alert import Alert, Delivery, DeliveryState, NewAlert, alert_digest
from agentd.core.errors import AgentdError, Busy, StorageError, StorageFull
from agentd.interfaces.commands.alerts import ALERTS
from agentd.testing import FakeClock, MemoryOutbox


class Sink:
    """Takes alerts, or raises what it was told to."""

    def __init__(self, name: str, *errors: Exception) -> None:
        self.name = name
        self.errors = list(errors)
        self.taken: list[str] = []
        self.tries = 0
        self.block: asyncio.Event | None = None

    async def send(self, alert: Alert) -> None:
        self.tries += 1
        if self.block is not None:
            await self.block.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(alert.text)


class World:
    def __init__(self, *sinks: Sink, max_tries: int = 10, zone: str = "UTC") -> None:
        self.clock = FakeClock(zone=zone)
        self.outbox = MemoryOutbox(self.clock)
        self.sinks = sinks
        self.dispatcher = Dispatcher(self.outbox, sinks, self.clock, max_tries=max_tries)

    async def put(self, text: str, *sinks: str) -> Alert:
        names = sinks or tuple(sink.name for sink in self.sinks)
        alert = await self.outbox.put(NewAlert(text, "test", alert_digest(text), names))
        assert alert is not None
        return alert

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.dispatcher.run())
            await self.clock.settle()
            yield
            task.cancel()

    async def states(self) -> dict[str, DeliveryState]:
        return (await self.outbox.alerts(1))[0].delivered


@pytest.fixture(autouse=True)
def _disarm() -> AsyncIterator[None]:
    yield
    failpoints.arm("")


async def test_an_alert_reaches_every_sink_once() -> None:
    one, two = Sink("one"), Sink("two")
    world = World(one, two)
    async with world.running():
        await world.put("disk full")
        world.dispatcher.wake()
        await world.clock.advance(3600)
    assert (one.taken, two.taken) == (["disk full"], ["disk full"])
    assert set((await world.states()).values()) == {DeliveryState.SENT}


async def test_after_a_break_every_sink_is_served_again() -> None:
    class Breaking(MemoryOutbox):
        breaks = True

        async def next_due(self) -> datetime | None:
            if self.breaks:
                raise KeyError("a flaw")
            return await super().next_due()

    one = Sink("one")
    world = World(one)
    world.outbox = outbox = Breaking(world.clock)
    world.dispatcher = Dispatcher(outbox, [one], world.clock)
    await world.put("disk full")
    with pytest.raises(ExceptionGroup):
        await world.dispatcher.run()
    outbox.breaks = False
    async with world.running():
        assert one.taken == ["disk full"]


async def test_what_was_put_before_the_start_is_delivered() -> None:
    one = Sink("one")
    world = World(one)
    await world.put("disk full")
    async with world.running():
        assert one.taken == ["disk full"]


async def test_what_was_told_is_not_told_again_while_it_cannot_be_recorded() -> None:
    class Full(MemoryOutbox):
        is_full = True

        async def mark_sent(self, alert_id: int, sink: str) -> None:
            if self.is_full:
                raise StorageFull("the disk is full")
            await super().mark_sent(alert_id, sink)

    one = Sink("one")
    world = World(one)
    world.outbox = outbox = Full(world.clock)
    world.dispatcher = Dispatcher(outbox, [one], world.clock)
    await world.put("the cellar is under water")
    async with world.running():
        await world.clock.advance(240)
        await world.put("and so is the garden")
        world.dispatcher.wake()
        await world.clock.advance(120)
        assert one.taken == ["the cellar is under water"], "it stops there until it can record"
        outbox.is_full = False
        await world.clock.advance(120)
    assert one.taken == ["the cellar is under water", "and so is the garden"]
    assert (await world.states()) == {"one": DeliveryState.SENT}


async def test_it_is_tried_for_a_day() -> None:
    off = Sink("phone", *[AgentdError("the phone is off")] * 99)
    world = World(off, max_tries=AlertsSettings().max_tries)
    await world.put("the door is open")
    async with world.running():
        await world.clock.advance(23 * 3600)
        assert await world.states() == {"phone": DeliveryState.PENDING}
        await world.clock.advance(2 * 3600)
        assert await world.states() == {"phone": DeliveryState.FAILED}
    (problem,) = world.dispatcher.problems()
    assert "the phone is off" in problem.text


async def test_a_test_alert_tells_where_it_arrived_and_why_not() -> None:
    world = World(Sink("mail", AgentdError("E-Mail answered 535")), Sink("phone"))
    async with world.running():
        sent = await world.dispatcher.test()
        await world.clock.settle()
    (alert,) = await world.outbox.alerts(1)
    assert alert.id == sent.id
    told = ALERTS["test"].show(alert.as_json())
    assert "mail   pending: E-Mail answered 535" in told
    assert told.count("phone  sent\n") == 1


async def test_once_a_sink_takes_something_it_is_given_what_waited_for_it() -> None:
    phone, other = Sink("phone", *[AgentdError("no network")] * 13), Sink("other")
    world = World(phone, other, max_tries=34)
    await world.put("the cellar is wet", "phone")
    async with world.running():
        await world.clock.advance(4 * 3600)
        assert phone.taken == []
        await world.put("the door is open", "other")
        world.dispatcher.wake()
        await world.clock.advance(60)
        assert phone.taken == [], "it is the phone's turn that counts"
        phone.errors.clear()
        await world.put("the milk is sour", "phone")
        world.dispatcher.wake()
        await world.clock.advance(2)
    assert phone.taken == ["the milk is sour", "the cellar is wet"]


async def test_one_that_is_refused_takes_no_other_of_its_digest_with_it() -> None:
    class Filtered(Sink):
        async def send(self, alert: Alert) -> None:
            self.tries += 1
            if "https://" in alert.text:
                raise AgentdError("taken for spam")
            self.taken.append(alert.text)

    mail = Filtered("mail")
    world = World(mail, max_tries=12)
    timings = {"mail": SinkTiming(digest=timedelta(minutes=1))}
    world.dispatcher = Dispatcher(world.outbox, [mail], world.clock, timings=timings, max_tries=12)
    for text in ("the door is open", "read https://example.org", "the cellar is wet"):
        await world.put(text)
    async with world.running():
        await world.clock.advance(600)
        assert sorted(mail.taken) == ["the cellar is wet", "the door is open"]
        await world.clock.advance(86_400)
    states = [alert.delivered["mail"] for alert in await world.outbox.alerts(3)]
    assert sorted(states) == ["failed", "sent", "sent"]
    assert len(mail.taken) == 2
    assert mail.tries < 30


@pytest.mark.parametrize("error", [AgentdError("no"), RuntimeError("a bug")])
async def test_a_failing_sink_is_tried_again_at_growing_distances(error: Exception) -> None:
    bad, good = Sink("bad", *[error] * 3), Sink("good")
    world = World(bad, good)
    await world.put("disk full")
    tries = []
    async with world.running():
        for _ in range(40):
            tries.append(bad.tries)
            await world.clock.advance(1)
    assert [tries.count(n) for n in (1, 2, 3)] == [5, 10, 20]
    assert (bad.taken, good.taken) == (["disk full"], ["disk full"])
    assert good.tries == 1


async def test_a_sink_that_hangs_delays_no_other() -> None:
    slow, fast = Sink("slow"), Sink("fast")
    slow.block = asyncio.Event()
    world = World(slow, fast)
    await world.put("disk full")
    async with world.running():
        assert fast.taken == ["disk full"]
        await world.put("disk fuller")
        world.dispatcher.wake()
        await world.clock.settle()
        assert fast.taken == ["disk full", "disk fuller"]
        assert (slow.tries, slow.taken) == (1, [])
        slow.block.set()
        await world.clock.settle()
        assert slow.taken == ["disk full", "disk fuller"]


async def test_after_the_last_try_it_gives_up_and_says_so_until_one_arrives() -> None:
    bad = Sink("bad", *[AgentdError("the door is shut", cure="open it")] * 3)
    world = World(bad, max_tries=3)
    await world.put("disk full")
    async with world.running():
        await world.clock.advance(86400)
        assert bad.tries == 3
        assert await world.states() == {"bad": DeliveryState.FAILED}
        (problem,) = world.dispatcher.problems()
        assert "the door is shut" in problem.text
        assert problem.cure == "open it"
        await world.put("disk fuller")
        world.dispatcher.wake()
        await world.clock.settle()
        assert world.dispatcher.problems() == ()


async def test_a_sink_that_takes_nothing_for_some_tries_is_told_until_it_does() -> None:
    bad = Sink("bad", *[AgentdError("the door is shut", cure="open it")] * 6)
    world = World(bad)
    await world.put("disk full")
    async with world.running():
        while bad.tries < 4:
            await world.clock.advance(5)
        assert world.dispatcher.problems() == ()
        while bad.tries < 5:
            await world.clock.advance(5)
        (problem,) = world.dispatcher.problems()
        assert (problem.code, problem.cure) == ("alert_delayed", "open it")
        assert problem.text == "alert 1 waits for 'bad': the door is shut"
        await world.clock.advance(3600)
        assert world.dispatcher.problems() == ()
    assert bad.taken == ["disk full"]


class NobodyThere(AgentdError):
    """Nobody looks."""

    code = "no_client"


async def test_that_nobody_looked_is_no_problem() -> None:
    world = World(Sink("socket", *[NobodyThere()] * 3), max_tries=3)
    await world.put("disk full")
    async with world.running():
        await world.clock.advance(86400)
    assert await world.states() == {"socket": DeliveryState.FAILED}
    assert world.dispatcher.problems() == ()


async def test_an_alert_for_a_sink_that_is_gone_is_given_up() -> None:
    world = World(Sink("one"))
    await world.put("disk full", "pigeon")
    async with world.running():
        assert await world.states() == {"pigeon": DeliveryState.FAILED}
    assert [p.code for p in world.dispatcher.problems()] == ["alert_undelivered"]


@pytest.mark.parametrize(("point", "times"), [("alert.stored", 1), ("alert.sent", 2)])
async def test_a_crash_on_the_way_delivers_again_rather_than_never(point: str, times: int) -> None:
    one = Sink("one")
    world = World(one)
    await world.put("disk full")
    failpoints.arm(f"{point}:1:raise")
    with pytest.raises(ExceptionGroup):
        await world.dispatcher.run()
    assert await world.states() == {"one": DeliveryState.PENDING}
    world.dispatcher = Dispatcher(world.outbox, world.sinks, world.clock)
    async with world.running():
        assert one.taken == ["disk full"] * times
        assert await world.states() == {"one": DeliveryState.SENT}


class BrokenOnce(MemoryOutbox):
    """An outbox whose first look fails."""

    broken = True

    async def due(self, recovered: Collection[str] = ()) -> tuple[Delivery, ...]:
        if self.broken:
            self.broken = False
            raise StorageError
        return await super().due(recovered)


async def test_an_outbox_out_of_order_stops_nothing() -> None:
    clock, one = FakeClock(), Sink("one")
    outbox = BrokenOnce(clock)
    await outbox.put(NewAlert("disk full", "test", "d", ("one",)))
    dispatcher = Dispatcher(outbox, [one], clock)
    with suppress(asyncio.CancelledError):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(dispatcher.run())
            await clock.advance(61)
            task.cancel()
    assert one.taken == ["disk full"]


async def test_the_test_alert_goes_to_every_sink_and_says_what_it_is() -> None:
    one, two = Sink("one"), Sink("two")
    world = World(one, two)
    async with world.running():
        alert = await world.dispatcher.test()
        await world.clock.settle()
        assert one.taken == two.taken == [alert.text]
        with pytest.raises(Busy):
            await world.dispatcher.test()
        await world.clock.advance(1)
        await world.dispatcher.test()
    assert alert.origin == "test"


async def test_the_test_alert_tells_the_time_of_the_owners_zone() -> None:
    world = World(Sink("one"), zone="Asia/Kolkata")
    local = world.clock.now().astimezone(world.clock.zone)
    alert = await world.dispatcher.test()
    assert f"{local:%Y-%m-%d %H:%M:%S} +0530 (Asia/Kolkata)" in alert.text


async def test_it_sleeps_when_nothing_waits() -> None:
    world = World(Sink("one"))
    async with world.running():
        assert world.clock.sleeping == 0


async def test_the_delay_never_passes_an_hour() -> None:
    world = World(Sink("one", AgentdError("no")))
    alert = await world.put("disk full")
    for _ in range(30):
        await world.outbox.retry(alert.id, "one", world.clock.now())
    world.dispatcher = Dispatcher(world.outbox, world.sinks, world.clock, max_tries=100)
    async with world.running():
        assert await world.outbox.next_due() == world.clock.now() + timedelta(hours=1)
