"""What was acknowledged, kept in a file of its own beside the database. Blocking.

The file is a ring of slots of one sector each, written over in place and synced after each commit, before
anyone is told that it is stored. A slot holds the commit's number and where the rows and messages stand
that came with it, as numbers, no word of them. If the write-ahead log loses its end, the database counts
fewer commits than the ring, and the ring says what came with the others.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentd.paths import sync_directory

SLOT = 512  # bytes, which a disk writes whole
SLOTS = 512
_HEAD = struct.Struct("<IQH")  # checksum of the rest, number, length
_ROOM = SLOT - _HEAD.size


def ring_of(database: Path) -> Path:
    """Where the ring of a database is."""
    return database.with_name(f"{database.name}-acknowledged")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: the rows that came with it, as ranges of numbers by session id, and the messages."""

    number: int
    rows: Sequence[tuple[int, int, int]] = ()
    messages: tuple[int, int] | None = None

    def packed(self) -> bytes:
        """As a slot; what has no room in it is left out."""
        rows = list(self.rows)
        while len(text := json.dumps([rows, self.messages]).encode()) > _ROOM:
            rows = rows[: len(rows) // 2]
        rest = _HEAD.pack(0, self.number, len(text))[4:] + text
        return (struct.pack("<I", zlib.crc32(rest)) + rest).ljust(SLOT, b"\0")


class Ring:
    """The ring, open."""

    def __init__(self, path: Path) -> None:
        """Raises OSError. One that is missing or of another size is made, all of it, so that no later
        write needs room.
        """
        self._path = path
        self._descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        os.fchmod(self._descriptor, 0o600)
        if os.fstat(self._descriptor).st_size != SLOT * SLOTS:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, bytes(SLOT * SLOTS), 0)
            os.fsync(self._descriptor)
            sync_directory(path.parent)

    def keep(self, commit: Commit) -> None:
        """Write it down, durably. Raises OSError."""
        os.pwrite(self._descriptor, commit.packed(), commit.number % SLOTS * SLOT)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def commits_in(ring: Path) -> Mapping[int, Commit]:
    """What can be read of a ring, by number; nothing if it is not there. Raises OSError."""
    with suppress(FileNotFoundError):
        return {commit.number: commit for commit in _slots(ring.read_bytes())}
    return {}


def named(conn: sqlite3.Connection, commits: Sequence[Commit]) -> list[str]:
    """What came with the commits and is not in the database, in words: rows by session, then messages."""
    rows: dict[int, set[int]] = {}
    messages: set[int] = set()
    for commit in commits:
        for session, first, last in commit.rows:
            rows.setdefault(session, set()).update(range(first, last + 1))
        if commit.messages is not None:
            messages.update(range(commit.messages[0], commit.messages[1] + 1))
    told = []
    for session, numbers in rows.items():
        if lost := numbers - _there(conn, "SELECT seq FROM rows WHERE session_id = ?", session):
            told.append(f"{_key(conn, session)} {_range(lost)}")
    known = "SELECT id FROM turns WHERE id >= ?"
    if messages and (lost := messages - _there(conn, known, min(messages))):
        told.append(f"{'message' if len(lost) == 1 else 'messages'} {_range(lost)}")
    return told


def _there(conn: sqlite3.Connection, query: str, value: int) -> set[int]:
    return {number for (number,) in conn.execute(query, (value,))}


def _key(conn: sqlite3.Connection, session: int) -> str:
    found = conn.execute("SELECT key FROM sessions WHERE id = ?", (session,)).fetchone()
    return str(found[0]) if found else "a session that is gone, too,"


def _range(numbers: Collection[int]) -> str:
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{first} to {last}"


def _slots(data: bytes) -> Iterator[Commit]:
    for begin in range(0, len(data) - SLOT + 1, SLOT):
        slot = data[begin : begin + SLOT]
        checksum, number, length = _HEAD.unpack_from(slot)
        if not number or length > _ROOM or zlib.crc32(slot[4 : _HEAD.size + length]) != checksum:
            continue
        rows, messages = json.loads(slot[_HEAD.size : _HEAD.size + length])
        ranges = [(int(session), int(first), int(last)) for session, first, last in rows]
        yield Commit(number, ranges, (messages[0], messages[1]) if messages else None)
