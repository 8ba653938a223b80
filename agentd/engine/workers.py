"""Background work of the engine: tasks, nudged and daily work, restarts after failures.

`Tasks` owns work until a stop, which `Stopping` announces. `CoalescingWorker` works once for any
number of nudges, `DailyWorker` once a day, and `Supervisor` restarts work that fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog

from agentd.core.errors import AgentdError, ShuttingDown
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.turn import Failure

log = structlog.get_logger()
T = TypeVar("T")

INTERNAL = Failure("internal", "Something went wrong inside agentd.", "Look at `agentd logs`.")
TAKES_NO_MORE = "agentd is stopping and takes no new messages."
_CANCEL_GRACE = 1  # seconds that cancelled tasks have to put their work aside

FIRST = 600.0  # seconds from the start to the first run: the work of a start comes before it
DAY = 86_400.0
LOOK = 3_600.0  # seconds between looks at the wall clock: after a sleep, work is late by no more
AGAIN = 3_600.0  # seconds after a failure
PAUSES = (5.0, 30.0, 300.0, 1800.0)  # seconds after the first, second, ... break in a row
STEADY = 3_600.0  # seconds at work after which the next break counts as the first again


class Stopping:
    """Says whether the daemon is stopping, to all parts that must begin nothing then. It is set
    once and never cleared.
    """

    def __init__(self) -> None:
        self._begun = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether the daemon is stopping: no model call may begin."""
        return self._begun.is_set()

    def begin(self) -> None:
        """Begin to stop, and wake those who `wait`."""
        self._begun.set()

    async def wait(self) -> None:
        """Wait until the daemon is stopping."""
        await self._begun.wait()


