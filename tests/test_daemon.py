"""The process starts, tells the service manager the truth, and ends in time."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agentd.app import daemon
from agentd.app.daemon import StopTimeouts, run
from agentd.app.sdnotify import Notifier, Watchdog
from agentd.core.errors import AlreadyRunning, ConfigError, StorageCorrupt
from agentd.core.health import Problem
from agentd.storage.lock import state_lock
from agentd.testing import FakeClock
from tests.waiting import until


class Part:
    """A probe that works, breaks or hangs, as it is told."""

    def __init__(self, name: str = "part") -> None:
        self.name = name
        self.hangs = False
        self.breaks = False

    def problems(self) -> tuple[Problem, ...]:
        return ()

    async def check(self) -> None:
        if self.breaks:
            raise OSError("broken")
        if self.hangs:
            await asyncio.Event().wait()


@dataclass
class FakeApp:
    """An app that keeps a diary."""

    probes: tuple[Part, ...] = ()
    diary: list[str] = field(default_factory=list)
    opening: Callable[[], None] | None = None
    error: Exception | None = None
    drain_hangs: bool = False

    def __post_init__(self) -> None:
        self.serving = asyncio.Event()

    @contextlib.asynccontextmanager
    async def open(self, stop: asyncio.Event) -> AsyncIterator[FakeApp]:
        self.stop = stop
        self.diary.append("open")
        if self.opening:
            self.opening()
            await asyncio.Event().wait()
        try:
            yield self
        finally:
            self.diary.append("close")

    async def serve(self) -> None:
        self.diary.append("serve")
        self.serving.set()
        if self.error:
            raise self.error
        try:
            await asyncio.Event().wait()
        finally:
            self.diary.append("end")

    async def reload(self) -> None:
        self.diary.append("reload")

    async def drain(self, seconds: float) -> None:
        self.diary.append("drain")
        if self.drain_hangs:
            await asyncio.Event().wait()


class Manager:
    """The service manager's end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(address)

    def close(self) -> None:
        self._socket.close()

    def heard(self) -> list[str]:
        """What was said since the last call."""
        messages = []
        with contextlib.suppress(BlockingIOError):
            while True:
                messages.append(self._socket.recv(4096).decode())
        return messages


@pytest.fixture
def address() -> str:
    return f"\0agentd-test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    manager = Manager(address)
    yield manager
    manager.close()


def notifier(address: str, watchdog_usec: int = 0) -> Notifier:
    environ = {"NOTIFY_SOCKET": f"@{address[1:]}", "WATCHDOG_USEC": str(watchdog_usec)}
    return Notifier.from_environ(environ)


async def living(app: FakeApp, told: Notifier, act: Callable[[], object]) -> list[float]:
    """Run `app`, act once it serves, and return what the last resort was told."""
    last_resorts: list[float] = []
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(
            run(app.open, FakeClock(), told, StopTimeouts(0.01, 4.5), last_resorts.append)
        )
        await app.serving.wait()
        await FakeClock.settle()
        act()
    return last_resorts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_signal_drains_and_closes_in_order(number: int) -> None:
    app = FakeApp()
    last_resorts = await living(app, Notifier(), lambda: os.kill(os.getpid(), number))
    assert app.diary == ["open", "serve", "drain", "end", "close"]
    assert last_resorts == [4.5]


async def test_the_app_may_ask_for_the_end_itself() -> None:
    app = FakeApp()
    await living(app, Notifier(), lambda: app.stop.set())
    assert app.diary == ["open", "serve", "drain", "end", "close"]


async def test_a_hangup_asks_for_a_reload_and_ends_nothing() -> None:
    app = FakeApp()

    def act() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        asyncio.get_running_loop().call_later(0.02, app.stop.set)

    with capture_logs() as logs:
        await living(app, Notifier(), act)
    assert [entry["event"] for entry in logs] == ["ready", "stopping", "stopped"]
    assert app.diary.count("reload") == 1
    assert app.diary.index("reload") < app.diary.index("drain")


