"""`agentd init` and `agentd up`: create configuration and workspace; start the daemon and chat."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from zoneinfo import available_timezones

import typer

from agentd.app.cli.ask import QUICK_SECONDS, ask
from agentd.app.cli.launch import ensure_running
from agentd.app.cli.report import AsJson, ConfigPath, note, reporting, say, show
from agentd.app.cli.talk import Wait, converse
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError, DaemonUnreachable
from agentd.core.paths import DaemonPaths, cure_of, daemon_places, ensure_private_dir, shipped_path
from agentd.core.settings import OPENAI_URL
from agentd.storage.companion_files import check_before_new
from agentd.storage.lock import state_lock
from agentd.storage.migrations import STATE
from agentd.storage.rescue import begin_anew
from agentd.workspace.template import create

_HEAD = """\
# What differs from agentd's defaults. `agentd config show` lists every key, its value in force
# and where that comes from; what each key does stands in
# {example}
"""

Answer = tuple[str, str, str | bool]  # table, key, value

_PROVIDERS = ("auto", "anthropic", "openai", "offline")
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_START, _END = "08:00", "22:00"  # of [heartbeat] active_hours, whose defaults need not be written
_ZONE_LINK = Path("/etc/localtime")


def init(
    new_state: Annotated[
        bool, typer.Option("--new-state", help="Begin without the conversations that are gone.")
    ] = False,
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Make the configuration and the workspace; what exists is kept."""
    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        interactive = _on_terminal() and not as_json
        made = make(places, interactive=interactive)
        if new_state:
            made.append(_new_state(places))
        result = {
            "created": made,
            "config": str(places.config_file),
            "workspace": str(places.workspace),
        }
        show(result, lambda _: _as_text(places, made), as_json=as_json)
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
    with reporting():
        places = daemon_places(os.environ, config)
        is_new = not places.config_file.exists()
        _note_made(places, make(places, interactive=_on_terminal(), unasked=True))
        if done := asyncio.run(ensure_running(places, config, note)):
            note(done)
        if is_new and _on_terminal():
            _offer_alert()
        raise typer.Exit(converse("main", wait))


def make(places: DaemonPaths, *, interactive: bool, unasked: bool = False) -> list[str]:
    """Create the configuration and the files of the workspace that are missing; return their paths.
    With `interactive` the user is asked for settings. With `unasked` the loss of a configuration is
    reported before a new one replaces it. Raises AgentdError.
    """
    made: list[str] = []
    try:
        ensure_private_dir(places.state_dir)
        ensure_private_dir(places.config_file.parent)
        if unasked:
            check_before_new(places, SystemClock("UTC").now())
        if not places.config_file.exists():
            _write_new(places.config_file, _configuration(interactive=interactive))
            made.append(str(places.config_file))
        made += _workspace(places.workspace)
    except OSError as error:
        raise AgentdError(
            f"cannot set up {error.filename or places.workspace}: {error.strerror}",
            cure=cure_of(error),
        ) from error
    return made


def _note_made(places: DaemonPaths, made: list[str]) -> None:
    config = str(places.config_file)
    if config in made:
        note(f"created {config}")
    if names := [str(Path(path).relative_to(places.workspace)) for path in made if path != config]:
        note(f"created {', '.join(names)} in {places.workspace}")


def _new_state(places: DaemonPaths) -> str:
    """Create an empty state database in place of a lost one; return its path. Raises
    AgentdError.
    """
    with state_lock(places.state_dir):
        for aside in begin_anew(places.database, STATE, SystemClock("UTC").now()):
            note(f"moved aside: {aside}")
    return str(places.database)


def _configuration(*, interactive: bool) -> str:
    text = _HEAD.format(example=shipped_path("config.example.toml"))
    if not interactive:
        return text
    note("A few questions first; Enter takes what stands in brackets.")

    for table, key, value in ask_settings():
        text = with_value(text, table, key, value)
    return text