class Tasks:
    """Tasks that belong to the engine: work runs to its end even if its caller leaves, until a
    stop, which `close` begins.
    """

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether work may begin."""
        return self._group is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return not self._tasks

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let work begin during the block, which must `close` and `finish` before it ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            yield

    def close(self) -> None:
        """Begin nothing more, and tell all parts that the daemon is stopping."""
        self._group = None
        self._stopping.begin()

    async def finish(self, seconds: float) -> None:
        """Give running work `seconds` to end, then cancel it."""
        if self._tasks and seconds > 0:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CANCEL_GRACE)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that nobody waits for and return its task; the work reports its failures
        itself.
        """
        assert self._group is not None
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def owned(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that goes on even if the caller is cancelled.

        Raises ShuttingDown, also when a stop cuts the work. An AgentdError of the work is raised as
        it is; any other exception is logged and raised as an AgentdError.
        """
        if not self.is_open:
            work.close()
            raise ShuttingDown(TAKES_NO_MORE)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                done.set_result(await work)
            except AgentdError as error:
                reject(done, error)  # who asked may have left
            except Exception:
                # Boundary: the caller gets an error, everything else goes on.
                log.exception("owned_work_crashed")
                reject(done, AgentdError(INTERNAL.message, cure=INTERNAL.cure))

        def leave(_: object) -> None:
            work.close()  # a stop may come before it has begun
            reject(done, ShuttingDown(TAKES_NO_MORE))

        self.spawn(run()).add_done_callback(leave)
        return await asyncio.shield(done)


def reject(ended: asyncio.Future[T], error: AgentdError) -> None:
    """Set the error on the future unless it is done, so that whoever waits for it knows that no
    result comes.
    """
    if not ended.done():
        ended.set_exception(error)
        ended.exception()  # retrieved, so that asyncio does not complain if nobody waits for it


class CoalescingWorker:
    """Does its work once for all nudges since it last began. A failure is logged, and the next
    nudge tries again.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        self._name = name
        self._work = work
        self._wanted = asyncio.Event()

    def nudge(self) -> None:
        """Ask for the work. Never blocks."""
        self._wanted.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._work()
            except Exception:
                # No caller waits for this work; what it should have prepared is made when needed.
                log.exception("nudged_work_failed", work=self._name)


class DailyWorker:
    """Does its work ten minutes after the start, then a day after it was last done, or an hour
    after a failure. It is due as soon as either clock says so: the wall clock, which goes on while
    the machine sleeps, or the monotonic clock, which nobody can set. However long the machine
    slept, the work is done once.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        # By the monotonic clock, and by the wall clock.
        self._due: tuple[float, datetime] | None = None
        self._failure: Problem | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        pause = FIRST
        while True:
            self._due = (
                self._clock.monotonic() + pause,
                self._clock.now() + timedelta(seconds=pause),
            )
            while (left := self._left()) > 0:
                await self._clock.sleep(min(left, LOOK))
            pause = DAY if await self._done() else AGAIN

    @property
    def next_due(self) -> datetime | None:
        """When the work is due next; if the machine sleeps, it runs up to an hour later. None
        before `run`.
        """
        return None if self._due is None else self._clock.now() + timedelta(seconds=self._left())

    def _left(self) -> float:
        """Return the seconds until the work is due by the clock that is first; 0 from then on."""
        assert self._due is not None
        woken, at = self._due
        left = min(woken - self._clock.monotonic(), (at - self._clock.now()).total_seconds())
        return max(0.0, left)

    async def now(self) -> None:
        """Do the work at once; its next due time stays. Raises what the work raises."""
        await self._work()
        self._failure = None

    def problems(self) -> tuple[Problem, ...]:
        """Return why the work failed the last time; empty if it was done."""
        return (self._failure,) if self._failure else ()

    async def _done(self) -> bool:
        try:
            await self._work()
        except AgentdError as error:
            log.warning("daily_work_failed", work=self._name, reason=error.reason)
            self._failure = Problem(f"{self._name}_failed", error.message, error.cure)
        except Exception:
            # No caller waits for this work; what it left undone is done at its next run.
            log.exception("daily_work_crashed", work=self._name)
            text = f"The daily work of {self._name} broke."
            self._failure = Problem(f"{self._name}_failed", text, "Read the log: `agentd logs`.")
        else:
            self._failure = None
        return self._failure is None


class Supervisor:
    """Keeps the work of the parts going as long as the daemon runs. Work that breaks is logged,
    reported as a problem, and started again after a growing pause: the flaw of one part must not
    end the others.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._broken: dict[object, tuple[float, Problem]] = {}  # reported until that time

    async def keep(self, part: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run the work of that part, and again after each break, until it returns or is
        cancelled.
        """
        key, breaks = object(), 0
        while True:
            begun = self._clock.monotonic()
            try:
                await work()
            except Exception as error:
                # The boundary of work that nobody waits for, whatever it raises.
                is_first = self._clock.monotonic() - begun >= STEADY
                breaks = 1 if is_first else breaks + 1
                pause = PAUSES[min(breaks, len(PAUSES)) - 1]
                log.exception("background_work_broke", part=part, breaks=breaks, again_in=pause)
                until = self._clock.monotonic() + pause + STEADY
                self._broken[key] = (until, _broke(part, breaks, error))
            else:
                self._broken.pop(key, None)
                return
            await self._clock.sleep(pause)

    def problems(self) -> tuple[Problem, ...]:
        """Return what broke, until an hour after the work was started again."""
        now = self._clock.monotonic()
        return tuple(problem for until, problem in self._broken.values() if now < until)


def _broke(part: str, breaks: int, error: Exception) -> Problem:
    while isinstance(error, ExceptionGroup):  # which says nothing itself
        error = error.exceptions[0]
    reason = error.reason if isinstance(error, AgentdError) else type(error).__name__
    often = "once" if breaks == 1 else f"{breaks} times in a row"
    cure = error.cure if isinstance(error, AgentdError) else ""
    return Problem(
        "background_work_broke",
        (
            f"Work of the part {part} in the background broke {often} ({reason}); it is "
            "started again by itself."
        ),
        cure or "Read the log: `agentd logs`; `agentd restart` if it stays.",
    )
