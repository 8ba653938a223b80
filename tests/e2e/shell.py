"""A home as a person at a shell has it: commands in, words and exit codes out."""

from __future__ import annotations

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.forked import Forked, parent
from tests.waiting import PATIENCE, wait_until

_NO_DAEMON = 69  # the exit code of a command that found none
_ASKED = b'{"jsonrpc": "2.0", "id": 1, "method": "_agentd/status", "params": {}}\n'
_ALL_DAY = {
    "AGENTD__AGENT__TIMEZONE": "UTC",
    "AGENTD__HEARTBEAT__ACTIVE_HOURS_START": "00:00",
    "AGENTD__HEARTBEAT__ACTIVE_HOURS_END": "24:00",
    "AGENTD__MEMORY_SEARCH__PROVIDER": "static",  # the same where a better one is installed
}


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object it printed."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The objects it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Shell:
    """Runs commands on one home. No model of a service is asked: there is no key."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    daemons: list[Forked] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.root / "agentd.sock"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def environ(self) -> dict[str, str]:
        """What the commands, and the daemon that they start, are given."""
        usual = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.root)}
        return {**usual, **_ALL_DAY, "AGENTD_HOME": str(self.root), **self.variables}

    def __call__(self, *argv: str, given: str = "") -> Done:
        code, out, err = parent().run(
            argv, given=given.encode(), environ=self.environ(), folder=self.root, timeout=PATIENCE
        )
        return Done(code, out.decode(), err.decode())

    def ok(self, *argv: str, given: str = "") -> Done:
        """The same, of a command that must succeed."""
        done = self(*argv, given=given)
        assert done.code == 0, done
        return done

    @contextmanager
    def started(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on by itself until the end of the block."""
        with subprocess.Popen(
            [sys.executable, "-m", "agentd", *argv],
            env=self.environ(),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def begin(self) -> Forked:
        """A daemon on its way, which need not start Python."""
        self.ok("init")
        log = self.root / "state" / "daemon.log"
        log.touch(0o600)
        with Path(os.devnull).open("rb") as nothing, log.open("ab") as told:
            streams = nothing.fileno(), told.fileno(), told.fileno()
            daemon = parent().start(["run"], streams, environ=self.environ(), folder=self.root)
        self.daemons.append(daemon)
        return daemon

    def wake(self) -> None:
        """What `up` does before it talks, with a daemon that need not start Python."""
        daemon = self.begin()
        wait_until(lambda: self._answers() or daemon.returncode is not None, "the daemon answers")
        assert daemon.returncode is None, (self.root / "state" / "daemon.log").read_text()

    def wake_again(self) -> None:
        """What `restart` does, with a daemon that need not start Python."""
        done = self("stop")
        assert done.code in {0, _NO_DAEMON}, done
        self.wake()

    def json(self, *argv: str) -> Any:
        """What a command that must succeed prints with `--json`."""
        return self.ok(*argv, "--json").json

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            try:
                client.connect(str(self.socket))
                client.sendall(_ASKED)
                return b'"result"' in client.recv(1 << 16)
            except (FileNotFoundError, ConnectionError):
                return False


@contextmanager
def a_shell(**variables: str) -> Iterator[Shell]:
    """A home that is gone after the block, and its daemon with it."""
    root = Path(tempfile.mkdtemp(prefix="as-"))
    shell = Shell(root, variables)
    try:
        yield shell
    finally:
        shell("stop")
        for daemon in shell.daemons:
            daemon.kill()
        shutil.rmtree(root)


def on_a_terminal(shell: Shell, typed: str, *words: str) -> str:
    """What a terminal shows while the command runs in it."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "agentd", *words]
    with subprocess.Popen(
        argv, env=shell.environ(), cwd=shell.root, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed: the command has ended
                break
            if not part:
                break
            shown += part
        process.wait()
    os.close(ours)
    return shown.decode()