def _workspace(root: Path) -> list[str]:

    ensure_private_dir(root)
    return [str(root / name) for name in create(root, shipped_path("workspace_template"))]


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
    """Offer to send a test alert, and print what came of it for each sink."""
    if typer.confirm("Send a test alert, to see where alerts arrive?", default=False):
        delivered = ask("alerts/test", within=2 * QUICK_SECONDS)["delivered"]
        note("\n".join(f"  {sink}: {state}" for sink, state in delivered.items()))


def _as_text(places: DaemonPaths, made: list[str]) -> str:
    if not made:
        return f"nothing to do: {places.config_file} and {places.workspace} are complete"
    return "\n".join(f"created {path}" for path in made)


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def with_value(text: str, table: str, key: str, value: str | bool) -> str:
    """Return the TOML `text` with `key` of `[table]` set to `value`: a commented-out key is
    replaced, a missing key or table added.

    The value is written as JSON. A JSON string is a TOML string unless it escapes a character
    beyond the basic multilingual plane.
    """
    setting = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    try:
        start = lines.index(f"[{table}]") + 1
    except ValueError:
        return "\n".join([*lines, "", f"[{table}]", setting, ""])
    pattern = re.compile(rf"(#\s*)?{re.escape(key)}\s*=")
    at = start
    while at < len(lines) and not lines[at].startswith("["):
        if pattern.match(lines[at]):
            lines[at] = setting
            return "\n".join(lines) + "\n"
        at += 1
    while not lines[at - 1].strip():  # go back over blank lines, to just after the last key
        at -= 1
    lines.insert(at, setting)
    return "\n".join(lines) + "\n"


def ask_settings() -> Iterator[Answer]:
    """Ask the user for settings one by one and yield those to be written."""
    say("auto: Anthropic if there is a key for it, else fixed rules without a model.")
    kind = _ask("Model provider (" + ", ".join(_PROVIDERS) + ")", "auto", _PROVIDERS)
    if kind != "auto":
        yield "provider", "kind", kind
    if kind == "openai":
        yield from _openai()
    if kind in _KEYS:
        variable = typer.prompt("Environment variable that holds the key", default=_KEYS[kind])
        yield "provider", "api_key_env", variable
        if not os.environ.get(variable):
            say(f"  {variable} is not set here; if the service wants a key, set it first.")
    yield "agent", "timezone", _ask("Time zone", _system_zone(), available_timezones())
    say("The heartbeat looks at your checklist during active hours only.")
    start, end = _hours()
    if start != _START:
        yield "heartbeat", "active_hours_start", start
    if end != _END:
        yield "heartbeat", "active_hours_end", end


def _openai() -> Iterator[Answer]:
    """Ask for the model, and the address of a server that is not OpenAI's but speaks its
    protocol.
    """
    url = typer.prompt("Address of the service", default=OPENAI_URL).strip()
    if url != OPENAI_URL:
        yield "provider", "base_url", url
    yield "provider", "model", typer.prompt("Model").strip()


def _ask(question: str, default: str, known: set[str] | tuple[str, ...]) -> str:
    while True:
        answer: str = typer.prompt(question, default=default).strip()
        if answer in known:
            return answer
        say(f"  {answer!r} is not known.")


def _hours() -> tuple[str, str]:
    """Ask for start and end of the active hours until the configuration would accept them, which is
    otherwise checked only when the daemon starts.
    """
    while True:
        start = _time("Active from (HH:MM)", _START)
        if start == "24:00":
            say('  A day begins at 00:00; "24:00" is only an end.')
            continue
        end = _time("Active until (HH:MM)", _END)
        if start != end:
            return start, end
        say("  These are equal, which could mean always or never; always is 00:00 to 24:00.")


def _time(question: str, default: str) -> str:
    while True:
        answer: str = typer.prompt(question, default=default).strip()
        hours, _, minutes = answer.partition(":")
        if hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2:
            total = int(hours) * 60 + int(minutes)
            if int(minutes) < 60 and total <= 24 * 60:
                return f"{int(hours):02}:{minutes}"
        say(f"  {answer!r} is not a time of day like 08:00.")


def _system_zone() -> str:
    name = os.environ.get("TZ", "").lstrip(":")
    if name not in available_timezones():
        name = str(_ZONE_LINK.resolve()).partition("zoneinfo/")[2]
    return name if name in available_timezones() else "UTC"