async def test_a_drain_that_hangs_is_left_behind() -> None:
    app = FakeApp(drain_hangs=True)
    with capture_logs() as logs:
        await living(app, Notifier(), lambda: app.stop.set())
    assert app.diary == ["open", "serve", "drain", "end", "close"]
    assert "drain_overran" in [entry["event"] for entry in logs]


async def test_a_signal_while_opening_ends_the_opening(manager: Manager, address: str) -> None:
    app = FakeApp(opening=lambda: os.kill(os.getpid(), signal.SIGTERM))
    last_resorts: list[float] = []
    async with asyncio.timeout(5):
        await run(app.open, FakeClock(), notifier(address), StopTimeouts(), last_resorts.append)
    assert app.diary == ["open"]
    assert last_resorts == [4.5]
    assert manager.heard() == ["STOPPING=1"]


async def test_an_app_that_breaks_is_closed_and_its_error_comes_out() -> None:
    app = FakeApp(error=StorageCorrupt("bad page"))
    last_resorts: list[float] = []
    with pytest.raises(ExceptionGroup) as raised:
        await run(app.open, FakeClock(), Notifier(), StopTimeouts(), last_resorts.append)
    assert raised.group_contains(StorageCorrupt)
    assert app.diary == ["open", "serve", "close"]
    assert last_resorts == [4.5]


async def test_the_manager_hears_ready_after_opening_and_stopping_once(
    manager: Manager, address: str
) -> None:
    app = FakeApp()
    heard: list[str] = []

    def act() -> None:
        heard.extend(manager.heard())
        app.stop.set()

    await living(app, notifier(address), act)
    assert [message.splitlines()[0] for message in heard] == ["READY=1"]
    assert manager.heard() == ["STOPPING=1"]


async def test_the_watchdog_is_fed_with_proof_and_not_while_a_part_hangs(
    manager: Manager, address: str
) -> None:
    clock, part, other = FakeClock(), Part("store"), Part("scheduler")
    watchdog = Watchdog((part, other), notifier(address, 20_000_000), clock, deadline=0.01)

    async def period() -> list[str]:
        await clock.advance(10)
        await until(lambda: clock.sleeping, "all parts have had their time")
        return manager.heard()

    with capture_logs() as logs:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watchdog.run())
            assert await period() == ["WATCHDOG=1"]
            part.hangs = True
            assert await period() == []
            assert await period() == []
            part.hangs = False
            assert await period() == ["WATCHDOG=1"]
            other.breaks = True
            assert await period() == []
            running.cancel()
    assert [(entry["event"], entry["part"]) for entry in logs] == [
        ("part_stuck", "store"),
        ("part_recovered", "store"),
        ("part_stuck", "scheduler"),
    ]


async def test_without_a_watchdog_nobody_is_bothered() -> None:
    clock = FakeClock()
    await Watchdog((Part(),), Notifier(), clock).run()
    assert clock.sleeping == 0


def test_the_managers_variables_are_not_left_to_children(manager: Manager, address: str) -> None:
    environ = {
        "NOTIFY_SOCKET": f"@{address[1:]}",
        "WATCHDOG_USEC": "60000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/root",
    }
    told = Notifier.from_environ(environ)
    assert environ == {"HOME": "/root"}
    assert told.watchdog_seconds == 60
    told.send("STATUS=a", "READY=1")
    assert manager.heard() == ["STATUS=a\nREADY=1"]


