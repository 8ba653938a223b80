"""The ids and names of tool calls in the spelling that a service takes.

A conversation keeps them as they came: from another service, from another program's transcripts, or
from a model that made a name up. A service that refuses one of them refuses every later request of
that conversation, so they are spelled anew on the way out, always in the same way.
"""

from __future__ import annotations

import hashlib
import re

_STRICT_ID = re.compile(r"[A-Za-z0-9_-]+")
_ID = re.compile(r"[A-Za-z0-9_.:|=+-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LONGEST_ID = 40  # the shortest limit of a service


def call_id(id_: str, *, strict: bool) -> str:
    """The id, or one made from it if it is too long or not of letters, digits, `_` and `-` alone, to
    which come `.:|=+` unless `strict`. A call and its result stay a pair.
    """
    allowed = _STRICT_ID if strict else _ID
    if len(id_) <= _LONGEST_ID and allowed.fullmatch(id_):
        return id_
    return "call_" + hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def call_name(name: str) -> str:
    """The name of a tool that was called; what cannot stand in one is replaced."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def tool_name(name: str) -> str:
    """The name of a tool that may be called: of those of other programs, `SERVER__TOOL`."""
    return call_name(name.replace(".", "__", 1))
