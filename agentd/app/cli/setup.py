"""`agentd init` and `agentd up`: from nothing to a conversation."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentd.app.cli.ask import QUICK_SECONDS, ask
from agentd.app.cli.launch import ensure_running
from agentd.app.cli.questions import ask_settings
from agentd.app.cli.report import AsJson, ConfigPath, note, reporting, show
from agentd.app.cli.talk import Wait, converse
from agentd.app.cli.tomltext import with_value
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError, DaemonUnreachable
from agentd.core.paths import Places, daemon_places, ensure_private_dir, shipped
from agentd.storage.lock import state_lock
from agentd.storage.migrations import STATE
from agentd.storage.rescue import begin_anew
from agentd.workspace.template import create

_HEAD = """\
# What differs from agentd's defaults. `agentd config show` lists every key, its value in force and where
# that comes from; what each key does stands in
# {example}
"""


def init(
    new_state: Annotated[
        bool, typer.Option("--new-state", help="Begin without the conversations that are gone.")
    ] = False,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Make the configuration and the workspace; what exists is kept."""
    places = daemon_places(os.environ, config)
    with reporting(as_json=as_json):
        interactive = _on_terminal() and not as_json
        made = make(places, interactive=interactive)
        if new_state:
            made.append(_new_state(places))
        result = {
            "created": made,
            "config": str(places.config_file),
            "workspace": str(places.workspace),
        }
        show(result, lambda _: _told(places, made), as_json=as_json)
        if interactive and str(places.config_file) in made:
            if _daemon_runs():
                _offer_alert()
            else:
                note("next: `agentd up` starts the daemon and opens the chat,")
                note("then `agentd alerts test` shows where alerts arrive")


def up(config: ConfigPath = None, wait: Wait = None) -> None:
    """Make what is missing, start the daemon if none runs, and open the chat.

    Without a terminal each line of standard input is one message, and the replies go to standard
    output.
    """
    places = daemon_places(os.environ, config)
    with reporting():
        is_new = not places.config_file.exists()
        _note_made(places, make(places, interactive=_on_terminal()))
        if done := asyncio.run(ensure_running(places, config, note)):
            note(done)
        if is_new and _on_terminal():
            _offer_alert()
        raise typer.Exit(converse("main", wait))


def make(places: Places, *, interactive: bool) -> list[str]:
    """Create what is missing and return its paths. Raises AgentdError."""
    made: list[str] = []
    try:
        ensure_private_dir(places.state_dir)
        ensure_private_dir(places.config_file.parent)
        if not places.config_file.exists():
            _write_new(places.config_file, _configuration(interactive=interactive))
            made.append(str(places.config_file))
        made += _workspace(places.workspace)
    except OSError as error:
        raise AgentdError(
            f"cannot set up {error.filename or places.workspace}: {error.strerror}",
            cure="make the folder writable for you, or set AGENTD_HOME to another one",
        ) from error
    return made


def _note_made(places: Places, made: list[str]) -> None:
    config = str(places.config_file)
    if config in made:
        note(f"created {config}")
    if names := [str(Path(path).relative_to(places.workspace)) for path in made if path != config]:
        note(f"created {', '.join(names)} in {places.workspace}")


def _new_state(places: Places) -> str:
    """A new, empty state database where the old one is gone; its path. Raises AgentdError."""
    with state_lock(places.state_dir):
        for aside in begin_anew(places.database, STATE, SystemClock("UTC").now()):
            note(f"moved aside: {aside}")
    return str(places.database)


def _configuration(*, interactive: bool) -> str:
    text = _HEAD.format(example=shipped("config.example.toml"))
    if not interactive:
        return text
    note("A few questions first; Enter takes what stands in brackets.")

    for table, key, value in ask_settings():
        text = with_value(text, table, key, value)
    return text


def _workspace(root: Path) -> list[str]:

    ensure_private_dir(root)
    return [str(root / name) for name in create(root, shipped("workspace_template"))]


def _write_new(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, no path
        os.fchmod(descriptor, 0o600)
        file.write(text)


def _daemon_runs() -> bool:
    try:
        ask("status", within=QUICK_SECONDS)
    except DaemonUnreachable:
        return False
    return True


def _offer_alert() -> None:
    """Let the user see where alerts arrive, before one matters."""
    if typer.confirm("Send a test alert, to see where alerts arrive?", default=False):
        delivered = ask("alerts/test", within=2 * QUICK_SECONDS)["delivered"]
        note("\n".join(f"  {sink}: {state}" for sink, state in delivered.items()))


def _told(places: Places, made: list[str]) -> str:
    if not made:
        return f"nothing to do: {places.config_file} and {places.workspace} are complete"
    return "\n".join(f"created {path}" for path in made)


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
