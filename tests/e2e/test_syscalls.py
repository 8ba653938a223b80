"""The daemon and the process of its model live with the system calls that the unit leaves them.

strace stands in for systemd: it refuses, with the unit's own error, every call that the filter of
the unit does not allow, and writes down what was refused.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shell import Shell, a_shell

UNIT = Path(__file__).parents[2] / "systemd" / "agentd@.service"
PATIENCE = 90.0  # seconds
# Asked for, refused, and gone on without: memory near the processor, by the arithmetic of numpy;
# the owner of a file beside a database, by SQLite where root runs it, which under the unit nobody
# does.
DISPENSABLE = {"mbind", "fchown"}
_CALL = re.compile(r"^\d+ +(?:<\.\.\. )?([a-z_][a-z0-9_]*)")

missing = [name for name in ("strace", "systemd-analyze") if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@cache
def members(name: str) -> frozenset[str]:
    """The calls of one of systemd's sets."""
    done = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    )
    found: set[str] = set()
    for line in done.stdout.splitlines():
        if line.startswith(" ") and (word := line.strip()) and not word.startswith("#"):
            found |= members(word) if word.startswith("@") else {word}
    return frozenset(found)


def allowed() -> frozenset[str]:
    """What the lines of the unit leave: the first allows, those with a tilde take away."""
    left: frozenset[str] = frozenset()
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        if name == "SystemCallFilter":
            sets = frozenset().union(*map(members, value.removeprefix("~").split()))
            left = left - sets if value.startswith("~") else left | sets
    return left


@contextmanager
def filtered(trace: Path, *argv: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The command under the filter; what it is refused is written to `trace`."""
    names = "!" + ",".join(f"?{name}" for name in sorted(allowed()))
    strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-o", str(trace)]
    strace += ["-e", f"trace={names}", "-e", f"inject={names}:error=EPERM"]
    with subprocess.Popen([*strace, *argv], **more) as process:
        try:
            yield process
        finally:
            process.terminate()


def refused(trace: Path) -> set[str]:
    lines = trace.read_text(encoding="utf-8").splitlines()
    return {match[1] for line in lines if (match := _CALL.match(line))}


@contextmanager
def readiness(folder: Path) -> Iterator[socket.socket]:
    """Where the daemon tells its service manager that it is ready."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(folder / "notify"))
        yield told


def is_ready(told: socket.socket, daemon: subprocess.Popen[bytes]) -> bool:
    """Wait for its word; False if the daemon ends before, or says nothing for too long."""
    ended = os.pidfd_open(daemon.pid)
    try:
        while told in select.select([told, ended], [], [], PATIENCE)[0]:
            if b"READY=1" in told.recv(4096):
                return True
        return False
    finally:
        os.close(ended)


def is_model_in_use(shell: Shell) -> bool:
    status = shell.json("status")["index"]
    return "MiniLM" in status["embedder"] and not status["vectors_missing"]


def test_turns_beats_backups_and_vectors_need_no_call_that_the_unit_refuses(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with a_shell(AGENTD__MEMORY_SEARCH__PROVIDER="auto") as shell:
        shell.ok("init")
        argv = [sys.executable, "-m", "agentd", "run"]
        log = (tmp_path / "log").open("wb")
        with (
            log,
            readiness(shell.root) as told,
            filtered(
                trace,
                *argv,
                env={**shell.environ(), "NOTIFY_SOCKET": str(shell.root / "notify")},
                stdout=log,
                stderr=log,
            ) as daemon,
        ):
            assert is_ready(told, daemon), (tmp_path / "log").read_text()
            shell.ok("send", "remember that Anna has adopted a puppy")
            shell.ok("memory", "write", "The harbour is closed on Mondays.")
            shell.ok("memory", "index")
            assert is_model_in_use(shell)
            assert shell.json("memory", "search", "a young dog")["results"] != []
            found = shell.json("memory", "search", "who got a new pet?")
            assert found["reason"] == ""
            assert any("puppy" in hit["text"] for hit in found["results"])
            shell.ok("heartbeat", "run", "--force")
            shell.ok("backup", str(tmp_path / "backup.tar"))
            shell.ok("doctor")
            shell.ok("stop")
            assert daemon.wait(PATIENCE) == 0
    assert refused(trace) <= DISPENSABLE


def test_a_call_that_the_unit_refuses_would_be_seen(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = "import os\ntry:\n    os.nice(1)\nexcept PermissionError:\n    print('refused')\n"
    with filtered(trace, sys.executable, "-c", code, stdout=subprocess.PIPE) as process:
        assert process.communicate(timeout=PATIENCE)[0] == b"refused\n"
    assert refused(trace) - DISPENSABLE == {"setpriority"}


def test_the_unit_allows_what_services_need_and_no_more() -> None:
    assert {"openat", "rt_sigreturn", "execve", "socket"} <= allowed()
    assert not {"mount", "reboot", "chown", "setpriority", "ptrace", "bpf"} & allowed()
