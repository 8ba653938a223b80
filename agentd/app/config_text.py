"""Converts settings to plain values and TOML, and finds the lines of keys in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic.fields import FieldInfo

from agentd.core.settings import Settings, TimeOfDay
from agentd.core.times import format_duration, format_time

Key = tuple[str, ...]
_HEADER_LINE = re.compile(r"\s*+\[\[?([^\[\]]++)\]")
_KEY_LINE = re.compile(r"\s*+([A-Za-z0-9_\"'-]++(?:\s*+\.\s*+[A-Za-z0-9_\"'-]++)*+)\s*+=")


def plain(value: Any, field: FieldInfo | None = None) -> Any:
    """Return the value as JSON has it: durations and times of day become text, as in the file."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, int) and field is not None and is_time(field):
        return format_time(value)
    if isinstance(value, Settings):
        fields = type(value).model_fields.items()
        found = {name: plain(getattr(value, name), inner) for name, inner in fields}
        return {name: inner for name, inner in found.items() if inner is not None}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def toml(value: Any) -> str:
    """Return a plain value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    if isinstance(value, str) and "\n" in value:
        inner = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        return f'"""\n{inner}"""'
    return json.dumps(value, ensure_ascii=False)


def key_lines(text: str) -> dict[Key, int]:
    """Return the line number of each table and key. Made for error messages: it does not understand
    all of TOML.
    """
    found: dict[Key, int] = {}
    table: Key = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if fence:
            fence = "" if line.count(fence) % 2 else fence
            continue
        fence = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        if header := _HEADER_LINE.match(line):
            table = _dotted(header[1])
            found.setdefault(table, number)
        elif match := _KEY_LINE.match(line):
            found.setdefault((*table, *_dotted(match[1])), number)
    return found


def is_time(field: FieldInfo) -> bool:
    """Whether the setting is a time of day."""
    marker = TimeOfDay.__metadata__[0]  # type: ignore[attr-defined]  # Annotated has it at run time
    return marker in field.metadata or marker in getattr(
        next(iter(getattr(field.annotation, "__args__", ())), None), "__metadata__", ()
    )


def _dotted(text: str) -> Key:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
