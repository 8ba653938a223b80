"""One key set in the text of a configuration; comments, order and all else stay."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import tomli
import tomlkit
from tomlkit.exceptions import TOMLKitError

from agentd.app.config import key_lines, plain, toml
from agentd.core.errors import ConfigError, InvalidRequest

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def meant(text: str) -> tuple[Any, ...]:
    """What a value on a command line may mean, the likeliest first: as TOML has it, and as plain text."""
    try:
        value = tomli.loads(f"value = {text}")["value"]
    except tomli.TOMLDecodeError:
        return (text,)
    return (value,) if isinstance(value, str) else (value, text)


def with_key(text: str, key: Sequence[str], value: Any) -> str:
    """The text of a TOML file with the key set; tables that are missing are made. Raises ConfigError for a
    text that is no TOML, InvalidRequest where a table of the key is a value.
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
    """The ways to write it, the one that is kindest to comments first: a key that is there in its place, a
    new one right below the head of its table, a new table at the end.
    """
    replaced = _replaced(text, key, value)
    if replaced is not None:
        yield replaced
    head = f"[{'.'.join(map(_spelled, key[:-1]))}]"
    setting = f"{_spelled(key[-1])} = {toml(plain(value))}"
    lines = text.splitlines()
    at = key_lines(text).get(tuple(key[:-1]), 0)
    if at and lines[at - 1].lstrip().startswith("["):
        yield "\n".join([*lines[:at], setting, *lines[at:], ""])
    yield "\n".join([*lines, *([""] if lines else []), head, setting, ""])


def _replaced(text: str, key: Sequence[str], value: Any) -> str | None:
    """The text with the value of a key that is there, or put where its table is no table of its own; None
    where tomlkit does not take it.
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


def _spelled(name: str) -> str:
    return name if _BARE.fullmatch(name) else tomlkit.string(name).as_string()
