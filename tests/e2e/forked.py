"""Runs `agentd` in processes forked from one that has imported it already.

A process of its own spends most of its time starting Python, loading libraries and making commands
of functions. A forked one is a process all the same: its own environment, folder, streams, signals
and exit code.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO

import typer

from agentd.app.cli.app import app, main
from agentd.core import failpoints

ROOT = Path(__file__).parents[2]
_STREAMS = 3
_LONGEST = 1 << 20  # bytes of a request
_STEP = 0.01  # seconds between two looks


@cache
def parent(preloaded: Path | None = None) -> Parent:
    """The one of this test process, or that with a library loaded before all others; it ends with
    it.
    """
    return Parent({} if preloaded is None else {"LD_PRELOAD": str(preloaded)})


class Forked:
    """A process that goes on."""

    def __init__(self, told: socket.socket) -> None:
        self.pid = int(told.recv(16))
        self._code: int | None = None
        self._told = told.detach()
        self._close = weakref.finalize(self, os.close, self._told)

    @property
    def returncode(self) -> int | None:
        """How it ended, negative for a signal; None while it goes on."""
        return self._code if self._code is not None else self._heard(0.0)

    async def wait(self) -> int:
        """How it ended, when it has."""
        while (code := self.returncode) is None:
            await asyncio.sleep(_STEP)
        return code

    def ended(self, timeout: float) -> int:
        """The same for those who cannot await. Raises TimeoutError after so many seconds."""
        code = self._code if self._code is not None else self._heard(timeout)
        if code is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout:g} s")
        return code

    def kill(self) -> None:
        """Give it no chance."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it is gone, and the word of that is on its way
                os.kill(self.pid, number)

    def _heard(self, timeout: float) -> int | None:
        if not select.select([self._told], [], [], timeout)[0]:
            return None
        self._code = int(os.read(self._told, 16))
        self._close()
        return self._code


class Parent:
    """The process that others are forked from. It starts with more variables than ours."""

    def __init__(self, more: Mapping[str, str]) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-m", "tests.e2e.forked", str(theirs.fileno())]
            self._process = subprocess.Popen(
                argv,
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                # One thread, for only that one is in what is forked.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **more},
            )
        atexit.register(self._end)

    def start(
        self,
        argv: Sequence[str],
        streams: Sequence[int],
        *,
        environ: Mapping[str, str],
        folder: Path,
    ) -> Forked:
        """`agentd ARGV` with these file descriptors as standard input, output and error."""
        request = {"argv": list(argv), "environ": dict(environ), "folder": str(folder)}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._ours, [json.dumps(request).encode()], [theirs.fileno(), *streams])
        return Forked(ours)

    def run(
        self,
        argv: Sequence[str],
        *,
        given: bytes,
        environ: Mapping[str, str],
        folder: Path,
        timeout: float,
    ) -> tuple[int, bytes, bytes]:
        """The exit code of `agentd ARGV` and what it wrote to standard output and standard error.

        Raises TimeoutError after `timeout` seconds, when it has been killed.
        """
        with (
            tempfile.TemporaryFile() as fed,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            fed.write(given)
            fed.seek(0)
            streams = [stream.fileno() for stream in (fed, out, err)]
            process = self.start(argv, streams, environ=environ, folder=folder)
            try:
                code = process.ended(timeout)
            finally:
                process.kill()
            return code, _whole(out), _whole(err)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


def _whole(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()


def serve(requests: socket.socket, command: Callable[[], None]) -> None:
    """Fork a process that runs the command for each request, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    while True:
        text, files, _, _ = socket.recv_fds(requests, _LONGEST, 1 + _STREAMS)
        if not text:
            return
        if os.fork() == 0:
            requests.close()
            _attend(json.loads(text), files, command)
        for file in files:
            os.close(file)


def _attend(
    request: Mapping[str, Any], files: Sequence[int], command: Callable[[], None]
) -> NoReturn:
    """Tell the pid of a process, and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    teller, *streams = files
    pid = os.fork()
    if pid == 0:
        os.close(teller)
        _become(request, streams, command)
    for stream in streams:
        os.close(stream)
    with socket.socket(fileno=teller) as telling:
        telling.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        telling.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(
    request: Mapping[str, Any], streams: Sequence[int], command: Callable[[], None]
) -> NoReturn:
    """Be what `python -m agentd ARGV` would be, without taking the modules down at the end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.isatty(0):  # its own terminal, whose keys reach it as signals
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout, sys.stderr = map(_opened, (sys.stdin, sys.stdout, sys.stderr))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    failpoints.arm(os.environ.get("AGENTD_FAILPOINT", ""))  # as at its import
    sys.argv = ["agentd", *request["argv"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = _told(command)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _opened(stream: TextIO) -> TextIO:
    """The stream anew, for what its file is now: a terminal gets every line at once."""
    return open(
        stream.fileno(), stream.mode, encoding=stream.encoding, errors=stream.errors, closefd=False
    )


def _told(command: Callable[[], None]) -> int:
    """The exit code of what ends as a main module does; what it raises goes on to the
    interpreter.
    """
    try:
        command()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def _import_everything() -> None:
    """Load what commands and daemons load, late or not."""
    for module in pkgutil.walk_packages([str(ROOT / "agentd" / "app" / "cli")], "agentd.app.cli."):
        importlib.import_module(module.name)
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    late = re.search(r"```deferred-imports\n(.*?)```", page, re.DOTALL)
    assert late, "ARCHITECTURE.md lists no deferred imports"
    for place, *modules in map(str.split, late[1].splitlines()):
        if place.startswith("agentd/memory/index/embedding/"):
            continue  # that of a process of its own, for libraries that may not be there
        for module in modules:
            if module.startswith("agentd."):
                importlib.import_module(module)
    for module in ("agentd.interfaces.client.connection", "agentd.app.daemon", "typer._adapters"):
        importlib.import_module(module)


if __name__ == "__main__":
    _import_everything()
    ready = partial(main, typer.main.get_command(app))
    gc.freeze()  # nobody looks through what all of them share
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        serve(asked, ready)
