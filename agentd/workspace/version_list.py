"""The list of a file's former versions, as it is stored: one entry for each, the oldest first.
Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.workspace import Author, Version

ABSENT = "absent"  # the blob of a version whose content is not kept
MISMADE = (ValueError, KeyError, TypeError, RecursionError)  # raised for a damaged list
_BEGINNING = re.compile(r'\{"number"')  # of an entry, as `entry_as_json` makes them
_DIGEST = re.compile(r"([0-9a-f]{64})?")


class VersionEntry(Struct, frozen=True):
    """A version and the name of the file that starts with its content. `is_done`: the change was
    made, not only announced.
    """

    version: Version
    blob: str
    is_done: bool = True


def drop_announced(log: list[VersionEntry], now: str) -> list[VersionEntry]:
    """Return the log; keep an announced change only if the file's digest `now` shows it made."""
    if not log or log[-1].is_done:
        return log
    last = log.pop()
    return [*log, replace(last, is_done=True)] if last.version.digest == now else log


def newest_within(log: list[VersionEntry], most: int) -> list[VersionEntry]:
    """Return the newest entries that together have at most `most` bytes, but at least two."""
    sizes = accumulate(entry.version.size for entry in reversed(log))
    return log[-max(2, sum(size <= most for size in sizes)) :]


def next_number(log: Sequence[VersionEntry]) -> int:
    """Return the number of the next version."""
    return log[-1].version.number + 1 if log else 1


def entry_as_json(entry: VersionEntry) -> dict[str, Any]:
    """Return the entry as the list contains it."""
    v = entry.version
    return {
        "number": v.number,
        "at": v.at.astimezone(UTC).isoformat(),
        "digest": v.digest,
        "size": v.size,
        "by": [v.by.kind, v.by.session, v.by.call, v.by.tainted, v.by.approved],
        "blob": entry.blob,
        "done": entry.is_done,
    }


def entries_in(data: bytes) -> list[VersionEntry]:
    """Return the entries of a stored list. Raises one of MISMADE if any of it is damaged."""
    rows = json.loads(data)
    if not isinstance(rows, list):
        raise TypeError(type(rows).__name__)
    return [_entry_of(row) for row in rows]


def readable_entries(data: bytes) -> list[VersionEntry]:
    """Return the entries of a damaged list that can still be read, in the order of their
    numbers.
    """
    found: dict[int, VersionEntry] = {}
    for entry in _sound(data.decode("utf-8", "replace")):
        found.setdefault(entry.version.number, entry)
    return [found[number] for number in sorted(found)]


def _sound(text: str) -> Iterator[VersionEntry]:
    decoder = json.JSONDecoder()
    for beginning in _BEGINNING.finditer(text):
        try:
            entry = _entry_of(decoder.raw_decode(text, beginning.start())[0])
            version = entry.version
            are_typed = type(version.number) is int and type(version.size) is int
            is_sound = are_typed and _DIGEST.fullmatch(version.digest) and "/" not in entry.blob
        except MISMADE:
            continue
        if is_sound:
            yield entry


def _entry_of(row: dict[str, Any]) -> VersionEntry:
    at = datetime.fromisoformat(row["at"])
    version = Version(row["number"], at, row["digest"], row["size"], Author(*row["by"]))
    return VersionEntry(version, row["blob"], row["done"])
