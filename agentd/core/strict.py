"""JSON and text from outside, read so strictly that nothing has to be guessed or lost later.

Refused besides what JSON refuses: NaN and infinities, integers beyond 64 bits, nesting beyond 64
levels, an object that names a key twice. Halves of surrogate pairs are no characters: no file, column or
request can hold one. Whether they are refused or replaced is for the reader to say.
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
    """JSON of a kind that is not taken. Its words hold nothing of what was read."""


def loads(text: str) -> Any:
    """The value. Raises Unacceptable for what only we refuse, ValueError for what is no JSON."""
    _check_depth(text.encode("utf-8", "surrogatepass"))
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_int=_integer,
        parse_float=_finite_float,
        object_pairs_hook=_object,
    )


def is_unicode(value: Any) -> bool:
    """Whether no string in a JSON value, keys included, holds half of a surrogate pair."""
    if isinstance(value, str):
        return value.isascii() or _encodes(value)
    if isinstance(value, Mapping):
        return all(is_unicode(key) and is_unicode(value[key]) for key in value)
    return not isinstance(value, list | tuple) or all(map(is_unicode, value))


def as_unicode(value: Any) -> Any:
    """The JSON value with U+FFFD for every half of a surrogate pair; two that follow each other and are
    one become the character.
    """
    if isinstance(value, str):
        return value if is_unicode(value) else _units(value).decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {as_unicode(key): as_unicode(item) for key, item in value.items()}
    return [as_unicode(item) for item in value] if isinstance(value, list | tuple) else value


def joined(pieces: list[str]) -> str:
    """The pieces as one text; a pair that was cut between two of them is a character again."""
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

    Removing the innermost pairs once takes away one level; a loop over the characters in Python
    would hold up everything else for a large text.
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
    """Two programs that read the same object must not see different ones."""
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
