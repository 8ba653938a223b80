"""`agentd logs`: print the daemon's log, from its file or from systemd's journal."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from agentd.app.cli.ask import QUICK_SECONDS, owners_times, sockets
from agentd.app.cli.declared import alone
from agentd.app.cli.report import as_line, note, reporting, say
from agentd.app.config import load
from agentd.app.logs import file_of
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError, DaemonUnreachable
from agentd.core.paths import daemon_places
from agentd.interfaces.client.connection import IgnoringWatcher, connect
from agentd.interfaces.commands.logs import LOGS, Logbook, WantedLines, parse
from agentd.interfaces.commands.plain import TimeFormatter, visible, words
from agentd.interfaces.commands.units import Unit

_MOST_AT_ONCE = 1000  # records in one answer of the daemon
_HEAD = ("at", "level", "event")


def _logs(
    given: dict[str, Any],
    *,
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=1_000_000, help="How many, the newest.")
    ] = 200,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    as_json: bool,
) -> None:

    wanted = WantedLines(**{name: value for name, value in given.items() if value is not None})
    with reporting(as_json=as_json):
        try:
            unit = asyncio.run(_of_daemon(wanted, number, follow=follow, as_json=as_json))
        except DaemonUnreachable:
            if follow:
                raise
            _of_file(wanted, number, as_json=as_json)
            return
        if unit is not None:
            show = _printer(None, as_json=as_json)
            _of_journal(unit, wanted, number, show, follow=follow)


logs = alone(LOGS["logs"], _logs)


class Tail:
    """A watcher of the daemon that prints the log records it sends."""

    def __init__(self, show: Callable[[Iterable[Mapping[str, Any]]], None]) -> None:
        self._show = show

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Print the records of a `_agentd/log`; ignore other notifications."""
        if method == "_agentd/log":
            self._show(params.get("records") or [])

    async def requested(self, method: str, params: Mapping[str, Any]) -> None:
        """Return None: every method is unknown."""


async def _of_daemon(
    wanted: WantedLines, number: int, *, follow: bool, as_json: bool
) -> Unit | None:
    """Print the newest `number` records of the daemon's log file, oldest first, and with `follow`
    those to come; return None. If the daemon logs to the journal, print nothing and return its
    unit.
    """
    async with connect(sockets(), IgnoringWatcher()) as connection:
        times = await owners_times(connection)
        show = _printer(times, as_json=as_json)
        pages: list[list[dict[str, Any]]] = []
        left, before, after = number, None, ""
        while left:
            params = {**asdict(wanted), "limit": min(left, _MOST_AT_ONCE), "before": before}
            page = await connection.call("_agentd/logs", params, within=QUICK_SECONDS)
            if unit := page.get("journal"):
                return Unit(**unit)
            after = after or page["after"]
            pages.append(page["records"])
            left -= len(page["records"])
            before = page["before"]
            if before is None:
                break
        for records in reversed(pages):
            show(records)
    if follow:
        async with connect(sockets(), Tail(show)) as connection:
            await connection.call("_agentd/logs/follow", {**asdict(wanted), "after": after})
    return None


def _of_file(wanted: WantedLines, number: int, *, as_json: bool) -> None:
    """Print the newest `number` records of the log file, for when no daemon runs. Raises
    DaemonUnreachable if there is no file.
    """
    places = daemon_places(os.environ)
    config = load(places.config_file, os.environ)
    file = file_of(config.log, places.state_dir)
    if not file.exists():
        raise DaemonUnreachable(
            f"no daemon runs, and there is no {file}", cure="start it with `agentd up`"
        )
    note(f"no daemon runs; this is {file}")
    times = TimeFormatter(SystemClock(config.agent.timezone))
    _printer(times, as_json=as_json)(Logbook(file).page(wanted, number).records)


def _of_journal(
    unit: Unit,
    wanted: WantedLines,
    number: int,
    show: Callable[[Iterable[Mapping[str, Any]]], None],
    *,
    follow: bool,
) -> None:
    if shutil.which("journalctl") is None:
        raise AgentdError(
            f"the log is in the journal of {unit.name}, and there is no journalctl here",
            cure="install systemd's journalctl, or set [log] file and run without systemd",
        )
    newest: list[Mapping[str, Any]] = []
    for record in filter(wanted.takes, _lines(unit.journal("--reverse"))):
        newest.append(record)
        if len(newest) == number:
            break
    show(reversed(newest))
    if follow:
        for record in filter(wanted.takes, _lines(unit.journal("--follow", "--lines=0"))):
            show([record])


def _lines(argv: list[str]) -> Iterator[dict[str, Any]]:
    """Run a command and yield the records that it prints. Closing the iterator ends the command."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield parse(line.rstrip(b"\n"))
        finally:
            process.terminate()


def _printer(
    times: TimeFormatter | None, *, as_json: bool
) -> Callable[[Iterable[Mapping[str, Any]]], None]:
    def show(records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            say(as_line(dict(record)) if as_json else _words(record, times))

    return show


def _words(record: Mapping[str, Any], times: TimeFormatter | None) -> str:
    at = str(record.get("at", ""))
    head = f"{times.exact(at) if times else at} {record.get('level', '')!s:<8}{record.get('event')}"
    rest = " ".join(f"{name}={words(v)}" for name, v in record.items() if name not in _HEAD)
    return visible(f"{head} {rest}".rstrip())
