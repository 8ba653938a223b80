"""The frame of a text: a header in its first line, the hash of all lines above in its last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

from agentd.core.errors import GraphError
from agentd.zero.formats.cursor import CURE, Cursor

HEADER = "0M:1.0"
MOST_CHARS = 64 * 1024 * 1024  # of a text; one person's graph has less

_SEAL = re.compile(r"H:([0-9a-f]{64})")
_VERSION = re.compile(r"0M:[0-9]{1,4}\.[0-9]{1,4}")
_CUT = "it was cut off or changed: have it sent again"


def decode_text(data: bytes) -> str:
    """Decode bytes from outside, without a byte order mark. Raises GraphError, with line and
    column, if they are no UTF-8.
    """
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode()) + 1
        msg = "the bytes here are no UTF-8"
        raise GraphError(msg, cure=_CUT, line=line, column=column) from None


def seal_lines(lines: Iterable[str]) -> str:
    """Return the lines as a text with a seal as its last line: the sha256 of their UTF-8, with a
    line feed after each line.
    """
    body = plain(lines)
    return f"{body}H:{sha256(body.encode()).hexdigest()}\n"


def plain(lines: Iterable[str]) -> str:
    """Join the lines, with a line feed after each."""
    return "".join(f"{line}\n" for line in lines)


def open_text(text: str, *, is_sealed: bool) -> Sequence[Cursor]:
    """Return cursors on the lines between header and seal, without blank lines and those that begin
    with `#`. Line ends may be CR LF.

    Raises GraphError, with line and column, for a missing or unknown header, a wrong seal or, if
    `is_sealed`, none, a lone surrogate, and a text longer than MOST_CHARS.
    """
    if len(text) > MOST_CHARS:
        raise _fault(1, f"the text has {len(text)} characters, more than {MOST_CHARS}")
    _check_characters(text)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    _check_header(lines[0] if lines else "")
    if lines[-1].startswith("H:"):
        _check_seal(lines)
        lines.pop()
    elif is_sealed:
        raise _fault(len(lines), "the text has no last line H: with its hash", _CUT)
    numbered = enumerate(lines[1:], start=2)
    return [Cursor(number, line) for number, line in numbered if line and line[0] != "#"]


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        above = text.count("\n", 0, error.start)
        column = error.start - text.rfind("\n", 0, error.start)
        msg = "half a character stands here"
        raise _fault(above + 1, msg, _CUT, column=column) from None


def _check_header(line: str) -> None:
    if line == HEADER:
        return
    if _VERSION.fullmatch(line):
        cure = "bring this agentd up to date, or have the text written for it"
        raise _fault(1, f"version {line[3:]} is not known here, only {HEADER[3:]}", cure)
    raise _fault(1, f"a graph's text begins with {HEADER}, not with {line[:20]!r}")


def _check_seal(lines: Sequence[str]) -> None:
    found = _SEAL.fullmatch(lines[-1])
    if found is None:
        raise _fault(len(lines), "H: needs 64 hexadecimal digits", _CUT, column=3)
    if sha256(plain(lines[:-1]).encode()).hexdigest() != found[1]:
        raise _fault(len(lines), "the hash is not that of the lines above", _CUT, column=3)


def _fault(line: int, why: str, cure: str = CURE, *, column: int = 1) -> GraphError:
    return GraphError(why, cure=cure, line=line, column=column)
