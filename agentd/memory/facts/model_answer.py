"""Extracts the JSON objects of a model's answer. Pure.

The answer should be a JSON array of objects. Whatever it is, every readable object in it is read by
itself: a damaged or truncated object affects no other, and nothing raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PATIENCE = 1_000_000  # budget for failed parses: characters scanned, plus 100 for each try
_MOST_TEXT = 1_000_000  # characters of an answer that are read
_LONGEST = 16_000  # characters of one object
_DEEPEST = 8

_SIGN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_OBJECT_OR_EMPTY = re.compile(r"\{|\[\s*\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
_CURLY = str.maketrans(dict.fromkeys("“”„‟＂", '"'))


def is_list(answer: str) -> bool:
    """Whether the answer contains an object, readable or not, or an empty list; mere words are no
    answer.
    """
    return _OBJECT_OR_EMPTY.search(answer, 0, _MOST_TEXT) is not None


def objects(answer: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of the answer, also those nested in lists and objects."""
    text = answer[:_MOST_TEXT]
    at, patience = 0, _PATIENCE
    while patience > 0 and (start := text.find("{", at)) >= 0:
        end, is_whole = _end(text, start)
        data = _load(text[start:end]) if is_whole else None
        if data is None:
            at = start + 1  # a nested object may be readable
            patience -= end - start + 100
        else:
            yield from _inner(data)
            at = end


def line(value: Any, most: int) -> str:
    """Return a string as one line; "" if it is no string or longer than `most` characters."""
    if not isinstance(value, str) or len(value) > most:
        return ""
    return " ".join(_SURROGATE.sub("", value).split())


def number(value: Any) -> int | None:
    """Return an integer, also one written as text or alone in a list; None for anything else."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    found = re.search(r"\d{1,6}", value) if isinstance(value, str) else None
    return int(found[0]) if found else None


def _end(text: str, start: int) -> tuple[int, bool]:
    """Return the end of the object that begins at `start`, and True; else how far it was scanned,
    and False.
    """
    depth, quoted, end = 0, False, start
    for match in _SIGN.finditer(text, start, start + _LONGEST):
        sign, end = match[0], match.end()
        if sign == '"':
            quoted = not quoted
        elif quoted or sign[0] == "\\":
            continue
        elif sign in "{[":
            depth += 1
            if depth > _DEEPEST:
                break
        else:
            depth -= 1
            if depth == 0:
                return end, True
    return end, False


def _load(text: str) -> dict[str, Any] | None:
    """Parse an object, correcting the usual mistakes; None if it cannot be read."""
    for spelling in _spellings(text):
        try:
            data = json.loads(spelling, strict=False)
        except ValueError:
            continue
        return data if isinstance(data, dict) else None
    return None


def _spellings(text: str) -> Iterator[str]:
    yield text
    tidy = _TRAILING.sub(r"\1", text)
    yield tidy
    yield _TRAILING.sub(r"\1", text.translate(_CURLY))
    if '"' not in text:
        yield tidy.replace("'", '"')


def _inner(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the object itself, or the objects in it if it is only a container."""
    if _says_something(data):
        yield data
        return
    held = [value for value in data.values() if isinstance(value, list)]
    nested = [item for value in held for item in value if isinstance(item, dict)]
    inner = [value for value in data.values() if isinstance(value, dict)]
    if inner and len(inner) + len(held) == len(data):
        nested += inner
    if not nested:
        yield data
    for item in nested:
        yield from _inner(item)


def _says_something(data: dict[str, Any]) -> bool:
    """Whether the object is an item itself, even if it contains other objects."""
    if any(isinstance(data.get(name), str) for name in ("content", "span")):
        return True
    return isinstance(data.get("op"), str) and ("ids" in data or "id" in data)
