"""`agentd doctor`: check this machine and the daemon; print each problem with its cure."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Sequence
from typing import Any

import typer

from agentd.app.assembly.model import load_checked
from agentd.app.cli.ask import fit_to_terminal, sockets
from agentd.app.cli.declared import alone
from agentd.app.cli.report import ConfigFile, reporting, show
from agentd.app.config import Config
from agentd.app.config_absent import absent
from agentd.app.daemon import StopTimeouts
from agentd.app.doctor.examine import Check, examine
from agentd.app.doctor.machine_checks import (
    ClockCheck,
    DiskCheck,
    ErasureCheck,
    LeftoversCheck,
    MovedAsideCheck,
    PermissionsCheck,
    SocketPathCheck,
    SqliteVersionCheck,
)
from agentd.app.doctor.service_checks import LingerCheck, UnitFileCheck
from agentd.core.clock import SystemClock, zone_or_empty
from agentd.core.errors import AgentdError
from agentd.core.health import Finding
from agentd.core.paths import DaemonPaths, daemon_places, expanded
from agentd.interfaces.client.connection import connect
from agentd.interfaces.commands.units import linger_marker, system_unit, users_unit
from agentd.interfaces.commands.upkeep import UPKEEP
from agentd.storage.ownership import owned

_SECONDS = 60.0
_OK = "ok"
_FAIL = "fail"


def _doctor(_: dict[str, Any], *, config: ConfigFile = None, as_json: bool) -> None:
    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        found = [*_configuration(places), *asyncio.run(_of_daemon())]
        is_well = all(check["level"] != _FAIL for check in found)
        show(
            {"ok": is_well, "checks": found},
            lambda _: fit_to_terminal(_as_text(found)),
            as_json=as_json,
        )
    if not is_well:
        raise typer.Exit(1)


doctor = alone(UPKEEP["doctor"], _doctor)


def _configuration(places: DaemonPaths) -> list[dict[str, str]]:
    """Check this machine and return the findings as JSON objects. If the configuration cannot be
    used, the checks use the defaults.
    """
    try:
        config, found_at = load_checked(places, os.environ)
        owned(found_at.workspace, os.getuid())
        file = places.config_file
        there = f"{file} is right" if file.exists() else f"there is no {file}; the defaults hold"
        missing = absent(config, found_at, os.environ)
        read = [Finding.ok("config", there), *missing]
    except AgentdError as error:
        config = Config()
        read = [Finding.fail("config", error.message, error.cure)]
    found = asyncio.run(examine(_checks(places, config)))
    return [finding.as_json() for finding in (*read, *found)]


def _checks(places: DaemonPaths, config: Config) -> Sequence[Check]:

    path = config.workspace.path
    workspace = expanded(path) if path else places.workspace
    clock = SystemClock(config.agent.timezone)
    own = users_unit(os.environ)
    return (
        PermissionsCheck(places, workspace),
        DiskCheck((places.state_dir, workspace), lambda folder: shutil.disk_usage(folder).free),
        ClockCheck(clock, config.agent.timezone, zone_or_empty(os.environ)),
        SqliteVersionCheck(sqlite3.sqlite_version_info),
        SocketPathCheck(places.socket),
        LeftoversCheck(places.state_dir, workspace, clock),
        MovedAsideCheck(places, workspace),
        ErasureCheck(places.state_dir, clock),
        UnitFileCheck((own, system_unit()), StopTimeouts().total),
        LingerCheck(own, linger_marker()),
    )


async def _of_daemon() -> list[dict[str, str]]:

    try:
        async with connect(sockets()) as connection:
            found = await connection.call("_agentd/doctor", within=_SECONDS)
    except AgentdError as error:
        return [
            {"code": "daemon", "level": _FAIL, "text": error.message, "cure": error.cure},
        ]
    checks: list[dict[str, str]] = found["checks"]
    return checks


def _as_text(found: list[dict[str, Any]]) -> str:
    lines = []
    for check in found:
        if check["level"] == _OK:  # many codes name what could be wrong: "ok, unreadable files"
            lines.append(f"{_OK:<5}{check['text']}")
            continue
        lines.append(f"{check['level']:<5}{check['code']}: {check['text']}")
        if check["cure"]:
            lines.append(f"     → {check['cure']}")
    return "\n".join(lines)
