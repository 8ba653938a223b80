"""Frames between the daemon and its embedder process: a length, a JSON head, and vectors as bytes.

A frame is four bytes of length (little-endian), then that many bytes: one line of JSON, a line
break and, in answers, the vectors as float32. Both sides check everything they read.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from msgspec import Struct, field

LENGTH = struct.Struct("<I")
LONGEST = 64 << 20  # bytes of one frame


class BadFrame(ValueError):
    """The bytes received are not a frame."""


class Frame(Struct, frozen=True):
    """One message, in either direction."""

    head: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


def pack(frame: Frame) -> bytes:
    """Return the bytes to send. Lone surrogates, which no model knows, become question marks."""
    text = json.dumps(frame.head, ensure_ascii=False, separators=(",", ":"))
    content = text.encode("utf-8", "replace") + b"\n" + frame.body
    return LENGTH.pack(len(content)) + content


def size(prefix: bytes) -> int:
    """Return how many bytes follow the prefix. Raises BadFrame if the number is not within 1 to
    LONGEST.
    """
    (length,) = LENGTH.unpack(prefix)
    if not 0 < length <= LONGEST:
        raise BadFrame(f"a frame of {length} bytes")
    return int(length)


def unpack(content: bytes) -> Frame:
    """Parse a frame's bytes after the length. Raises BadFrame."""
    line, gap, body = content.partition(b"\n")
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        raise BadFrame("a head that is no JSON") from None
    if not gap or not isinstance(head, dict):
        raise BadFrame("a head that is no object")
    return Frame(head, body)
