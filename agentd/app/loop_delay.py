"""Measures how long the event loop delays work, from a thread, and what caused the longest delays.

While the loop is idle, the thread samples it once a second. Once a task is made, or a sample finds
the loop at work, the thread samples it every 20 ms, and asks a loop that is at work to call back:
the time until the callback is the delay that any other work had. A delay may have begun up to 20 ms
before the thread asked, and that part is not measured. A delay without a new task, in an idle loop,
may be over before the thread looks. A thread that holds the interpreter delays the loop and the
measuring thread alike, which shows as a late wake-up of the measuring thread.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import threading
import time
from collections.abc import Coroutine, Generator, Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any, Self
from weakref import finalize

import structlog
from msgspec import Struct

from agentd.core.ports import Clock

log = structlog.get_logger()


LIMIT = 0.1  # seconds; a longer delay is logged
_REST = 1.0  # seconds between two samples of an idle loop; each wakes the processor
_STEP = 0.02  # seconds between two samples of a loop at work
_ALERT = 1.0  # seconds without work after which the loop counts as idle
_LATE = 0.02  # seconds; after a later wake-up a thread may have held the interpreter
_FEW_WAITS = 8  # waits for the interpreter during one piece of work, between two idle samples
_LONGEST_LOOK = 0.64  # most seconds between two stacks taken during one delay
_QUIET = 10.0  # least seconds between two lines in the log, unless the delay is the worst so far
_DEEPEST = 16  # frames of a stack that are reported
_GROWTH = 1.15  # from one bound of the histogram to the next
_BOUNDS = 100  # number of bounds: from 0.1 ms to more than a minute
# Modules of the innermost frame of an idle thread.
_WAITING = frozenset(
    {"asyncio.runners", "asyncio.base_events", "selectors", "threading", "queue", "watchfiles.main"}
    | {"concurrent.futures.thread", "aiosqlite.core", "logging.handlers"}
)
_STATUS_BYTES = 4096  # bytes that are read of a thread's file in /proc
_WAITS = re.compile(rb"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


class Cause(StrEnum):
    """What caused a delay."""

    COMPUTING = "computing"  # the loop's own thread computed
    INTERPRETER = "interpreter"  # another thread kept the interpreter
    BLOCKED = "blocked"  # the loop's thread waited for something outside, in a call that blocks
    MACHINE = "machine"  # the loop's thread was ready, and the machine had no time for it


class Delay(Struct, frozen=True):
    """One delay of the loop. `cpu` is the processor time, in seconds, of the loop's thread during
    the delay. `stack` is that of the thread that caused it, innermost frame first, taken in the
    second half of the delay.
    """

    seconds: float
    cpu: float
    at: datetime
    cause: Cause
    thread: str
    stack: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the delay as `agentd status` has it."""
        return {
            "ms": round(self.seconds * 1000, 1),
            "cpu_ms": round(self.cpu * 1000, 1),
            "at": self.at.isoformat(timespec="milliseconds"),
            "reason": str(self.cause),
            "thread": self.thread,
            "stack": list(self.stack),
        }


