"""The delays of the loop are measured from outside of it, and told with what caused them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from agentd.app.loop_delay import Cause, Delay, Delays, LoopMonitor
from agentd.core.clock import SystemClock


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def compute_for_200_ms() -> None:
    compute(0.2)


async def block() -> None:
    compute_for_200_ms()


def keep_the_interpreter() -> None:
    """For 200 ms and more no other thread gets it: `sum` gives it to nobody. Then it goes on
    computing.
    """
    count = 1_000_000
    took = 0.0
    while took < 0.2:
        began = time.thread_time()
        sum(range(count))
        took = time.thread_time() - began
        count *= 2
    compute_for_200_ms()


async def seen(delays: Delays, least: float, within: float = 30) -> Delay:
    """The worst one, when it took that many seconds of the processor."""
    async with asyncio.timeout(within):
        while delays.worst_cpu is None or delays.worst_cpu.cpu < least:
            await asyncio.sleep(0)
    return delays.worst_cpu


async def told(
    monitor: LoopMonitor, delayed: Callable[[], Coroutine[None, None, None]], name: str
) -> Delay:
    """The delay that something makes, with a function of that name in its stack. The thread that
    looks may come too late to see it: then it is made again.
    """
    async with asyncio.timeout(30):
        while True:
            await asyncio.create_task(delayed())
            while (delay := monitor.delays.worst) is None:
                await asyncio.sleep(0)
            monitor.delays.worst = monitor.delays.worst_cpu = None
            if any(name in line for line in delay.stack):
                return delay


async def test_a_block_of_200_ms_is_told_with_the_function_that_computed() -> None:
    with capture_logs() as logged:
        async with LoopMonitor(SystemClock()) as monitor:
            delay = await told(monitor, block, "compute_for_200_ms")
    assert delay.cause is Cause.COMPUTING
    assert delay.cpu >= 0.15
    assert any(line["event"] == "loop_stalled" for line in logged)


async def test_a_block_in_no_new_task_is_told_though_the_loop_had_nothing_to_do() -> None:
    async with LoopMonitor(SystemClock()) as monitor:
        for tries_left in reversed(range(5)):  # a busy machine may keep the loop waiting meanwhile
            # It is looked at once a second.
            asyncio.get_running_loop().call_soon(compute, 1.2)
            try:
                delay = await seen(monitor.delays, 0.15, within=3)
                break
            except TimeoutError:
                assert tries_left
    assert delay.cause is Cause.COMPUTING


async def test_many_short_steps_of_a_loop_that_waits_between_them_are_no_long_delay() -> None:
    for tries_left in reversed(
        range(5)
    ):  # on a busy machine the thread that looks may come late itself
        async with LoopMonitor(SystemClock()) as monitor:
            for _ in range(200):  # no task is made, so that nothing wakes the monitor
                compute(0.005)
                await asyncio.to_thread(int)
        worst = monitor.delays.worst_cpu
        if worst is None or worst.cpu < 0.1:
            break
        assert tries_left, worst


async def test_many_short_steps_of_a_loop_that_never_waits_are_no_long_delay() -> None:
    for tries_left in reversed(
        range(5)
    ):  # on a busy machine the thread that looks may come late itself
        async with LoopMonitor(SystemClock()) as monitor:
            await asyncio.sleep(1.2)  # from now on it looks once a second
            for _ in range(40):
                compute(0.01)
                await asyncio.sleep(0)
            await asyncio.sleep(1.2)
        worst = monitor.delays.worst_cpu
        if worst is None or worst.cpu < 0.1:
            break
        assert tries_left, worst


async def test_a_thread_that_keeps_the_interpreter_is_told_as_such() -> None:
    async def elsewhere() -> None:
        await asyncio.to_thread(keep_the_interpreter)

    async with LoopMonitor(SystemClock()) as monitor:
        delay = await told(monitor, elsewhere, "keep_the_interpreter")
    assert delay.cause is Cause.INTERPRETER
    assert delay.thread != "loop"


async def test_short_work_is_over_no_limit() -> None:
    async with LoopMonitor(SystemClock()) as monitor:
        for _ in range(2000):
            await asyncio.create_task(asyncio.sleep(0))
        delay = await seen(monitor.delays, 0.0)
    assert delay.cpu < 0.1


@pytest.mark.parametrize(("milliseconds", "share"), [(3, 0.5), (80, 0.99), (80, 1.0)])
def test_a_quantile_is_told_within_a_sixth(milliseconds: int, share: float) -> None:
    delays = Delays()
    for _ in range(90):
        delays.count(0.003)
    for _ in range(10):
        delays.count(0.08)
    assert milliseconds <= delays.quantile(share) * 1000 < milliseconds * 7 / 6


def test_no_quantile_is_longer_than_the_longest_delay() -> None:
    delays = Delays()
    delays.count(0.61)
    assert delays.quantile(0.99) == 0.61


def test_the_worst_by_time_and_by_processor_time_are_kept_apart() -> None:
    delays = Delays()
    now = datetime(2026, 3, 1, tzinfo=UTC)
    waited = Delay(0.5, 0.01, now, Cause.MACHINE, "loop", ())
    computed = Delay(0.2, 0.19, now, Cause.COMPUTING, "loop", ())
    for delay in (waited, computed, Delay(0.1, 0.1, now, Cause.COMPUTING, "loop", ())):
        delays.keep(delay)
    assert (delays.worst, delays.worst_cpu) == (waited, computed)
    assert not delays.is_remarkable(0.4, 0.18)
    assert delays.is_remarkable(0.4, 0.2)


async def test_the_loop_goes_on_while_the_monitor_ends() -> None:
    """A look that waits for the loop's answer would wait long if the loop waited for it."""
    steps = 0

    async def step() -> None:
        nonlocal steps
        while True:
            await asyncio.sleep(0)
            steps += 1

    monitor = LoopMonitor(SystemClock())
    async with asyncio.TaskGroup() as group:
        async with monitor:
            stepping = group.create_task(step())
            await asyncio.sleep(0)
            before = steps
        during = steps - before
        stepping.cancel()
    assert during > 0
