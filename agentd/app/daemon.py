"""Runs the daemon's process, one for each state directory: lock, start, signals, stop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog
from msgspec import Struct

from agentd import __version__
from agentd.app.application import open_app
from agentd.app.config import Config, load, with_workspace
from agentd.app.confinement import confine, without_keys
from agentd.app.logs import open_log
from agentd.app.sdnotify import Notifier, Watchdog
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError
from agentd.core.paths import DaemonPaths, cure_of, daemon_places, ensure_private_dir
from agentd.core.ports import Clock, Probe
from agentd.core.redaction import names_of_secrets
from agentd.storage.lock import state_lock
from agentd.storage.ownership import secure_contents, secure_places

log = structlog.get_logger()


try:
    import uvloop
except ImportError:  # not on every platform; asyncio's own loop is used instead
    _new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_loop = uvloop.new_event_loop

SWITCH = 0.001  # seconds that a thread may hold the interpreter while another waits for it
GARBAGE = 10_000  # new objects before a garbage collection
# Allocations of this many bytes or more are mmapped, so freeing them returns the memory to the
# system (M_MMAP_THRESHOLD).
LARGE = 64 * 1024
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h


class RunningApp(Protocol):
    """What the process needs from the assembled daemon."""

    @property
    def probes(self) -> Sequence[Probe]:
        """The parts that must prove to the watchdog that they work."""

    async def serve(self) -> None:
        """Work until cancelled."""

    async def reload(self) -> None:
        """Reload the configuration; a refusal is logged."""

    async def drain(self, seconds: float) -> None:
        """Accept no new work; return when running turns have finished or, after `seconds`, are left
        to be resumed.
        """


class StopTimeouts(Struct, frozen=True):
    """How long the daemon may take to stop, in seconds."""

    drain: float = 2.0
    total: float = 4.5  # then the process ends even if something hangs; the journal makes that safe


def main(config_path: Path | None = None) -> int:
    """Run the daemon until it is stopped, and return the exit code. `config_path` replaces the
    default path of the configuration file.
    """
    os.umask(0o077)
    use_one_malloc_arena()
    confine()
    notifier = Notifier.from_environ(os.environ)
    try:
        places = daemon_places(os.environ, config_path)
        mended = secure_places(places, os.getuid(), config_is_elsewhere=config_path is not None)
        config = load(places.config_file, os.environ)
        mended += secure_contents(with_workspace(config, places), os.getuid())
        names = {*names_of_secrets(os.environ), *config.key_variables}
        environ = without_keys(os.environ, names)
        return _run_logged(config, places, environ, notifier, mended)
    except AgentdError as error:
        return _print_error(error)
    except OSError as error:
        told = f"{error.filename or 'the system'}: {error.strerror}"
        return _print_error(AgentdError(told, cure=cure_of(error)))


def use_one_malloc_arena() -> None:
    """Let all threads allocate from one arena of the C library's malloc; call this before there are
    any threads. By default malloc makes an arena for each thread, and no other thread can use the
    memory that was freed in it: 3 MB after 7,000 turns. Threads hardly ever wait for the arena,
    since only one at a time holds the interpreter.
    """
    with contextlib.suppress(AttributeError):  # a C library other than glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def tune_interpreter() -> None:
    """Set the interpreter up for a process that runs for a long time.

    Objects made during the start are left out of garbage collection, which runs after 10,000 new
    objects instead of 700: a turn makes thousands and leaves hardly a cycle. A thread that computes
    hands the interpreter to the event loop after one millisecond instead of five, since the loop
    waits for the interpreter several times in each iteration. Large buffers, into which long frames
    are read, go back to the system when they are freed: by default malloc raises the threshold and
    keeps them.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()
    sys.setswitchinterval(SWITCH)
    with contextlib.suppress(AttributeError):  # a C library other than glibc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE)


