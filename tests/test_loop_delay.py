"""The delays of the loop are measured from outside of it, and told with what caused them."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from agentd.clock import SystemClock
from agentd.loop_delay import Cause, Delay, Delays, LoopMonitor


def compute_for_200_ms() -> None:
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass


async def block() -> None:
    compute_for_200_ms()


def keep_the_interpreter() -> None:
    """For 200 ms and more no other thread gets it: `sum` gives it to nobody."""
    count = 1_000_000
    while True:
        began = time.thread_time()
        sum(range(count))
        if time.thread_time() - began >= 0.2:
            return
        count *= 2


async def seen(delays: Delays, least: float) -> Delay:
    """The worst one, when it took that many seconds of the processor."""
    async with asyncio.timeout(30):
        while delays.worst_cpu is None or delays.worst_cpu.cpu < least:
            await asyncio.sleep(0)
    return delays.worst_cpu


async def test_a_block_of_200_ms_is_told_with_the_function_that_computed() -> None:
    with capture_logs() as logged:
        async with LoopMonitor(SystemClock()) as monitor:
            for _ in range(5):  # a busy machine may let the thread look too late
                await asyncio.create_task(block())
                delay = await seen(monitor.delays, 0.15)
    assert delay.cause is Cause.COMPUTING
    frames = [frame for line in logged for frame in line.get("frames", ())]
    assert any("compute_for_200_ms" in frame for frame in (*frames, *delay.stack)), logged
    assert any(line["event"] == "loop_stalled" for line in logged)
    assert monitor.delays.as_json()["worst_cpu"]["cpu_ms"] >= 150


async def test_a_block_in_no_new_task_is_told_though_the_loop_had_nothing_to_do() -> None:
    async with LoopMonitor(SystemClock()) as monitor:
        asyncio.get_running_loop().call_soon(compute_for_200_ms)
        delay = await seen(monitor.delays, 0.15)
    assert delay.cause is Cause.COMPUTING


async def test_a_thread_that_keeps_the_interpreter_is_told_as_such() -> None:
    async with LoopMonitor(SystemClock()) as monitor:
        for _ in range(
            20
        ):  # what a busy machine does meanwhile may take longer, and then that is told
            await asyncio.to_thread(keep_the_interpreter)
            await asyncio.sleep(0)
            delay = monitor.delays.worst
            if delay is not None and delay.cause is Cause.INTERPRETER:
                break
            monitor.delays.worst = None
    assert delay is not None
    assert delay.cause is Cause.INTERPRETER
    assert any("keep_the_interpreter" in line for line in delay.stack), delay
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
