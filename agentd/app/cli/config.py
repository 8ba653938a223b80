"""`agentd config`: whether the configuration is right, what is in force, and one key of it
changed.
"""

from __future__ import annotations

import asyncio
import copy
import os
import re
import shlex
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Annotated, Any

import tomli
import tomlkit
import typer
from tomlkit.exceptions import TOMLKitError

from agentd.app.assembly.alerting import build_targets
from agentd.app.assembly.model import load_checked
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.trial import try_opening
from agentd.app.assembly.window import is_surely_enough
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.report import AsJson, ConfigFile, ConfigPath, reporting, show
from agentd.app.config import (
    Config,
    LoadedConfig,
    describe,
    read,
    read_text,
    text_of,
    values,
)
from agentd.app.config_absent import absent
from agentd.app.config_mistakes import UnknownKey, similar_keys
from agentd.app.config_text import key_lines, plain, toml
from agentd.app.reload import is_live
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError, ConfigError, InvalidRequest
from agentd.core.health import Finding
from agentd.core.paths import DaemonPaths, cure_of, daemon_places, ensure_private_dir, write_private
from agentd.core.redaction import Redactor
from agentd.engine.budget import Budget
from agentd.interfaces.commands.plain import table
from agentd.storage.ownership import configuration, owned

app = CommandGroup()