async def run(
    opener: Callable[[asyncio.Event], AbstractAsyncContextManager[RunningApp]],
    clock: Clock,
    notifier: Notifier,
    timeouts: StopTimeouts = StopTimeouts(),
    last_resort: Callable[[float], None] | None = None,
) -> None:
    """Open the app, serve until SIGTERM, SIGINT, or until the app sets the event passed to
    `opener`, then drain and close.

    `last_resort` is called once, with the seconds after which the process must have ended. Raises
    what opening or serving raises.
    """
    deadline = _StopDeadline(notifier, timeouts.total, last_resort or _exit_after)
    stop, hangup = asyncio.Event(), asyncio.Event()
    opening = asyncio.timeout(None)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_signals(stop, hangup, opening, deadline))
        try:
            async with opening:
                app = await stack.enter_async_context(opener(stop))
        except TimeoutError:
            if not opening.expired():
                raise
            log.info("stopped_while_starting")
            return
        try:
            tune_interpreter()
            notifier.send("READY=1", f"STATUS=agentd {__version__}")
            log.info("ready", version=__version__, pid=os.getpid())
            watchdog = Watchdog(app.probes, notifier, clock)
            await _serve_until_stopped(app, stop, hangup, watchdog, deadline, timeouts)
        finally:
            deadline.start()
    log.info("stopped")


class _StopDeadline:
    """The time by which the process must have ended. It is set once, by the first request to stop,
    which is also reported to the service manager.
    """

    def __init__(
        self, notifier: Notifier, seconds: float, last_resort: Callable[[float], None]
    ) -> None:
        self._notifier = notifier
        self._seconds = seconds
        self._last_resort = last_resort
        self._is_running = False

    def start(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._notifier.send("STOPPING=1")
            self._last_resort(self._seconds)


async def _serve_until_stopped(
    app: RunningApp,
    stop: asyncio.Event,
    hangup: asyncio.Event,
    watchdog: Watchdog,
    deadline: _StopDeadline,
    timeouts: StopTimeouts,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        work = [
            tasks.create_task(_serve(app, stop)),
            tasks.create_task(watchdog.run()),
            tasks.create_task(_reload(app, hangup)),
        ]
        await stop.wait()
        log.info("stopping")
        deadline.start()
        try:
            async with asyncio.timeout(timeouts.drain + 0.5):
                await app.drain(timeouts.drain)
        except TimeoutError:
            log.warning("drain_overran", seconds=timeouts.drain)
        for task in work:
            task.cancel()


async def _serve(app: RunningApp, stop: asyncio.Event) -> None:
    await app.serve()
    stop.set()


async def _reload(app: RunningApp, hangup: asyncio.Event) -> None:
    while True:
        await hangup.wait()
        hangup.clear()
        await app.reload()


@contextlib.contextmanager
def _signals(
    stop: asyncio.Event, hangup: asyncio.Event, opening: asyncio.Timeout, deadline: _StopDeadline
) -> Iterator[None]:
    """Handle signals during the block: the first SIGTERM or SIGINT requests a stop, also while
    opening; a second one ends the process at once. SIGHUP requests a reload.
    """
    loop = asyncio.get_running_loop()
    is_terminated = False  # unlike `stop`, which a client may have set

    def terminate() -> None:
        nonlocal is_terminated
        if is_terminated:
            os._exit(1)
        is_terminated = True
        stop.set()
        deadline.start()
        with contextlib.suppress(RuntimeError):  # the app has been opened
            opening.reschedule(loop.time())

    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGINT, terminate)
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _run_logged(
    config: Config,
    places: DaemonPaths,
    environ: MutableMapping[str, str],
    notifier: Notifier,
    mended: Sequence[str],
) -> int:
    clock = SystemClock(config.agent.timezone)
    state_dir = ensure_private_dir(places.state_dir)
    with (
        state_lock(state_dir),
        open_log(config.log, state_dir, clock, environ, sys.stderr) as output,
        asyncio.Runner(loop_factory=_new_loop) as runner,
    ):
        for told in mended:
            log.warning("mode_mended", what=told)
        for name in config.key_variables:
            output.redactor.add(environ.get(name, ""))
        try:
            opener = partial(open_app, config, places, clock, environ, output)
            runner.run(run(opener, clock, notifier))
        except Exception as error:
            # Outermost boundary: the log gets the trace, the caller a sentence and an exit code.
            log.critical("failed", exc_info=True)
            return _print_error(_cause(error))
    return 0


def _cause(error: BaseException) -> AgentdError:
    """Return the one error that ended the daemon, taken out of the groups of its tasks."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, AgentdError):
        return error
    return AgentdError(
        f"the daemon failed ({type(error).__name__})", cure="read the log: `agentd logs`"
    )


def _print_error(error: AgentdError) -> int:
    cure = f"\n  what to do: {error.cure}" if error.cure else ""
    sys.stderr.write(f"agentd: {error.message}{cure}\n")
    return error.exit_code


def _exit_after(seconds: float) -> None:
    """End the process after `seconds` even if a thread holds the interpreter, with the stack of
    every thread on standard error.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=2)
