"""Runs `agentd` commands in processes forked from one that has imported it already.

A command of its own spends most of its time starting Python. Forked, it is a process all the same: its
own environment, folder, streams, signals and exit code.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from agentd.cli.app import main

ROOT = Path(__file__).parents[2]
_STREAMS = 3
_LONGEST = 1 << 20  # bytes of a request


@cache
def parent() -> Parent:
    """The one of this test process; it ends with it."""
    return Parent()


class Parent:
    """The process that commands are forked from."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-m", "tests.e2e.forked", str(theirs.fileno())]
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], cwd=ROOT, stdin=subprocess.DEVNULL
            )
        atexit.register(self._end)

    def run(
        self,
        argv: Sequence[str],
        *,
        given: bytes,
        environ: Mapping[str, str],
        folder: Path,
        timeout: float,
    ) -> tuple[int, bytes, bytes]:
        """The exit code of a command and what it wrote to standard output and standard error.

        Raises TimeoutError after `timeout` seconds, when the command has been killed.
        """
        request = {"argv": list(argv), "environ": dict(environ), "folder": str(folder)}
        with (
            tempfile.TemporaryFile() as fed,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            fed.write(given)
            fed.seek(0)
            code = self._code(request, (fed, out, err), timeout)
            return code, _whole(out), _whole(err)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()

    def _code(
        self, request: Mapping[str, Any], streams: Sequence[IO[bytes]], timeout: float
    ) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                files = [theirs.fileno(), *(stream.fileno() for stream in streams)]
                socket.send_fds(self._ours, [json.dumps(request).encode()], files)
            ours.settimeout(timeout)
            pid = int(ours.recv(16))
            try:
                return int(ours.recv(16))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise


def _whole(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()


def serve(requests: socket.socket) -> None:
    """Fork a process for each request until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for commands
    while True:
        text, files, _, _ = socket.recv_fds(requests, _LONGEST, 1 + _STREAMS)
        if not text:
            return
        if os.fork() == 0:
            requests.close()
            _attend(json.loads(text), files)
        for file in files:
            os.close(file)


def _attend(request: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    """Tell the pid of a command, and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    teller, *streams = files
    pid = os.fork()
    if pid == 0:
        os.close(teller)
        _become(request, streams)
    with socket.socket(fileno=teller) as telling:
        telling.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        telling.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the command: what `python -m agentd ARGV` would be, without taking the modules down."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["agentd", *request["argv"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = _told(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _told(command: Callable[[], None]) -> int:
    """The exit code of what ends as a main module does; what it raises goes on to the interpreter."""
    try:
        command()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def _import_commands() -> None:
    """Load what the bodies of commands load."""
    for module in pkgutil.walk_packages([str(ROOT / "agentd" / "cli")], "agentd.cli."):
        importlib.import_module(module.name)
    for name in ("agentd.client.connection", "typer._adapters"):
        importlib.import_module(name)


if __name__ == "__main__":
    _import_commands()
    gc.freeze()  # no command looks through what all of them share
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        serve(asked)
