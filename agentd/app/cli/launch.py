"""Starting and stopping the daemon from a client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import agentd
from agentd.core.errors import AgentdError, AlreadyRunning, Busy, ConfigError, DaemonUnreachable
from agentd.core.paths import (
    DaemonPaths,
    client_sockets,
    cure_of,
    ensure_private_dir,
    expanded,
    is_system_service,
)
from agentd.interfaces.client.connection import connect, dial
from agentd.interfaces.client.remote_error import RemoteError

LOG_NAME = "daemon.log"
START_SECONDS = 30.0
STOP_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 0.05
_ANSWER_SECONDS = 10.0
_LAST_LINES = 20


async def ask_status(sockets: Sequence[Path]) -> Any:
    """Return the daemon's status, a JSON object. Raises DaemonUnreachable, RemoteError, Busy."""
    async with connect(sockets) as connection:
        return await connection.call("_agentd/status", within=_ANSWER_SECONDS)


async def ensure_running(
    places: DaemonPaths, config: Path | None, tell: Callable[[str], None]
) -> str:
    """Make sure that a daemon of this version runs: start one, or restart one of another version.
    Return a sentence about what was done, "" if nothing. `tell` gets a message before each step
    that takes time.

    Raises AgentdError; if the daemon ended at its start, with the last lines of its log.
    """
    sockets = client_sockets(os.environ)
    try:
        status = await ask_status(sockets)
    except DaemonUnreachable:
        tell("starting the daemon")
        await start(places, config)
        return "the daemon is running now; `agentd stop` ends it"
    if status.get("version") == agentd.__version__:
        return ""
    await refuse_system_service(sockets)
    tell("restarting the daemon, which is another version")
    await restart(places, config)
    return f"the daemon was version {status.get('version')} and runs {agentd.__version__} now"


async def start(places: DaemonPaths, config: Path | None) -> None:
    """Start a daemon that outlives this process, and wait until it answers.

    Raises Busy if the daemon does not answer in time; ConfigError or another AgentdError, with the
    last lines of its log, if the daemon ended before; AgentdError if the log cannot be opened.
    """
    log = places.state_dir / LOG_NAME
    descriptor = _open_log(log)
    began = os.fstat(descriptor).st_size
    try:
        os.fchmod(descriptor, 0o600)
        process = _spawn(descriptor, config)
    finally:
        os.close(descriptor)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            await ask_status((places.socket,))
        except (DaemonUnreachable, Busy, RemoteError):
            pass
        else:
            process.returncode = 0  # the daemon outlives us on purpose: Popen must not warn
            return
        # Somebody else may have started one at the same moment; then that one will answer.
        if process.poll() not in {None, AlreadyRunning.exit_code}:
            raise _death(process.returncode, log, began)
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    process.returncode = process.poll() or 0
    raise Busy(
        f"the daemon does not answer {START_SECONDS:g} s after its start",
        cure=f"read {log}",
    )


async def stop(sockets: Sequence[Path]) -> None:
    """End the running daemon and wait until its process is gone. Raises DaemonUnreachable, Busy."""
    status = await ask_status(sockets)
    async with connect(sockets) as connection:
        await connection.call("_agentd/stop", within=_ANSWER_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        if not _is_alive(status["pid"]) and not await _answers(sockets):
            return
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    raise Busy(
        f"the daemon (process {status['pid']}) has not ended within {STOP_SECONDS:g} s",
        cure=f"wait, or end it with `kill {status['pid']}`",
    )


async def restart(places: DaemonPaths, config: Path | None) -> None:
    """Stop the daemon if one runs, and start one. Raises AgentdError. The configuration is checked
    first: a mistake in it raises ConfigError and leaves a running daemon alone.
    """
    from agentd.app.assembly.model import load_checked  # `up` and `stop` do without

    load_checked(places, os.environ)
    sockets = client_sockets(os.environ)
    try:
        await stop(sockets)
    except DaemonUnreachable:
        await start(places, config)
        return
    await start(places, config)


async def refuse_system_service(sockets: Sequence[Path]) -> None:
    """Raise AgentdError if the daemon that answers is a system service, which only systemd may
    restart.
    """
    for path in filter(is_system_service, sockets):
        if await _answers((path,)):
            raise AgentdError(
                f"the daemon at {path} is run by systemd",
                cure=f"use `sudo systemctl restart agentd@{path.parent.name}`",
            )


def _open_log(log: Path) -> int:
    """Return a descriptor for appending to the log. Does not block if the path is a named pipe
    without a reader. Raises AgentdError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        ensure_private_dir(log.parent)
        return os.open(log, flags, 0o600)
    except OSError as error:
        raise AgentdError(
            f"the daemon's log {log} cannot be opened: {error.strerror}", cure=cure_of(error)
        ) from error


def _spawn(log: int, config: Path | None) -> subprocess.Popen[bytes]:
    # -P keeps the current folder, perhaps a clone of agentd, off the module search path.
    argv = [sys.executable, "-P", "-m", "agentd", "run"]
    if config is not None:
        argv += ["--config", str(expanded(config).absolute())]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def _death(status: int, log: Path, began: int) -> AgentdError:
    with log.open("rb") as file:
        file.seek(began)
        said = file.read().decode(errors="replace").splitlines()[-_LAST_LINES:]
    kind = ConfigError if status == ConfigError.exit_code else AgentdError
    if not said:  # a full disk takes no log either
        return kind(f"the daemon ended at once (exit code {status})", cure="`agentd run` says why")
    told = "\n".join([f"the daemon ended at once (exit code {status}):", *said])
    return kind(told, cure=f"the whole log is {log}")


async def _answers(sockets: Sequence[Path]) -> bool:
    try:
        _, writer = await dial(sockets)
    except DaemonUnreachable:
        return False
    writer.close()
    return True


def _is_alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}
