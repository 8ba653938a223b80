"""Describes the mistakes of a configuration in the terms of its file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from agentd.app.config_text import Key, is_time, plain, toml
from agentd.core.errors import ConfigError
from agentd.core.redaction import holds_secret, redact

_HOLE = re.compile(r"\{[a-z0-9_]+\}")  # placeholder in an address for a secret kept elsewhere
_INSTEAD = (
    "put it into an environment variable, a systemd credential or a file that only you can read, "
    "and name that place here (keys like api_key_env)"
)
_KINDS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false, without quotation marks"),
    int: ((int,), "a whole number like 10, without quotation marks"),
    float: ((int, float), "a number like 0.5, without quotation marks"),
}


class UnknownKey(ConfigError):
    """All mistakes of the configuration are names that agentd does not know."""


class KeyMistake(ValueError):
    """What is wrong with one key, found by a check of the whole configuration."""

    def __init__(self, key: Key, text: str) -> None:
        super().__init__(text)
        self.key = key


def described(
    detail: ErrorDetails, data: Any, known: Collection[Key], hushed: Collection[str] = ()
) -> tuple[Key, str]:
    """Return the key of a validation error, and what is wrong there. `known` are all valid keys,
    `hushed` the names of the keys whose values may be secrets and are not repeated.
    """
    key: Key = ()
    for part in detail["loc"]:
        if isinstance(data, dict):
            key, data = (*key, str(part)), data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            break
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, KeyMistake):
        key = (*key, *cause.key)
    if detail["type"] == "extra_forbidden":
        return key, _unknown(key, known, is_table=isinstance(data, dict))
    if detail["type"] in ("model_type", "model_attributes_type"):
        return key, "is a table, not a single value"
    text = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "tuple_type":
        text = 'has to be a list, like ["one", "two"]'
    is_told = detail["type"] in ("value_error", "missing") or isinstance(data, dict)
    given = (
        "a value that is not shown here, since it may be secret"
        if not set(hushed).isdisjoint(key)
        else repr(data)
    )
    return key, redact(text if is_told else f"{text[:1].lower()}{text[1:]}, got {given}")


def mistyped(model: type[BaseModel], data: Any, key: Key = ()) -> Iterator[tuple[Key, str]]:
    """Yield the keys whose values have another TOML type than their settings, although pydantic
    could convert them, and what is wrong. `"yes"` is a text and not a boolean; in the environment
    every value is a text.
    """
    for name, field in model.model_fields.items() if isinstance(data, dict) else ():
        if name not in data:
            continue
        if not is_time(field):
            yield from _mistyped(field.annotation, data[name], (*key, name))
        elif type(data[name]) is not str:  # a number would be taken for minutes
            yield (*key, name), 'has to be a time of day in quotation marks, like "08:00"'


def _mistyped(kind: Any, value: Any, key: Key) -> Iterator[tuple[Key, str]]:
    inner = [one for one in get_args(kind) if one not in (type(None), ...)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from mistyped(kind, value, key)
    elif get_origin(kind) is tuple and isinstance(value, list):
        for one in value:
            yield from _mistyped(inner[0], one, key)
    elif get_origin(kind) is dict and isinstance(value, dict):
        for name, one in value.items():
            yield from _mistyped(inner[1], one, (*key, str(name)))
    elif get_origin(kind) in (UnionType, Union) and len(inner) == 1:
        yield from _mistyped(inner[0], value, key)
    elif kind in _KINDS:
        taken, wanted = _KINDS[kind]
        if type(value) not in taken:
            yield key, redact(f"has to be {wanted}, got {toml(plain(value))}")


def pasted_secrets(data: Mapping[str, Any]) -> dict[Key, str]:
    """Return what to do about each value that looks like a secret, by key."""
    return dict.fromkeys(_secrets(data), f"holds a secret; {_INSTEAD}")


def refusal(
    path: Path,
    marks: Mapping[Key, str],
    mistakes: Mapping[Key, str],
    unknown: Collection[Key] = (),
) -> ConfigError:
    """Return the error that names every mistake, in the order of the file's lines; an UnknownKey if
    all of them are `unknown` names. `marks` has the places of keys: `line 3` of the file, or
    `$NAME` for an environment variable.
    """
    lines, places = [], set[str]()
    found = [(_mark_of(key, marks), key, text) for key, text in mistakes.items()]
    for mark, key, text in sorted(found, key=lambda one: (_line_of(one[0]), one[1])):
        told = " ".join(filter(None, (".".join(key), text)))
        lines.append(f"{mark + ': ' if mark else ''}{told}")
        places |= {mark} | _set_in(key, marks)
    variables = sorted(place for place in places if place.startswith("$"))
    is_file = not variables or any(place.startswith("line") for place in places)
    count = "a mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    where = [str(path)] * is_file + ["the environment"] * bool(variables)
    head = f"{' and '.join(where)} {'have' if len(where) > 1 else 'has'} {count}:"
    wrong = " and ".join(["the file"] * is_file + variables)
    kind = UnknownKey if set(mistakes) <= set(unknown) else ConfigError
    return kind(
        "\n  ".join([head, *lines]), cure=f"correct {wrong}; config.example.toml lists every key"
    )


def _mark_of(key: Key, marks: Mapping[Key, str]) -> str:
    ends = range(len(key), 0, -1)
    return next((marks[key[:end]] for end in ends if key[:end] in marks), "")


def _line_of(mark: str) -> int:
    """Return the line that a mark names; 0 for what is in no line of the file."""
    return int(mark.removeprefix("line ")) if mark.startswith("line ") else 0


def _set_in(table: Key, marks: Mapping[Key, str]) -> set[str]:
    """Return the places of the table's keys, since any of them may cause a mistake of the whole
    table. For the root table these are the lines of the file, if any key is in the file.
    """
    below = {at for key, at in marks.items() if key[: len(table)] == table}
    lines = {at for at in below if not at.startswith("$")}
    return below if table else lines or below


def _unknown(key: Key, known: Collection[Key], *, is_table: bool) -> str:
    if is_table:
        known = {one[: len(key)] for one in known if len(one) > len(key)}
    found = next(iter(similar_keys(key, [name for name in known if name != key])), ())
    hint = ""
    if found and found[:-1] == key[:-1]:
        hint = f"; did you mean {found[-1]!r}?"
    elif found:
        table = f"[{'.'.join(found[:-1])}]"
        is_same = found[-1] == key[-1]
        hint = f"; it belongs to {table}" if is_same else f"; did you mean {table} {found[-1]}?"
    elif re.search("key|token|secret|password", key[-1]):
        hint = f"; if it is a secret, {_INSTEAD}"
    return f"is no {'table' if is_table else 'key'} that agentd knows{hint}"


def similar_keys(key: Key, known: Collection[Key]) -> list[Key]:
    """Return the known keys that `key` may stand for, the likeliest first: those whose table and
    name contain every word of `key`, then those of the same name in any table; if there are none, a
    similar name in the same table. Empty if nothing is similar.
    """
    wanted = set("_".join(key).split("_"))
    whole = [one for one in known if wanted <= set("_".join(one).split("_"))]
    found = [*sorted(whole, key=len), *(one for one in known if one[-1] == key[-1])]
    if found:
        return list(dict.fromkeys(found))
    siblings = [one[-1] for one in known if one[:-1] == key[:-1]]
    return [(*key[:-1], one) for one in difflib.get_close_matches(key[-1], siblings, n=1)]


def _secrets(value: Any, key: Key = ()) -> Iterator[Key]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _secrets(inner, (*key, name))
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, key)
    elif isinstance(value, str) and holds_secret(_HOLE.sub("", value)):
        yield key
