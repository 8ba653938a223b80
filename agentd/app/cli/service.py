"""`agentd service`: run it under systemd."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.installing import BOOTED, own_executable, system_service, users_service
from agentd.app.cli.installing import install as put
from agentd.app.cli.installing import uninstall as remove
from agentd.app.cli.launch import ask_status
from agentd.app.cli.report import AsJson, reporting, show
from agentd.core.errors import AgentdError, DaemonUnreachable

if TYPE_CHECKING:
    from agentd.app.cli.installing import ServiceUnit

app = CommandGroup()

System = Annotated[
    bool,
    typer.Option("--system/--user", help="For the whole machine, as root; or your own service."),
]


@app.command()
def install(
    system: System = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the unit files and commands only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the unit file with the path of this agentd, and enable it."""
    with reporting(as_json=as_json):
        service = _service(system=system)
        if dry_run:
            commands = [" ".join(argv) for argv in (service.reload, *service.begin)]
            files = {str(path): text for path, text in service.files.items()}
            show({"files": files, "todo": commands}, _planned, as_json=as_json)
            return
        left = put(service, booted=BOOTED.is_dir(), running=not system and _runs())
        result = {"files": [str(path) for path in service.files], "todo": left}
        show(result, lambda _: _told("written", result), as_json=as_json)


@app.command()
def uninstall(system: System = False, as_json: AsJson = False) -> None:
    """Stop and disable the service and remove its unit file; your data stays."""
    with reporting(as_json=as_json):
        service = _service(system=system)
        left = remove(service, booted=BOOTED.is_dir())
        result = {"files": [str(path) for path in service.files], "todo": left}
        show(result, lambda _: _told("removed", result), as_json=as_json)


def _service(*, system: bool) -> ServiceUnit:

    if not system:
        return users_service(os.environ, own_executable())
    person = os.environ.get("SUDO_USER") or getpass.getuser()
    return system_service(person, own_executable(), Path(sys.executable))


def _runs() -> bool:

    try:
        asyncio.run(ask_status(sockets()))
    except DaemonUnreachable:
        return False
    except AgentdError:
        return True  # it answers, though not well
    return True


def _planned(result: dict[str, Any]) -> str:
    units = [f"# {path}\n{text}" for path, text in result["files"].items()]
    return "\n".join([*units, *(f"$ {command}" for command in result["todo"])])


def _told(what: str, result: dict[str, Any]) -> str:
    lines = [f"{what} {path}" for path in result["files"]]
    if result["todo"]:
        lines += ["now type:", *(f"  {command}" for command in result["todo"])]
    return "\n".join(lines)
