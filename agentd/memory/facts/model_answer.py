"""The objects in a model's answer. Pure.

The answer should be a JSON array of objects. Whatever else it is, every object in it that can be
read is read by itself: one that is damaged or cut off loses none of the others, and nothing ever
raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PATIENCE = 1_000_000  # characters that are looked at in vain, 100 more for each try
_MOST_TEXT = 1_000_000  # characters of an answer that are looked at
_LONGEST = 16_000  # characters of one object
_DEEPEST = 8

_SIGN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_OBJECT_OR_EMPTY = re.compile(r"\{|\[\s*\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
_CURLY = str.maketrans(dict.fromkeys("“”„‟＂", '"'))


def is_list(answer: str) -> bool:
    """Whether the answer holds objects, readable or not, or an empty list: words alone answer nothing."""
    return _OBJECT_OR_EMPTY.search(answer, 0, _MOST_TEXT) is not None


def objects(answer: str) -> Iterator[dict[str, Any]]:
    """The objects of the answer, those within readable lists and objects one by one."""
    text = answer[:_MOST_TEXT]
    at, patience = 0, _PATIENCE
    while patience > 0 and (start := text.find("{", at)) >= 0:
        end, is_whole = _end(text, start)
        data = _load(text[start:end]) if is_whole else None
        if data is None:
            at = start + 1  # what is inside may be readable
            patience -= end - start + 100
        else:
            yield from _inner(data)
            at = end


def line(value: Any, most: int) -> str:
    """The words of a value in one line; "" for what is no text or has more than `most` characters."""
    if not isinstance(value, str) or len(value) > most:
        return ""
    return " ".join(_SURROGATE.sub("", value).split())


def number(value: Any) -> int | None:
    """A whole number, also one that is written as text or alone in a list; None for anything else."""
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
    """Where the object that begins at `start` ends, and True; or how far it was looked for."""
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
    """The object, after the usual slips are put right; None if it cannot be read."""
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
    """The object itself, or those in it if it only holds others: then it says nothing by itself."""
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
    """Whether the object is meant, whatever objects it holds besides."""
    if any(isinstance(data.get(name), str) for name in ("content", "span")):
        return True
    return isinstance(data.get("op"), str) and ("ids" in data or "id" in data)
