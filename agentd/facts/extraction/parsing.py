"""A model's answer as candidates for facts. Pure.

The answer should be a JSON array of objects. Whatever else it is, every object in it that can be read
is read by itself: one that is damaged or cut off loses none of the others, and nothing ever raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agentd.domain.fact import Category, Triple

MOST = 100  # objects that are taken from one answer
_PATIENCE = 1_000_000  # characters that are looked at in vain, 100 more for each try
_MOST_OBJECTS = 10_000  # that are looked at
_MOST_TEXT = 1_000_000  # characters of an answer that are looked at
_LONGEST = 16_000  # characters of one object
_DEEPEST = 8
_MOST_CONTENT = 1_000  # characters: a fact is a sentence
_MOST_PART = 200  # characters of a subject, a relation or a value

_SIGN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_CURLY = str.maketrans(dict.fromkeys("“”„‟＂", '"'))
_NUMBER = re.compile(r"\s*(?:message|msg)?\s*#?(\d{1,6})(?:\.0)?\s*", re.IGNORECASE)
_CITES_NOTHING = -1

_CONTENT = ("content", "fact", "text", "statement")
_VALUE = ("value", "object")
_RELATION = ("relation", "predicate")
_NAMES = {
    other: category
    for category, others in {
        Category.PERSONAL: "person biographical biography identity relationship relationships family"
        " health contact location personal_info personal_information",
        Category.PREFERENCE: "preferences like likes dislike dislikes taste opinion",
        Category.PROJECT: "projects work task tasks goal goals plan plans technical",
        Category.DECISION: "decisions choice choices",
        Category.INSTRUCTION: "instructions rule rules command directive",
        Category.OUTCOME: "outcomes result results event events",
    }.items()
    for other in others.split()
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the model calls a fact. `message` is the number of the message that it cites; None if it
    cites none, a number that no message has if that cannot be read.
    """

    content: str
    category: Category
    message: int | None = None
    triple: Triple | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """The candidates in order, and how many objects were no facts."""

    candidates: tuple[Candidate, ...]
    dropped: int = 0


def parse(answer: str) -> Parsed:
    """All candidates that can be read from the answer, `MOST` at most."""
    found: list[Candidate] = []
    dropped = 0
    for data in islice(_objects(answer[:_MOST_TEXT]), _MOST_OBJECTS):
        candidate = _candidate(data)
        if candidate is None or len(found) == MOST:
            dropped += 1
        else:
            found.append(candidate)
    return Parsed(tuple(found), dropped)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The objects of the text, those within readable lists and objects one by one."""
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


def _inner(data: Any) -> Iterator[dict[str, Any]]:
    """The object itself, or those in it if it only holds others."""
    if isinstance(data, list):
        for item in data:
            yield from _inner(item)
    elif isinstance(data, dict):
        held = [value for value in data.values() if isinstance(value, (list, dict))]
        nested = [found for value in held for found in _inner(value)]
        if any(name in data for name in _CONTENT) or not nested:
            yield data
        else:
            yield from nested


def _candidate(data: dict[str, Any]) -> Candidate | None:
    content = _text(_first(data, _CONTENT), _MOST_CONTENT)
    category = _category(data.get("category"))
    if not content or category is None:
        return None
    return Candidate(content, category, _message(data.get("message")), _triple(data))


def _category(value: Any) -> Category | None:
    if not isinstance(value, str):
        return None
    name = value.strip().casefold().replace(" ", "_")
    return Category(name) if name in set(Category) else _NAMES.get(name)


def _message(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    match = _NUMBER.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    return int(match[1]) if match else _CITES_NOTHING


def _triple(data: dict[str, Any]) -> Triple | None:
    told = data.get("triple")
    if isinstance(told, dict):
        data = told
    if isinstance(told, list):
        parts = [_text(part, _MOST_PART) for part in told]
    else:
        names = (("subject",), _RELATION, _VALUE)
        parts = [_text(_first(data, name), _MOST_PART) for name in names]
    return Triple(*parts) if len(parts) == 3 and all(parts) else None


def _first(data: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((data[name] for name in names if name in data), None)


def _text(value: Any, most: int) -> str:
    """The words in one line; "" for what is no text or too long."""
    if not isinstance(value, str) or len(value) > most:
        return ""
    return " ".join(_SURROGATE.sub("", value).split())
