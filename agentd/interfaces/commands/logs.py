"""`logs`: the records in the daemon's log file, by page and as they are written."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from agentd.core.errors import AgentdError
from agentd.interfaces.commands.declaration import Caller, Group, Param
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.ports import Clock
    from agentd.interfaces.commands.units import Unit

LEVELS = ("debug", "info", "warning", "error", "critical")
_LONGEST_PAGE = 400_000  # bytes of lines in one answer


class Logbook:
    """The log file and its rotated predecessors."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def page(self, wanted: WantedLines, limit: int, before: str | None = None) -> LogPage:
        """Return the newest `limit` records, or the newest before a place (`INODE:OFFSET`). Blocks.
        Raises OSError.
        """
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
        """Return the records after a place, at most about one page. Blocks. Raises OSError."""
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
        """Yield the files' inodes and contents, the newest first, each cut after its last whole
        line or at the place.
        """
        inode, offset = _place(before)
        for path in self._files():
            found, data = _whole_lines(path)
            if before is None:
                yield found, data
            elif found == inode:
                before = None
                yield found, data[:offset]

    def _forwards(self, place: str) -> Iterator[tuple[int, bytes, int]]:
        """Yield the file of the place from there on, then the newer files; all files if that one is
        gone.
        """
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
        """Return the existing log files, the newest first."""
        rotated = [
            (int(number), path)
            for path in self._file.parent.glob(f"{self._file.name}.*")
            if (number := path.name.removeprefix(f"{self._file.name}.")).isdecimal()
        ]
        return [p for p in (self._file, *(path for _, path in sorted(rotated))) if p.exists()]


class WantedLines(Struct, frozen=True):
    """A filter for records: by session, turn and origin, and from a level on; "" and 0
    match all.
    """

    session: str = ""
    turn: int = 0
    origin: str = ""
    level: str = ""

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Return whether the record matches."""
        if self.level and _rank(record.get("level")) < _rank(self.level):
            return False
        asked = (("session", self.session), ("turn", self.turn), ("origin", self.origin))
        return all(not value or record.get(name) == value for name, value in asked)


class LogPage(Struct, frozen=True):
    """Records, oldest first, with the places before and after them from which to read on."""

    records: tuple[dict[str, Any], ...]
    before: str | None  # None: nothing older is left
    after: str


def parse(line: bytes | str) -> dict[str, Any]:
    """Parse a line of the log; a line that is no JSON object becomes a record with the line as its
    event.
    """
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


LOGS = Group("")

_LOOK_AGAIN_SECONDS = 0.25

_Session = Annotated[str, Param("Of this session only.")]
_Turn = Annotated[int, Param("Of the turn with this number only.", least=0)]
_Origin = Annotated[
    Literal["", "user", "heartbeat", "flush", "summary", "job"], Param("Of such turns only.")
]
_Level = Annotated[
    Literal["", "debug", "info", "warning", "error", "critical"], Param("From this level on.")
]


class LogPlace(Struct, frozen=True):
    """Where the daemon logs: to a file, to a unit's journal, or else to a terminal."""

    file: Path | None
    unit: Unit | None


class LogCommands:
    """The command for the daemon's log; turn 0 and empty texts do not filter."""

    def __init__(self, place: LogPlace, clock: Clock) -> None:
        self._place = place
        self._clock = clock

    @LOGS.command(fields)
    async def logs(
        self,
        *,
        session: _Session = "",
        turn: _Turn = 0,
        origin: _Origin = "",
        level: _Level = "",
        limit: Annotated[int, Param(least=1, most=1000)] = 200,
        before: str | None = None,
    ) -> dict[str, Any]:
        """Show the daemon's log, one record a line."""
        # `journal` names the unit when only the service manager can show its log.
        if self._place.file is None and self._place.unit is not None:
            return {"records": [], "journal": asdict(self._place.unit)}
        wanted = WantedLines(session, turn, origin, level)
        page = await asyncio.to_thread(self._book().page, wanted, limit, before)
        return {"records": list(page.records), "before": page.before, "after": page.after}

    @LOGS.command(fields, name="logs/follow", line=False)
    async def follow(
        self,
        caller: Caller,
        after: str,
        *,
        session: _Session = "",
        turn: _Turn = 0,
        origin: _Origin = "",
        level: _Level = "",
    ) -> dict[str, Any]:
        """Send records behind a place of an earlier answer, and all that come, until the client
        leaves.
        """
        book, wanted = self._book(), WantedLines(session, turn, origin, level)
        while True:
            page = await asyncio.to_thread(book.since, after, wanted)
            after = page.after
            if page.records:
                caller.notify("_agentd/log", {"records": list(page.records)})
                await caller.wait_room()
            else:
                await self._clock.sleep(_LOOK_AGAIN_SECONDS)

    def _book(self) -> Logbook:
        if self._place.file is None:
            raise AgentdError(
                "the daemon's log goes to where it was started",
                cure="look there, or start the daemon in the background with `agentd up`",
            )
        return Logbook(self._place.file)