def test_a_watchdog_that_waits_for_another_process_is_not_ours() -> None:
    assert Notifier.from_environ({"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}).watchdog_seconds == 0


def test_a_manager_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    with capture_logs() as logs:
        Notifier(str(tmp_path / "gone")).send("READY=1")
    assert logs[0]["event"] == "notify_failed"


def test_a_wrong_configuration_is_told_on_standard_error_with_code_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[log]\nkeep = 0\n")
    before = os.umask(0o022)
    try:
        assert daemon.main(path) == ConfigError.exit_code == 78
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(before)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "line 2: log.keep" in captured.err
    assert "what to do: correct the file" in captured.err


def test_no_daemon_starts_with_its_state_in_the_workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    monkeypatch.setenv("AGENTD__WORKSPACE__PATH", str(tmp_path))
    before = os.umask(0o077)
    try:
        assert daemon.main() == ConfigError.exit_code
    finally:
        os.umask(before)
    assert "is in the workspace" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_file_in_place_of_a_folder_of_ours_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "logs").touch()
    before = os.umask(0o077)
    try:
        assert daemon.main() == 1
    finally:
        os.umask(before)
    told = capsys.readouterr().err
    assert "state/logs: File exists\n  what to do: something of another kind" in told


def test_a_second_daemon_on_the_same_state_says_so_with_code_75(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    before = os.umask(0o077)
    try:
        with state_lock(tmp_path / "state"):
            found = sorted(tmp_path.rglob("*"))
            assert daemon.main() == AlreadyRunning.exit_code == 75
            assert sorted(tmp_path.rglob("*")) == found
    finally:
        os.umask(before)
    assert "another agentd owns" in capsys.readouterr().err


PROCESS = """
    import asyncio, contextlib, os, signal, sys, threading
    from agentd.core.clock import SystemClock
    from agentd.app.daemon import StopTimeouts, _new_loop, run
    from agentd.app.sdnotify import Notifier

    class App:
        probes = ()

        def __init__(self, stop):
            self.stop = stop

        async def serve(self):
            print("up", flush=True)
            if sys.argv[1] == "asked":
                self.stop.set()
            await asyncio.Event().wait()

        async def reload(self):
            raise NotImplementedError

        async def drain(self, seconds):
            if sys.argv[1] == "blocked":
                threading.Event().wait()
            if sys.argv[1] == "clean":
                return
            if sys.argv[1] == "asked":
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.Event().wait()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def opener(stop):
        yield App(stop)

    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(run(opener, SystemClock(), Notifier(), StopTimeouts(0.1, float(sys.argv[2]))))
"""


@contextlib.contextmanager
def daemon_process(how: str, total: float) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROCESS), how, str(total)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    ) as process:
        try:
            assert process.stdout is not None
            while "up" not in (line := process.stdout.readline()):
                assert line, "the daemon died before it was up"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_clean_stop_ends_with_code_0(number: signal.Signals) -> None:
    with daemon_process("clean", total=60) as process:
        process.send_signal(number)
        out, told = process.communicate(timeout=10)
    assert (process.returncode, told) == (0, "")
    assert "stopped" in out


@pytest.mark.parametrize("how", ["deaf", "blocked"])
def test_a_daemon_that_hangs_is_gone_in_time_and_says_where_it_hung(how: str) -> None:
    with daemon_process(how, total=0.3) as process:
        process.terminate()
        _, told = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "Timeout" in told
    assert "most recent call first" in told


def test_a_second_signal_forces_the_end() -> None:
    with daemon_process("deaf", total=60) as process:
        assert process.stdout is not None
        process.terminate()
        while "stopping" not in (line := process.stdout.readline()):
            assert line
        process.terminate()
        assert process.wait(timeout=10) == 1


def test_a_first_signal_after_the_app_asked_for_the_end_forces_nothing() -> None:
    with daemon_process("asked", total=60) as process:
        process.communicate(timeout=10)
    assert process.returncode == 0


HEAPS = """
import ctypes, sys, tempfile, threading
if sys.argv[1]:
    from agentd.app.daemon import use_one_malloc_arena
    use_one_malloc_arena()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
threads = [threading.Thread(target=libc.malloc, args=(1000,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap "))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not the GNU C library")
@pytest.mark.parametrize(("shared", "several"), [("yes", False), ("", True)])
def test_all_threads_share_one_heap(shared, several):
    argv = [sys.executable, "-c", HEAPS, shared]
    heaps = int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert (heaps > 1) is several
