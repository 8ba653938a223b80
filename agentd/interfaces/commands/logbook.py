"""The log file as it is read again: the newest lines, those before them, and those to come.

A place in the log is a file's inode and an offset, which stay good when the file is rotated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LEVELS = ("debug", "info", "warning", "error", "critical")
_LONGEST_PAGE = 400_000  # bytes of lines in one answer


class Logbook:
    """The log file and what was rotated away from it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def page(self, wanted: WantedLines, limit: int, before: str | None = None) -> LogPage:
        """The newest `limit` records, or those before a place. Blocks. Raises OSError."""
        found: list[dict[str, Any]] = []
        size, after, place = 0, "", None
        for inode, data in self._backwards(before):
            after = after or f"{inode}:{len(data)}"
            end = len(data)
            while end > 0:
                start = data.rfind(b"\n", 0, end - 1) + 1
                record = parse(data[start : end - 1])
                if wanted.takes(record):
                    if len(found) == limit or (found and size + end - start > _LONGEST_PAGE):
                        return LogPage(tuple(reversed(found)), place, after)
                    found.append(record)
                    size += end - start
                    place = f"{inode}:{start}"
                end = start
        return LogPage(tuple(reversed(found)), None, after)

    def since(self, place: str, wanted: WantedLines) -> LogPage:
        """What was logged behind a place, at most about one page of it. Blocks. Raises OSError."""
        found: list[dict[str, Any]] = []
        size = 0
        for inode, data, start in self._forwards(place):
            at = start
            for line in data.splitlines(keepends=True):
                if size > _LONGEST_PAGE:
                    return LogPage(tuple(found), None, f"{inode}:{at}")
                at += len(line)
                record = parse(line)
                if wanted.takes(record):
                    size += len(line)
                    found.append(record)
            place = f"{inode}:{at}"
        return LogPage(tuple(found), None, place)

    def _backwards(self, before: str | None) -> Iterator[tuple[int, bytes]]:
        """The files from the newest on, each cut behind its last whole line, or at the place."""
        inode, offset = _place(before)
        for path in self._files():
            found, data = _whole_lines(path)
            if before is None:
                yield found, data
            elif found == inode:
                before = None
                yield found, data[:offset]

    def _forwards(self, place: str) -> Iterator[tuple[int, bytes, int]]:
        """The file of the place from there on, then the newer ones; all, if it is gone."""
        inode, offset = _place(place)
        newer: list[tuple[int, bytes, int]] = []
        for path in self._files():
            is_it = path.stat().st_ino == inode
            start = offset if is_it else 0
            newer.append((*_whole_lines(path, start), start))
            if is_it:
                break
        yield from reversed(newer)

    def _files(self) -> Sequence[Path]:
        """The files that there are, the newest first."""
        rotated = [
            (int(number), path)
            for path in self._file.parent.glob(f"{self._file.name}.*")
            if (number := path.name.removeprefix(f"{self._file.name}.")).isdecimal()
        ]
        return [p for p in (self._file, *(path for _, path in sorted(rotated))) if p.exists()]


@dataclass(frozen=True, slots=True)
class WantedLines:
    """Which records: those of a session, a turn, an origin, and from a level on; "" and 0 are all."""

    session: str = ""
    turn: int = 0
    origin: str = ""
    level: str = ""

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Whether the record is among them."""
        if self.level and _rank(record.get("level")) < _rank(self.level):
            return False
        asked = (("session", self.session), ("turn", self.turn), ("origin", self.origin))
        return all(not value or record.get(name) == value for name, value in asked)


@dataclass(frozen=True, slots=True)
class LogPage:
    """Records, oldest first, and the place to read on from: before them, or behind them."""

    records: tuple[dict[str, Any], ...]
    before: str | None  # None: nothing older is left
    after: str


def parse(line: bytes | str) -> dict[str, Any]:
    """The record of a line; what is no record becomes one with the line as its event."""
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if isinstance(record, dict):
        return record
    return {"event": line.decode(errors="replace") if isinstance(line, bytes) else line}


def _place(text: str | None) -> tuple[int, int]:
    inode, _, offset = (text or "").partition(":")
    return (int(inode), int(offset)) if inode.isdecimal() and offset.isdecimal() else (0, 0)


def _whole_lines(path: Path, start: int = 0) -> tuple[int, bytes]:
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
        return os.fstat(file.fileno()).st_ino, data[: data.rfind(b"\n") + 1]


def _rank(level: Any) -> int:
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("info")
