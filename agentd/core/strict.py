"""Strict reading of JSON and text from outside, so that nothing has to be guessed or is lost later.

Beyond invalid JSON, these are refused: NaN and infinities, integers beyond 64 bits, nesting beyond
64 levels, an object with a duplicate key. Lone surrogates are no characters, and no file, column or
request can hold one: the caller decides whether to refuse (`is_unicode`) or replace (`as_unicode`)
them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 64

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(b for b in range(256) if b not in b"[]{}")
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


class Unacceptable(ValueError):
    """Valid JSON of a refused kind. The message contains nothing of what was read."""


def loads(text: str) -> Any:
    """Parse JSON text. Raises Unacceptable for what only agentd refuses, ValueError for invalid
    JSON.
    """
    _check_depth(text.encode("utf-8", "surrogatepass"))
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_int=_integer,
        parse_float=_finite_float,
        object_pairs_hook=_object,
    )


def is_unicode(value: Any) -> bool:
    """Whether no string in a JSON value, keys included, has a lone surrogate."""
    if isinstance(value, str):
        return value.isascii() or _encodes(value)
    if isinstance(value, Mapping):
        return all(is_unicode(key) and is_unicode(value[key]) for key in value)
    return not isinstance(value, list | tuple) or all(map(is_unicode, value))


def as_unicode(value: Any) -> Any:
    """Return the JSON value with U+FFFD for every lone surrogate; two that form a pair become its
    character.
    """
    if isinstance(value, str):
        return value if is_unicode(value) else _units(value).decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {as_unicode(key): as_unicode(item) for key, item in value.items()}
    return [as_unicode(item) for item in value] if isinstance(value, list | tuple) else value


def join_pieces(pieces: list[str]) -> str:
    """Join the pieces; a surrogate pair that was cut between two pieces becomes a character
    again.
    """
    text = "".join(pieces)
    return text if is_unicode(text) else _units(text).decode("utf-16-le", "surrogatepass")


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_depth(line: bytes) -> None:
    """Refuse deep nesting before the parser recurses into it.

    Each pass removes the innermost pairs of brackets, that is one level; a Python loop over the
    characters would hold up the event loop for a large text.
    """
    brackets = _STRINGS.sub(b"", line).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        msg = f"not JSON, or nested deeper than {MAX_DEPTH} levels"
        raise Unacceptable(msg)


def _refuse(constant: str) -> Any:
    msg = f"{constant} is not JSON"
    raise Unacceptable(msg)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate keys, because two programs could read different objects from the same
    text.
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        msg = "an object names a key twice"
        raise Unacceptable(msg)
    return value


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**63:
        msg = "an integer does not fit 64 bits"
        raise Unacceptable(msg)
    return value


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        msg = "a number is out of range"
        raise Unacceptable(msg)
    return value
