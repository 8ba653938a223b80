"""Work that is kept going: what a break costs, and how long it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from agentd.core.errors import StorageFull
from agentd.engine.workers import PAUSES, STEADY, Supervisor
from agentd.testing import FakeClock


class Work:
    """Breaks with each of the errors, one a start, as soon as it has worked for `lasts` seconds."""

    def __init__(self, clock: FakeClock, *errors: Exception, lasts: float = 0) -> None:
        self._clock = clock
        self._errors = list(errors)
        self._lasts = lasts
        self.begun: list[float] = []

    async def run(self) -> None:
        self.begun.append(self._clock.monotonic())
        if not self._errors:
            await asyncio.Event().wait()
        if self._lasts:
            await self._clock.sleep(self._lasts)
        raise self._errors.pop(0)

    @property
    def pauses(self) -> list[float]:
        pairs = zip(self.begun, self.begun[1:], strict=False)
        return [after - before - self._lasts for before, after in pairs]


@asynccontextmanager
async def kept(supervisor: Supervisor, work: Work) -> AsyncIterator[None]:
    """The work, kept going for the time of the block."""
    keeping = asyncio.create_task(supervisor.keep("memory", work.run))
    await FakeClock.settle()
    yield
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping


async def test_the_pause_grows_with_each_break_in_a_row() -> None:
    clock = FakeClock()
    supervisor, work = Supervisor(clock), Work(clock, *(OSError() for _ in range(6)))
    with capture_logs() as logs:
        async with kept(supervisor, work):
            for pause in (*PAUSES, PAUSES[-1], PAUSES[-1]):
                await clock.advance(pause)
    assert work.pauses == [*PAUSES, PAUSES[-1], PAUSES[-1]]
    assert {(one["event"], one["part"]) for one in logs} == {("background_work_broke", "memory")}


async def test_a_break_after_steady_work_is_a_first_one() -> None:
    clock = FakeClock()
    work = Work(clock, OSError(), OSError(), lasts=STEADY)
    async with kept(Supervisor(clock), work):
        for seconds in (STEADY, PAUSES[0]) * 2:
            await clock.advance(seconds)
    assert work.pauses == [PAUSES[0], PAUSES[0]]


async def test_a_break_is_told_until_the_work_has_gone_on_for_an_hour() -> None:
    clock = FakeClock()
    supervisor = Supervisor(clock)
    full = StorageFull("the disk is full", cure="make room")
    grouped = ExceptionGroup("errors of tasks", [full])
    async with kept(supervisor, Work(clock, ZeroDivisionError(), grouped)):
        (problem,) = supervisor.problems()
        assert problem.code == "background_work_broke"
        assert "memory in the background broke once (ZeroDivisionError)" in problem.text
        await clock.advance(PAUSES[0])
        (problem,) = supervisor.problems()
        assert "2 times in a row (storage_full)" in problem.text
        assert problem.cure == "make room"
        await clock.advance(PAUSES[1] + STEADY - 1)
        assert supervisor.problems() == (problem,)
        await clock.advance(1)
        assert supervisor.problems() == ()


async def test_work_that_ends_by_itself_is_not_begun_again() -> None:
    clock, begun = FakeClock(), []
    supervisor = Supervisor(clock)

    async def once() -> None:
        begun.append(clock.monotonic())
        if len(begun) == 1:
            raise OSError

    keeping = asyncio.create_task(supervisor.keep("alerts", once))
    await clock.settle()
    await clock.advance(PAUSES[0])
    await keeping
    assert len(begun) == 2
    assert supervisor.problems() == ()
