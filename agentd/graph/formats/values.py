"""Confidences, times and hashes as the words of a line, and back; short names of hashes that are unique
within one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

from agentd.domain.concept import SIZE, Digest
from agentd.errors import GraphError
from agentd.graph.formats.cursor import CURE, Cursor, Word
from agentd.graph.hashing import stamp

_NUMBER = re.compile(r"[0-9](?:\.[0-9]{1,24})?(?:e-[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_WHOLE = re.compile(rf"[0-9a-f]{{{2 * SIZE}}}")
_Kind = TypeVar("_Kind", bound=Digest)

LEAST_DIGITS = 8  # of a short name


def confidence_word(confidence: float) -> str:
    """The shortest number that reads as the same: `0.98`, `1`. Raises GraphError outside [0, 1]."""
    if not 0 <= confidence <= 1:
        raise GraphError(f"the confidence {confidence} is not between 0 and 1", cure=CURE)
    return repr(abs(float(confidence))).removesuffix(".0")


def read_confidence(word: Word, cursor: Cursor) -> float:
    """The number. Raises GraphError for anything but one in [0, 1]."""
    if _NUMBER.fullmatch(word.text) and (value := float(word.text)) <= 1:
        return value
    raise cursor.fault(f"{word.text[:20]!r} is no confidence between 0 and 1", word.column)


def time_word(at: datetime) -> str:
    """The time in UTC. Raises GraphError for a time without a zone, and for one without a year in UTC."""
    try:
        return stamp(at)
    except OverflowError:
        raise GraphError(f"the time {at.isoformat()} is none in UTC", cure=CURE) from None


def read_time(word: Word, cursor: Cursor) -> datetime:
    """The time, in UTC. Raises GraphError for anything but `time_word` writes."""
    if _TIME.fullmatch(word.text):
        try:
            return datetime.fromisoformat(word.text.removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            pass
    raise cursor.fault(f"{word.text[:40]!r} is no time such as 2026-02-18T09:30:00Z", word.column)


def read_whole(word: Word, kind: type[_Kind], cursor: Cursor) -> _Kind:
    """The hash with all its digits. Raises GraphError for anything else."""
    if not _WHOLE.fullmatch(word.text):
        raise cursor.fault(
            f"{word.text[:20]!r} is no hash of {2 * SIZE} hexadecimal digits", word.column
        )
    return kind.from_hex(word.text)


def names(hashes: Sequence[_Kind]) -> Mapping[_Kind, str]:
    """A name for each, in their order: as many of its hexadecimal digits as no other of these begins with,
    at least eight.
    """
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}