_LINE = re.compile(r"^\s*+(?:line [0-9]++: )?")
_MOST_NAMED = 4  # keys that an error names
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@app.command()
def check(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Report every mistake in the configuration at once, with exit code 78 if there is any, and
    warn of what it names and is not there.
    """
    with reporting(as_json=as_json):
        places = daemon_places(os.environ, config)
        file = places.config_file
        loose = configuration(file, os.getuid(), mend=False)
        read, there = load_checked(places, os.environ)
        owned(there.workspace, os.getuid())
        _check_window(read, places)
        _check_alerts(read)
        missing = absent(read, there, os.environ)
        exists = file.exists()
        warnings = [*([loose] if loose else []), *(f"{one.text} → {one.cure}" for one in missing)]
        result = {"ok": True, "file": str(file), "exists": exists, "warnings": warnings}
        told = (
            "ok"
            if exists
            else "there is no such file; agentd's defaults hold (`agentd init` makes it)"
        )
        lines = [f"{file}: {told}", *_advice(file, loose), *_warnings(missing)]
        show(result, lambda _: "\n".join(lines), as_json=as_json)


def _check_window(read: Config, places: DaemonPaths) -> None:
    """Raise ConfigError, as the daemon would, if the fixed prompt alone fills the context
    window.
    """
    clock = SystemClock(read.agent.timezone)
    runtime = RuntimeContext(read, places, clock, dict(os.environ), Budget(read.budget))
    if not is_surely_enough(read, runtime.limits, runtime.workspace):
        asyncio.run(try_opening(runtime))


def _check_alerts(read: Config) -> None:
    """Raise ConfigError for an alert target with a bad address or without its secret; nothing is
    sent.
    """
    read.alerts.webhook(os.environ)
    if not read.alerts.targets:
        return

    async def check() -> None:
        for sink in build_targets(read.alerts, os.environ, Redactor()):
            await sink.check()

    asyncio.run(check())


@app.command("show")
def show_(
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what differs from the defaults.")
    ] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show every key, its value in force as `config set` takes it, and where the value comes
    from.
    """
    with reporting(as_json=as_json):
        file = daemon_places(os.environ, config).config_file
        loaded = read(file, os.environ)
        usual, here = values(type(loaded.config)()), values(loaded.config)
        settings = [
            {"key": one.key, "value": one.value, "source": one.origin}
            for one in describe(loaded)
            if not changed or here[one.key] != usual[one.key]
        ]
        show({"file": str(file), "settings": settings}, _shown, as_json=as_json)


def _shown(result: dict[str, Any]) -> str:
    rows = [{**one, "value": _typed(one["value"])} for one in result["settings"]]
    return table(rows, ("key", "value", "source"), "nothing differs from the defaults")


def _typed(value: Any) -> str:
    """Return a value as `config set` takes it; "-" if the key has none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) and value else toml(value)


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(metavar="TABLE.KEY", help="Like heartbeat.interval.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As TOML, or plain text.")],
    config: ConfigPath = None,
    as_json: AsJson = False,
) -> None:
    """Set one key in the configuration; comments and all else stay, and a mistake changes
    nothing.
    """
    with reporting(as_json=as_json):
        file = daemon_places(os.environ, config).config_file
        parts = tuple(part.strip() for part in key.split("."))
        configuration(file, os.getuid(), mend=False)
        before = read(file, os.environ)
        if len(parts) < 2 or not all(parts):
            raise _no_key(key, [one.key for one in describe(before)])
        text, after = _changed(file, parts, value)
        shown = {one.key: one for one in describe(after)}
        name = next(name for name in _above(parts) if name in shown)
        is_same = values(before.config)[name] == values(after.config)[name]
        is_overruled = shown[name].origin == "environment"
        if is_overruled or not is_same:
            _write(file, text)
        result = {
            "file": str(file),
            "key": name,
            "old": {one.key: one.value for one in describe(before)}[name],
            "new": shown[name].value,
            "source": shown[name].origin,
            "changed": not is_same,
            "needs": "reload" if is_live(name) else "restart",
        }
        show(result, _set, as_json=as_json)


def _no_key(key: str, known: Sequence[str]) -> InvalidRequest:
    """Return the error for a key without its table, which names the keys that it may stand for."""
    similar = similar_keys((key,), [tuple(one.split(".")) for one in known])[:_MOST_NAMED]
    examples = [f'"{".".join(one)}"' for one in similar] or ['"heartbeat.interval"']
    return InvalidRequest(
        f"{key!r} is no key: it needs the table that it stands in",
        cure=f"name one like {' or '.join(examples)}",
    )


def _changed(file: Path, key: Sequence[str], value: str) -> tuple[str, LoadedConfig]:
    """Return the file's text with the key set to the first reading of the value that is valid, and
    the configuration that this gives. If none is, raises the ConfigError or InvalidRequest of the
    likeliest reading.
    """
    text = text_of(file)
    refused: AgentdError | None = None
    for meaning in readings_of(value):
        try:
            changed = with_key(text, key, meaning)
        except (ConfigError, InvalidRequest) as error:
            refused = refused or error
            continue
        try:
            return changed, read_text(changed, file, os.environ)
        except ConfigError as error:
            refused = refused or _unchanged_error(file, key, error)
    assert refused is not None
    raise refused


def _write(file: Path, text: str) -> None:
    """Replace the configuration's text. Raises ConfigError."""
    try:
        ensure_private_dir(file.parent)
        write_private(file.resolve(), text)
    except OSError as error:
        msg = f"{file} cannot be written: {error.strerror}"
        raise ConfigError(msg, cure=cure_of(error)) from None


def _unchanged_error(file: Path, key: Sequence[str], error: ConfigError) -> ConfigError:
    """Return the error for a change that was not made: the mistakes without line numbers, since the
    file does not have them. If they concern only other keys, the cure says to set those first.
    """
    mistakes = [_LINE.sub("", line) for line in error.message.splitlines()[1:]]
    if isinstance(error, UnknownKey):
        cure = (
            "`agentd config show` lists every key, and config.example.toml those of tables that "
            "you name, like [mcp.servers.NAME]"
        )
        return ConfigError("\n  ".join([f"{file} stays as it is:", *mistakes]), cure=cure)
    names = dict.fromkeys(line.partition(" ")[0] for line in mistakes)
    cure = "give another value; config.example.toml explains every key"
    if ".".join(key) not in names:
        first = " and ".join(f"`agentd config set {name} VALUE`" for name in names)
        cure = f"first {first}, then this again"
    return ConfigError(
        "\n  ".join([f"{file} stays as it is; the value would be a mistake:", *mistakes]), cure=cure
    )


def _above(key: Sequence[str]) -> Iterator[str]:
    """Yield the key and each table that contains it, the longest name first."""
    return (".".join(key[:end]) for end in range(len(key), 0, -1))


def _set(result: dict[str, Any]) -> str:
    key, new = result["key"], _typed(result["new"])
    if result["source"] == "environment":
        return f"{key}: a variable of the environment sets it, too, and wins: {new}"
    if not result["changed"]:
        return f"{key} is {new} already; nothing was changed"
    lines = [f"{key}: {_typed(result['old'])} → {new}"]
    return "\n".join([*lines, f"`agentd {result['needs']}` takes it into use"])


def _advice(file: Path, loose: str) -> Iterator[str]:
    if loose:
        yield (
            f"{loose}; the daemon changes that when it starts, or do it now: "
            f"{shlex.join(['chmod', 'go=', str(file)])}"
        )


def _warnings(missing: Sequence[Finding]) -> Iterator[str]:
    for one in missing:
        yield f"warning: {one.text}"
        yield f"→ {one.cure}"


def readings_of(text: str) -> tuple[Any, ...]:
    """Return what a value on the command line may mean, the likeliest first: as TOML, and as plain
    text.
    """
    try:
        value = tomli.loads(f"value = {text}")["value"]
    except tomli.TOMLDecodeError:
        return (text,)
    if isinstance(value, (date, time)):  # no setting is one: times of day stand there as text
        return (text,)
    return (value,) if isinstance(value, str) else (value, text)


def with_key(text: str, key: Sequence[str], value: Any) -> str:
    """Return a TOML text with the key set; missing tables are added. Raises ConfigError if the text
    is no TOML, InvalidRequest if a table of the key is a value.
    """
    try:
        wanted = _with(tomli.loads(text), key, value)
    except tomli.TOMLDecodeError as error:
        raise ConfigError(f"the file is no TOML: {error}", cure="correct it first") from None
    for changed in _changes(text, key, value):
        try:
            if tomli.loads(changed) == wanted:
                return changed
        except tomli.TOMLDecodeError:
            continue
    told = ".".join(key)
    raise InvalidRequest(f"{told} cannot be set beside what is there", cure="edit the file by hand")


def _with(data: dict[str, Any], key: Sequence[str], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(data)
    table: Any = data
    for depth, name in enumerate(key[:-1], start=1):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            told = ".".join(key[:depth])
            raise InvalidRequest(f"{told} is a value, no table", cure="name a key of a table")
    table[key[-1]] = value
    return data


def _changes(text: str, key: Sequence[str], value: Any) -> Iterator[str]:
    """Yield the ways to write the change, the one that keeps comments best first: an existing key
    in place, a new key below the head of its table, a new table at the end.
    """
    replaced = _replace_value(text, key, value)
    if replaced is not None:
        yield replaced
    head = f"[{'.'.join(map(_toml_key, key[:-1]))}]"
    setting = f"{_toml_key(key[-1])} = {toml(plain(value))}"
    lines = text.splitlines()
    at = key_lines(text).get(tuple(key[:-1]), 0)
    if at and lines[at - 1].lstrip().startswith("["):
        yield "\n".join([*lines[:at], setting, *lines[at:], ""])
    yield "\n".join([*lines, *([""] if lines else []), head, setting, ""])


def _replace_value(text: str, key: Sequence[str], value: Any) -> str | None:
    """Return the text with an existing key's value replaced, or the key added to an inline table;
    None if tomlkit cannot parse it.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return None
    table: Any = document
    for name in key[:-1]:
        table = table.get(name)
        if not isinstance(table, MutableMapping):
            return None
    is_inline = not isinstance(table, (tomlkit.TOMLDocument, tomlkit.items.Table))
    if key[-1] not in table and not is_inline:
        return None
    # A table that is given as a value stays on its line.
    table[key[-1]] = tomlkit.parse(f"it = {toml(plain(value))}")["it"]
    return tomlkit.dumps(document)


def _toml_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else tomlkit.string(name).as_string()
