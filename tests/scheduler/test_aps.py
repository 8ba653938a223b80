"""The waker: on time, one at a time, never for the last time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from agentd.automation.scheduler import Scheduler
from agentd.core.errors import AgentdError, StorageError
from agentd.testing import FakeClock


class RealClock:
    """The machine's time, which APScheduler reads too; `shift` is a wall clock set wrong."""

    def __init__(self) -> None:
        self.shift = timedelta()
        self.skipped = 0.0

    @property
    def zone(self) -> object:
        raise NotImplementedError

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Ticks:
    """Counts its calls; `due` says when the next is wanted."""

    def __init__(self) -> None:
        self.count = 0
        self.due: list[datetime] = []
        self.errors: list[Exception] = []
        self.block: asyncio.Event | None = None
        self.cancelled = False
        self.running = 0
        self.most = 0

    async def tick(self) -> None:
        self.count += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.block is not None:
                await self.block.wait()
            if self.errors:
                raise self.errors.pop(0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self.running -= 1

    async def next_due(self) -> datetime | None:
        return self.due.pop(0) if self.due else None


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


async def test_it_wakes_at_once_and_then_at_the_longest_sleep() -> None:
    ticks = Ticks()
    async with Scheduler(RealClock(), {"beat": ticks}, longest_sleep=0.02) as scheduler:
        await until(lambda: ticks.count >= 3)
        assert scheduler.problems() == ()
    assert ticks.most == 1


async def test_it_wakes_at_the_due_time() -> None:
    ticks, clock = Ticks(), RealClock()
    due = clock.now() + timedelta(seconds=1.05)
    ticks.due = [due]
    async with Scheduler(clock, {"beat": ticks}):
        await until(lambda: ticks.count == 2)
        assert timedelta() <= clock.now() - due < timedelta(seconds=20)


class Ahead(Ticks):
    """The clock is a month ahead while the first due time is read, and right again at once."""

    def __init__(self, clock: RealClock) -> None:
        super().__init__()
        self.clock = clock

    async def next_due(self) -> datetime | None:
        if self.count == 1:
            self.clock.shift = timedelta(days=30)
            asyncio.get_running_loop().call_soon(setattr, self.clock, "shift", timedelta())
        return None


async def test_a_clock_that_was_ahead_for_a_moment_holds_no_wake_up_up() -> None:
    clock = RealClock()
    ticks = Ahead(clock)
    async with Scheduler(clock, {"beat": ticks}, longest_sleep=0.05):
        await until(lambda: ticks.count >= 3)


async def test_a_tick_that_raises_stops_nothing() -> None:
    ticks = Ticks()
    ticks.errors = [RuntimeError("boom"), AgentdError("boom")]
    async with Scheduler(RealClock(), {"beat": ticks}, longest_sleep=0.01) as scheduler:
        await until(lambda: ticks.count >= 4)
        assert scheduler.problems() == ()
        await scheduler.check()


async def test_ticks_never_overlap_and_a_poke_is_taken_up_after_the_running_one() -> None:
    ticks = Ticks()
    ticks.block = asyncio.Event()
    async with Scheduler(RealClock(), {"beat": ticks}, longest_sleep=0.01) as scheduler:
        await until(lambda: ticks.count == 1)
        scheduler.poke()
        await asyncio.sleep(0.05)
        assert (ticks.count, ticks.most) == (1, 1)
        ticks.block.set()
        await until(lambda: ticks.count >= 2)
        assert ticks.most == 1


class SlowReading(Ticks):
    """Tells what was due when it was asked, once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.told = asyncio.Event(), asyncio.Event()

    async def next_due(self) -> datetime | None:
        due = await super().next_due()
        self.reading.set()
        await self.told.wait()
        return due


async def test_what_becomes_due_while_due_times_are_read_is_not_slept_through() -> None:
    ticks, clock = SlowReading(), RealClock()
    async with Scheduler(clock, {"beat": ticks}) as scheduler:
        await ticks.reading.wait()  # nothing is due then
        ticks.due = [clock.now()]
        scheduler.poke()
        ticks.told.set()
        await until(lambda: ticks.count == 2)
        assert (ticks.due, ticks.most) == ([], 1)


class Poked(Ticks):
    """What is due is told once; then others change it, `late` rounds of the loop after."""

    def __init__(self, late: int) -> None:
        super().__init__()
        self.late = late
        self.is_asked = False
        self.scheduler: Scheduler | None = None

    async def next_due(self) -> datetime | None:
        if not self.is_asked:
            self.is_asked = True
            self._poke_after(self.late)
        return None

    def _poke_after(self, rounds: int) -> None:
        loop = asyncio.get_running_loop()
        if rounds:
            loop.call_soon(self._poke_after, rounds - 1)
            return
        assert self.scheduler is not None
        self.scheduler.poke()
        self.scheduler.poke()


@pytest.mark.parametrize("late", range(1, 8))
async def test_a_poke_just_after_a_tick_is_not_slept_through(late: int) -> None:
    ticks = Poked(late)
    scheduler = ticks.scheduler = Scheduler(RealClock(), {"beat": ticks})
    async with scheduler:
        await until(lambda: ticks.count >= 2)
        assert ticks.most == 1


async def test_a_poke_wakes_a_sleeping_schedule() -> None:
    ticks = Ticks()
    async with Scheduler(RealClock(), {"beat": ticks}) as scheduler:
        await until(lambda: ticks.count == 1)
        scheduler.poke()
        await until(lambda: ticks.count == 2)
    assert ticks.count == 2


async def test_a_due_time_in_the_past_is_no_busy_loop() -> None:
    ticks = Ticks()
    ticks.due = [datetime(2020, 1, 1, tzinfo=UTC)] * 1000
    async with Scheduler(RealClock(), {"beat": ticks}):
        await asyncio.sleep(0.1)
    assert ticks.count == 1


async def test_leaving_waits_for_a_running_tick() -> None:
    ticks = Ticks()
    ticks.block = asyncio.Event()
    async with Scheduler(RealClock(), {"beat": ticks}):
        await until(lambda: ticks.count == 1)
        asyncio.get_running_loop().call_later(0.05, ticks.block.set)
    assert (ticks.running, ticks.cancelled) == (0, False)


async def test_leaving_cancels_a_tick_that_does_not_end() -> None:
    ticks = Ticks()
    ticks.block = asyncio.Event()
    async with Scheduler(RealClock(), {"beat": ticks}, drain=0.02):
        await until(lambda: ticks.count == 1)
    assert (ticks.running, ticks.cancelled) == (0, True)


async def test_nothing_wakes_after_leaving() -> None:
    ticks = Ticks()
    async with Scheduler(RealClock(), {"beat": ticks}, longest_sleep=0.01):
        await until(lambda: ticks.count == 1)
    count = ticks.count
    await asyncio.sleep(0.05)
    assert ticks.count == count


async def test_a_clock_that_was_set_back_is_noticed() -> None:
    ticks, clock = Ticks(), RealClock()
    clock.shift = timedelta(days=365)  # the next wake is set in a time that will not come soon
    async with Scheduler(clock, {"beat": ticks}, longest_sleep=0.02) as scheduler:
        await asyncio.sleep(0.01)
        assert ticks.count == 0
        clock.shift = timedelta()
        await until(lambda: ticks.count >= 2)
        await scheduler.check()


@pytest.mark.parametrize("back", [timedelta(minutes=3), timedelta(hours=8), timedelta(days=365)])
async def test_after_the_clock_is_set_back_it_wakes_within_a_minute(back: timedelta) -> None:
    ticks = Ticks()
    # To APScheduler, which reads the machine's time, the first wake lies behind the jump.
    clock = FakeClock(datetime.now(UTC) + back)
    async with Scheduler(clock, {"beat": ticks}):
        await clock.advance(10)
        assert ticks.count == 0
        clock.jump(-back - timedelta(minutes=1))
        await clock.advance(50)
        await until(lambda: ticks.count == 1)


async def test_time_that_just_passes_wakes_nothing_early() -> None:
    ticks = Ticks()
    clock = FakeClock(datetime.now(UTC) + timedelta(days=1))
    async with Scheduler(clock, {"beat": ticks}):
        await clock.advance(3600)
        await asyncio.sleep(0)
        assert ticks.count == 0


async def test_a_schedule_that_stopped_waking_cannot_prove_itself() -> None:
    ticks, clock = Ticks(), RealClock()
    async with Scheduler(clock, {"beat": ticks}) as scheduler:
        await until(lambda: ticks.count == 1)
        await until(lambda: ticks.running == 0)
        await scheduler.check()
        clock.skipped = 200.0
        assert [p.code for p in scheduler.problems()] == ["scheduler_stalled"]
        with pytest.raises(AgentdError, match="no longer wakes"):
            await scheduler.check()


async def test_a_long_beat_is_no_stall() -> None:
    ticks, clock = Ticks(), RealClock()
    ticks.block = asyncio.Event()
    async with Scheduler(clock, {"beat": ticks}) as scheduler:
        await until(lambda: ticks.count == 1)
        clock.skipped = 500.0
        await scheduler.check()
        assert scheduler.problems() == ()
        ticks.block.set()


async def test_a_slow_tick_delays_no_other() -> None:
    slow, quick = Ticks(), Ticks()
    slow.block = asyncio.Event()
    async with Scheduler(RealClock(), {"slow": slow, "quick": quick}, longest_sleep=0.01):
        await until(lambda: quick.count >= 3)
        assert slow.count == 1
        slow.block.set()
        await until(lambda: slow.count >= 2)


async def test_a_tick_that_fails_is_a_problem_until_it_succeeds() -> None:
    ticks = Ticks()
    ticks.errors = [RuntimeError("a bug"), StorageError("the disk is away", cure="plug it in")]
    async with Scheduler(RealClock(), {"reminders": ticks}, longest_sleep=0.05) as scheduler:
        for code, text, cure in (
            ("tick_failed", "RuntimeError", "read the log: `agentd logs`"),
            ("tick_failed", "the disk is away", "plug it in"),
        ):
            await until(lambda cure=cure: cure in [p.cure for p in scheduler.problems()])
            (problem,) = scheduler.problems()
            assert problem.code == code
            assert text in problem.text
            assert "reminders" in problem.text
        await until(lambda: not scheduler.problems())
