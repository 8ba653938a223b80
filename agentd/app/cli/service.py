"""`agentd service`: install and remove systemd units that run this installation of agentd."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct

from agentd.app.cli.ask import sockets
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.launch import ask_status
from agentd.app.cli.report import AsJson, reporting, show
from agentd.core.errors import AgentdError, DaemonUnreachable, NotFound
from agentd.core.paths import daemon_places, shipped_path
from agentd.interfaces.commands.units import system_unit, users_unit

app = CommandGroup()

System = Annotated[
    bool,
    typer.Option("--system/--user", help="For the whole machine, as root; or your own service."),
]

BOOTED = Path("/run/systemd/system")  # there if and only if systemd runs the machine
_PLACEHOLDER = "/usr/bin/env agentd"
_HIDDEN = (Path("/home"), Path("/root"), Path("/run/user"))  # by ProtectHome
_SECONDS = 60.0


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
            show({"files": files, "todo": commands}, _plan_text, as_json=as_json)
            return
        left = put(service, booted=BOOTED.is_dir(), running=not system and _runs())
        result = {"files": [str(path) for path in service.files], "todo": left}
        show(result, lambda _: _as_text("written", result), as_json=as_json)


@app.command()
def uninstall(system: System = False, as_json: AsJson = False) -> None:
    """Stop and disable the service and remove its unit file; your data stays."""
    with reporting(as_json=as_json):
        service = _service(system=system)
        left = remove(service, booted=BOOTED.is_dir())
        result = {"files": [str(path) for path in service.files], "todo": left}
        show(result, lambda _: _as_text("removed", result), as_json=as_json)


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
        return True  # it runs, but answered with an error or too late
    return True


def _plan_text(result: dict[str, Any]) -> str:
    units = [f"# {path}\n{text}" for path, text in result["files"].items()]
    return "\n".join([*units, *(f"$ {command}" for command in result["todo"])])


def _as_text(what: str, result: dict[str, Any]) -> str:
    lines = [f"{what} {path}" for path in result["files"]]
    if result["todo"]:
        lines += ["now type:", *(f"  {command}" for command in result["todo"])]
    return "\n".join(lines)


class ServiceUnit(Struct, frozen=True):
    """Unit files by path, and the commands that enable and start the service (`begin`), disable and
    stop it (`end`), and make systemd read the files again (`reload`).
    """

    files: Mapping[Path, str]
    begin: tuple[tuple[str, ...], ...]
    end: tuple[tuple[str, ...], ...]
    reload: tuple[str, ...]


def users_service(environ: Mapping[str, str], executable: Path) -> ServiceUnit:
    """Return a service of the user's own manager. Its unit sets `AGENTD_HOME` if `environ` does:
    there the user's clients look for the daemon. Raises AgentdError for a path with characters that
    cannot be written in a unit file.
    """
    control, unit = ("systemctl", "--user"), users_unit(environ)
    names = (unit.name, "agentd-watch.service", "agentd-watch.timer")
    texts = {unit.with_name(name): _text(f"user/{name}", executable) for name in names}
    both = ("agentd", "agentd-watch.timer")
    return ServiceUnit(
        {path: _at_home(text, environ) for path, text in texts.items()},
        ((*control, "enable", "--now", *both), ("loginctl", "enable-linger")),
        ((*control, "disable", "--now", *both),),
        (*control, "daemon-reload"),
    )


def system_service(
    person: str, executable: Path, python: Path, unit: Path | None = None
) -> ServiceUnit:
    """Return a service of the system's manager for one user, `person`. `python` is the interpreter
    of the executable. Raises AgentdError for an installation below a home, which the service could
    not read.
    """
    unit = unit or system_unit()
    for path in (executable, executable.resolve(), python.resolve()):
        if any(path.is_relative_to(hidden) for hidden in _HIDDEN):
            raise AgentdError(
                f"{path} is below a home, and a system service sees no homes",
                cure="install agentd below /opt and run that one, or use --user",
            )
    names = (unit.name, "agentd@.socket", "agentd-watch@.service", "agentd-watch@.timer")
    both = (f"agentd@{person}", f"agentd-watch@{person}.timer")
    return ServiceUnit(
        {unit.with_name(name): _text(name, executable) for name in names},
        (("systemctl", "enable", "--now", *both),),
        (("systemctl", "disable", "--now", *both),),
        ("systemctl", "daemon-reload"),
    )


def own_executable() -> Path:
    """Return the path of the `agentd` command beside the running Python, else of that on PATH.
    Raises NotFound.
    """
    beside = Path(sys.executable).with_name("agentd")
    found = beside if beside.is_file() else shutil.which("agentd")
    if found is None:
        raise NotFound("there is no agentd command", cure="install the package with pip")
    return Path(found).absolute()


def put(service: ServiceUnit, *, booted: bool, running: bool) -> list[str]:
    """Write the unit files, then enable and start the service; return the command lines that the
    user still has to run. If a daemon is `running`, the service is not started: the lines say how.
    Without systemd (`booted` is false) no command is run. Raises AgentdError.
    """
    for path, text in service.files.items():
        _write(path, text)
    if running:
        return [*_run(booted, (service.reload,)), "agentd stop", *_command_lines(service.begin)]
    return _run(booted, (service.reload, *service.begin))


def remove(service: ServiceUnit, *, booted: bool) -> list[str]:
    """Disable and stop the service and remove its files; return the command lines that the user
    still has to run. Raises NotFound if there are no files, AgentdError.
    """
    there = [path for path in service.files if path.exists()]
    if not there:
        raise NotFound(f"there is no {next(iter(service.files))}", cure="nothing is left to do")
    left = _run(booted, service.end)
    for path in there:
        _change(path, path.unlink)
    return [*left, *_run(booted, (service.reload,))]


def _text(name: str, executable: Path) -> str:
    command = str(executable).replace("%", "%%")
    if any(character in command for character in " \"'\\$"):
        raise AgentdError(
            f"{executable} cannot stand in a unit file", cure="install agentd in a plainer path"
        )
    text = (shipped_path("systemd") / name).read_text(encoding="utf-8")
    return text.replace(_PLACEHOLDER, command)


def _at_home(text: str, environ: Mapping[str, str]) -> str:
    if not environ.get("AGENTD_HOME"):
        return text
    home = str(daemon_places(environ).socket.parent)
    if any(character in home for character in '"\\\n'):
        raise AgentdError(
            f"{home} cannot stand in a unit file", cure="set AGENTD_HOME to a plainer path"
        )
    line = f'Environment="AGENTD_HOME={home.replace("%", "%%")}"\n'
    return text.replace("[Service]\n", f"[Service]\n{line}", 1)


def _write(path: Path, text: str) -> None:
    """Write a unit file; an existing file with other text is kept as `NAME.old`. Raises
    AgentdError.
    """

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            path.replace(path.with_name(f"{path.name}.old"))
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)

    _change(path, write)


def _change(path: Path, change: Callable[[], object]) -> None:
    try:
        change()
    except OSError as error:
        raise AgentdError(
            f"{path} cannot be changed: {error.strerror}", cure="for --system use sudo"
        ) from error


def _run(booted: bool, commands: Iterable[Sequence[str]]) -> list[str]:
    """Run the commands; return the command lines of those that could not be run or failed."""
    left: list[str] = []
    for argv in commands:
        if not booted or shutil.which(argv[0]) is None or not _succeeds(argv):
            left += _command_lines((argv,))
    return left


def _succeeds(argv: Sequence[str]) -> bool:
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == os.EX_OK


def _command_lines(commands: Iterable[Sequence[str]]) -> list[str]:
    return [" ".join(argv) for argv in commands]
