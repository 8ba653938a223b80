"""The sinks that carry an alert: a command, the journal, the main session."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import BinaryIO

import structlog

from agentd.core.alert import Alert
from agentd.core.errors import AgentdError
from agentd.core.event import NoticeGiven
from agentd.core.ports import EventSink, Transcripts
from agentd.core.turn import MAIN

log = structlog.get_logger()

# A program that shows messages needs its user's desktop and paths, but must not get the daemon's
# keys or its connection to systemd, so only these variables are passed on.
_PASSED_ON = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "TMPDIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CURRENT_DESKTOP",
    }
)

# A repeated delivery follows soon after the first try, so the row is among the newest.
_TURNS_BACK = 20
_ELSEWHERE = "Alert {id} may come from outside: `agentd alerts list` shows it."


class CommandSink:
    """Runs `argv` for each alert, with the text on stdin and `AGENTD_ALERT_ID`,
    `AGENTD_ALERT_ORIGIN` and `AGENTD_ALERT_TO` in the environment; no shell. The process group is
    killed after `timeout`.
    """

    def __init__(
        self, argv: tuple[str, ...], timeout: timedelta, environ: Mapping[str, str]
    ) -> None:
        self._argv = argv
        self._timeout = timeout.total_seconds()
        self._environ = sink_environment(environ)

    @property
    def name(self) -> str:
        """`command`."""
        return "command"

    async def send(self, alert: Alert) -> None:
        """Run the program. Raises AgentdError unless it exits with 0 in time."""
        program = self._argv[0]
        try:
            with _holding(alert.told.encode()) as text:
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=text,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    env=self._environ | _about(alert),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            cure = "check [alerts] command"
            raise AgentdError(f"the alert command {program!r} did not start", cure=cure) from error
        try:
            async with asyncio.timeout(self._timeout):
                await process.wait()
        except TimeoutError:
            message = f"the alert command {program!r} took longer than {self._timeout:g} s"
            raise AgentdError(message, cure="raise [alerts] timeout") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            message = f"the alert command {program!r} ended with {process.returncode}"
            raise AgentdError(message, cure="run the command by hand with a text on stdin")


@contextlib.contextmanager
def _holding(data: bytes) -> Iterator[BinaryIO]:
    """Open a file in memory with the data, to be read from its beginning. A pipe would have to be
    written to, which fails where the program does not read and has ended before.
    """
    with os.fdopen(os.memfd_create("alert"), "w+b") as file:
        file.write(data)
        file.seek(0)
        yield file


class JournalSink:
    """Writes alerts to the log, the only place where the text of an alert is logged."""

    @property
    def name(self) -> str:
        """`journal`."""
        return "journal"

    async def send(self, alert: Alert) -> None:
        """Log the alert as a warning."""
        log.warning("alert", id=alert.id, origin=alert.origin, text=alert.told)


class MainSessionSink:
    """Adds each alert to `main` once, as a notice tagged `alert:ID`, and emits it to `events`. If
    text from outside had a part in the alert, the notice does not contain its words, only how to
    see it.
    """

    def __init__(self, sessions: Transcripts, events: EventSink) -> None:
        self._sessions = sessions
        self._events = events

    @property
    def name(self) -> str:
        """`main`."""
        return "main"

    async def send(self, alert: Alert) -> None:
        """Add the notice unless an earlier try has done so. Raises StorageError."""
        tag = f"alert:{alert.id}"
        if any(row.tag == tag for row in await self._sessions.recent(MAIN, _TURNS_BACK)):
            return
        text = _ELSEWHERE.format(id=alert.id) if alert.tainted else alert.text
        await self._sessions.notice(MAIN, text, tag)
        self._events.emit(NoticeGiven(MAIN, text, tag))


def sink_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the daemon's environment that is passed to a program that sends
    an alert.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }


def _about(alert: Alert) -> dict[str, str]:
    return {
        "AGENTD_ALERT_ID": str(alert.id),
        "AGENTD_ALERT_ORIGIN": alert.origin,
        "AGENTD_ALERT_TO": alert.to,
    }