class Delays:
    """A histogram of all delays since the start, and the worst ones."""

    def __init__(self) -> None:
        self._counts = [0] * _BOUNDS
        self._total = 0
        self._longest = 0.0  # seconds
        self.over = 0
        self.worst: Delay | None = None
        self.worst_cpu: Delay | None = None

    def count(self, seconds: float) -> None:
        """Add a delay to the histogram."""
        place = math.ceil(math.log(max(seconds, 1e-4) / 1e-4, _GROWTH))
        self._counts[min(place, _BOUNDS - 1)] += 1
        self._total += 1
        self._longest = max(self._longest, seconds)
        self.over += seconds > LIMIT

    def is_remarkable(self, seconds: float, cpu: float) -> bool:
        """Whether the delay is the longest so far, or the one with the most processor time."""
        worst, costliest = self.worst, self.worst_cpu
        return (
            worst is None
            or costliest is None
            or seconds > worst.seconds
            or min(cpu, seconds) > costliest.cpu
        )

    def keep(self, delay: Delay) -> None:
        """Remember the delay if it is the longest, or the one with the most processor time."""
        if self.worst is None or delay.seconds > self.worst.seconds:
            self.worst = delay
        if self.worst_cpu is None or delay.cpu > self.worst_cpu.cpu:
            self.worst_cpu = delay

    def quantile(self, share: float) -> float:
        """Return the upper bound, in seconds, of this share of the delays, at most the longest of
        them; 0 before the first.
        """
        left = share * self._total
        for place, count in enumerate(self._counts):
            left -= count
            if count and left <= 0:
                return min(float(1e-4 * _GROWTH**place), self._longest)
        return 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the key `loop` of `agentd status`."""
        return {
            "limit_ms": LIMIT * 1000,
            "measured": self._total,
            "over_limit": self.over,
            "p99_ms": round(self.quantile(0.99) * 1000, 1),
            "worst": self.worst.as_json() if self.worst else None,
            "worst_cpu": self.worst_cpu.as_json() if self.worst_cpu else None,
        }


class LoopMonitor:
    """Measures the running loop while the block lasts: `async with monitor:`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bell = threading.Lock()  # released to wake the thread
        self._bell.acquire()
        self._rung = -math.inf
        self._is_watching = False
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self._logged = -math.inf
        self.delays = Delays()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make_task)
        watched = _Loop(loop, threading.get_ident(), threading.get_native_id())
        self._thread = threading.Thread(
            target=self._watch, args=(watched,), name="loop-delay", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().set_task_factory(None)
        self._is_ending = True
        self._ring()
        if self._thread is not None:  # a measurement in progress ends when the loop answers
            await asyncio.to_thread(self._thread.join)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        if not self._is_watching:
            self._is_watching = True
            self._rung = self._clock.monotonic()
            self._ring()
        return asyncio.Task(work, loop=loop, **options)

    def _ring(self) -> None:
        if self._bell.locked():
            self._bell.release()

    def _watch(self, loop: _Loop) -> None:
        work_seen = -math.inf
        queue = _Queue()
        before, queued, waited = loop.usage(), queue.waited(), loop.waits()
        while True:
            is_resting = not self._is_watching
            pause = _REST if is_resting else _STEP
            due = self._clock.monotonic() + pause
            is_rung = self._bell.acquire(timeout=pause)
            if self._is_ending:
                return
            now, used = self._clock.monotonic(), loop.usage()
            late = now - (min(due, self._rung) if is_rung else due)
            # Seconds another thread held the interpreter: lateness without waits for the processor.
            held = late - (queue.waited() - queued) if late > _LATE else 0.0
            # Computing between two samples of an idle loop is one piece of work unless the loop
            # has waited in between. Without a new task, the work began as long ago as it computed.
            computed = used.loop - before.loop
            is_short = not is_resting or computed <= LIMIT
            is_one = is_short or loop.waits() - waited <= _FEW_WAITS
            begun = min(computed, pause) if is_one and is_resting and not is_rung else 0.0
            is_at_work = is_rung or begun > LIMIT or loop.is_at_work()
            if is_at_work or late > _LATE:
                if is_at_work:  # a late wake-up alone may come from a busy machine
                    work_seen = now
                is_known = (held > _LATE and is_one) or begun > 0.0
                supposed = max(begun, 0.0) if begun > late else 0.0
                passed = supposed or max(late, 0.0)
                self._measure(loop, before if is_known else used, passed, held, supposed)
            self._is_watching = now - work_seen < _ALERT
            before, queued = loop.usage(), queue.waited()
            if not self._is_watching:  # reading the count is expensive
                waited = loop.waits()

    def _measure(
        self, loop: _Loop, before: _Usage, passed: float, held: float, supposed: float
    ) -> None:
        """Measure a delay that has lasted for `passed` seconds so far; for `held` of these another
        thread held the interpreter. `before` is the processor time used before the delay.
        `supposed`, if not 0, is the assumed duration of computing that nobody sampled.
        """
        asked = self._clock.monotonic()
        since = asked - passed
        look = loop.ask(passed, self._clock)
        while not look.answered.acquire(timeout=look.patience):
            look.take(self._clock.monotonic() - since)
        # The time at which the loop answered, not at which this thread noticed.
        seconds, used = look.at - since, look.used
        if supposed and look.at - asked < _STEP:
            # The delay is over, or was many short ones: a loop with ever new work never waits.
            self.delays.count(look.at - asked)
            return
        own, others = used.loop - before.loop, used.others - before.others
        self.delays.count(seconds)
        others = min(others, max(held, 0.0))  # the rest ran beside the loop
        cpu = min(seconds, own)
        is_long = seconds > LIMIT
        if not is_long and not self.delays.is_remarkable(seconds, cpu):
            return
        cause = look.cause(seconds, own, others)
        thread, stack = look.culprit(cause)
        delay = Delay(seconds, cpu, self._clock.now(), cause, thread, stack)
        is_worst = self.delays.worst is None or seconds > self.delays.worst.seconds
        self.delays.keep(delay)
        now = self._clock.monotonic()
        if is_long and (is_worst or now - self._logged > _QUIET):
            self._logged = now
            told = delay.as_json()
            frames = told.pop("stack")  # structlog reserves this name
            if cause is Cause.MACHINE:  # not agentd's fault: counted, and logged without frames
                log.info("loop_stalled", over_limit=self.delays.over, **told)
                return
            log.warning("loop_stalled", over_limit=self.delays.over, **told, frames=frames)


class _Usage(Struct, frozen=True):
    """Processor time used so far, in seconds, by the loop's thread and by all others."""

    loop: float
    others: float


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


class _Loop:
    """The loop and its thread, as seen from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ident: int, native: int) -> None:
        self._loop = loop
        self.ident = ident
        self.status = Path(f"/proc/self/task/{native}/stat")
        self._clock = time.pthread_getcpuclockid(ident)
        try:
            self._counts = os.open(self.status.with_name("status"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._counts = -1
        finalize(self, _close, self._counts)

    def usage(self) -> _Usage:
        """Return the processor time of the loop's thread and that of all other threads."""
        own = time.clock_gettime(self._clock)
        return _Usage(own, time.process_time() - own)

    def waits(self) -> int:
        """Return how often the loop's thread has waited, for events or for the interpreter; 0 if
        the system does not count that.
        """
        try:
            found = _WAITS.search(os.pread(self._counts, _STATUS_BYTES, 0))
        except OSError:
            return 0
        return int(found[1]) if found else 0

    def is_at_work(self) -> bool:
        """Whether the loop's thread is anywhere but where it waits for events."""
        frame = sys._current_frames().get(self.ident)
        return frame is not None and frame.f_globals.get("__name__") not in _WAITING

    def ask(self, passed: float, clock: Clock) -> _Observation:
        """Have the loop answer as soon as it can; `passed` is the duration of the delay so far in
        seconds.
        """
        look = _Observation(self, clock)
        if passed > _LATE:
            look.take(passed)
        try:
            self._loop.call_soon_threadsafe(look.answer)
        except RuntimeError:  # the loop is closed
            look.answer()
        return look


class _Observation:
    """What is observed while the loop does not answer."""

    def __init__(self, loop: _Loop, clock: Clock) -> None:
        self.answered = threading.Lock()
        self.answered.acquire()
        self.at = 0.0  # monotonic time of the answer
        self.used = _Usage(0.0, 0.0)  # until the answer
        self._clock = clock
        self.patience = _STEP
        self._loop = loop
        self._is_waiting = False  # the loop's thread waits for the processor or the interpreter
        self._next = 0.0
        self._own: tuple[str, ...] = ()
        self._other: tuple[str, tuple[str, ...]] = ("", ())

    def answer(self) -> None:
        """Record the time of the answer; called by the loop."""
        self.at, self.used = self._clock.monotonic(), self._loop.usage()
        self.answered.release()

    def take(self, passed: float) -> None:
        """Record what the threads do now, in place of the record before. The longer the delay
        lasts, the rarer the records.
        """
        if passed < self._next:
            return
        self._next = 1.5 * passed
        self.patience = min(max(_STEP, passed / 4), _LONGEST_LOOK)
        self._is_waiting = _is_ready(self._loop.status) or not self._loop.is_at_work()
        frames = sys._current_frames()
        self._own = _stack(frames.pop(self._loop.ident, None))
        frames.pop(threading.get_ident(), None)
        self._other = next(_at_work(frames), ("", ()))

    def cause(self, seconds: float, own: float, others: float) -> Cause:
        """Return the cause of a delay in which the loop's thread computed for `own` seconds, and
        other threads for `others` seconds while the loop waited.
        """
        much = min(seconds / 2, LIMIT)  # on a busy machine most of a longer delay is spent waiting
        if own >= max(much, others):
            return Cause.COMPUTING
        if others >= much:
            return Cause.INTERPRETER
        return Cause.MACHINE if self._is_waiting else Cause.BLOCKED

    def culprit(self, cause: Cause) -> tuple[str, tuple[str, ...]]:
        """Return the name of the thread that caused the delay, and its stack."""
        return self._other if cause is Cause.INTERPRETER else ("loop", self._own)


def _at_work(frames: dict[int, FrameType]) -> Iterator[tuple[str, tuple[str, ...]]]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in frames.items():
        if frame.f_globals.get("__name__") not in _WAITING:
            yield names.get(ident, "?"), _stack(frame)


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """Return up to 16 frames as `package/module.py:line in function`, innermost first."""
    lines: list[str] = []
    while frame is not None and len(lines) < _DEEPEST:
        code = frame.f_code
        where = "/".join(Path(code.co_filename).parts[-3:])
        lines.append(f"{where}:{frame.f_lineno} in {code.co_qualname}")
        frame = frame.f_back
    return tuple(lines)


class _Queue:
    """Reads how long the thread that creates the object has waited for the processor."""

    def __init__(self) -> None:
        try:
            self._counts = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._counts = -1
        finalize(self, _close, self._counts)

    def waited(self) -> float:
        """Return the seconds so far; 0 if the system does not count them."""
        try:
            return int(os.pread(self._counts, _STATUS_BYTES, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0


def _is_ready(status: Path) -> bool:
    """Whether the thread is ready to run, so that only the machine delays it; False if that is
    unknown.
    """
    try:
        return status.read_text("ascii").rpartition(")")[2].split()[0] == "R"
    except (OSError, ValueError, IndexError):
        return False
