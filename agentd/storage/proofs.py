"""What proves that the state database holds what was stored and what was acknowledged.

Each row of a transcript has a keyed digest (`Seals`). Each commit has a number, which a file
beside the database holds too (`Ring`). `Guard` makes both with each commit, and finds what is
missing or changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from agentd.core.health import Problem
from agentd.core.paths import sync_directory
from agentd.storage.keys import load_key

log = structlog.get_logger()

DIGEST_BYTES = 16
COLUMNS = ("session_id", "seq", "role", "opens_turn", "at", "provider", "usage", "tag", "source")
_NUMBERS = frozenset({"session_id", "seq", "opens_turn"})
_TAGS = {type(None): b"n", int: b"i", float: b"f", str: b"s", bytes: b"s"}
Value = None | int | float | str | bytes


def digest_of(prefix: str = "", **given: str) -> str:
    """The call that makes a row's digest in SQL: of the columns, each behind `prefix`, or of what is
    given in their place.
    """
    values = {name: given.get(name, prefix + name) for name in (*COLUMNS, "blocks")}
    # Text as bytes: damaged text may be none in Unicode, which no function could be given.
    told = [v if name in _NUMBERS else f"CAST({v} AS BLOB)" for name, v in values.items()]
    return f"row_digest({', '.join(told)})"


def is_proven(prefix: str = "") -> str:
    """The call that tells whether a row is what was stored."""
    return digest_of(prefix).replace("row_digest(", f"row_proven({prefix}digest, ")


@dataclass(slots=True)
class Seals:
    """The functions that make and prove digests of rows in statements, with their key. There is one
    digest for each row, of all that it says and where it stands, so that a row can be masked or
    erased without touching another. Who has no key cannot make one; damage does not make one
    either.

    `broken` are the rows, by session id and number, that were found not to be what was stored,
    and not found well since; `made` are the first and the last row that got a digest since it
    was emptied, by session id. Without `checks` every row is taken for proven.
    """

    key: bytes
    checks: bool = True
    broken: dict[tuple[object, object], None] = field(default_factory=dict)
    made: dict[object, list[int]] = field(default_factory=dict)

    @property
    def key_id(self) -> bytes:
        """What tells keys apart and says nothing about them."""
        return hashlib.blake2b(b"key id", key=self.key, digest_size=8).digest()

    def attach(self, conn: sqlite3.Connection) -> None:
        """Let the connection's statements call them."""
        count = len(COLUMNS) + 1
        conn.create_function("row_digest", count, self.digest, deterministic=True)
        conn.create_function("row_proven", count + 1, self.proven)

    def digest(self, *values: Value) -> bytes:
        """Of the values of a row that is stored, in the order of the columns."""
        session, seq = values[:2]
        if isinstance(seq, int):
            known = self.made.setdefault(session, [seq, seq])
            known[:] = min(known[0], seq), max(known[1], seq)
        return self._digest(values)

    def proven(self, digest: Value, *values: Value) -> bool:
        """Whether that is the row's digest."""
        if not self.checks:
            return True
        is_well = digest == self._digest(values)
        place = values[0], values[1]
        if is_well:
            self.broken.pop(place, None)
        else:
            self.broken[place] = None
        return is_well

    def _digest(self, values: Sequence[Value]) -> bytes:
        made = hashlib.blake2b(key=self.key, digest_size=DIGEST_BYTES)
        for value in values:
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            made.update(b"%s%d:" % (_TAGS[type(value)], len(data)))
            made.update(data)
        return made.digest()


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
    """The open file of what was acknowledged: a ring of slots of one sector each, written over in
    place and synced after each commit, before anyone is told that it is stored. Blocking.

    A slot holds the commit's number and where the rows and messages stand that came with it, as
    numbers, no word of them. If the write-ahead log loses its end, the database counts fewer
    commits than the ring, and the ring says what came with the others.
    """

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


def describe_commits(conn: sqlite3.Connection, commits: Sequence[Commit]) -> list[str]:
    """What came with the commits and is not in the database, in words: rows by session, then
    messages.
    """
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


_MOST_NAMED = 5
_COUNT = "UPDATE proof SET commits = commits + 1 RETURNING commits"
_LAST_TURN = "SELECT seq FROM sqlite_sequence WHERE name = 'turns'"
_SEAL = "UPDATE rows SET digest = DIGEST WHERE digest IS NULL".replace("DIGEST", digest_of())
_SEAL_ALL = _SEAL.removesuffix(" WHERE digest IS NULL")
_SEALED = "UPDATE proof SET sealed = 1, key_id = ?"


def key_of(database: Path) -> Path:
    """Where the key of the rows' digests is."""
    return database.with_name("rows.key")


class Guard:
    """The guard of the database at `path`; without `checks` it seals rows and proves nothing, which
    only shows what the proofs are for. To be used on the database's thread, but for `problems`.
    """

    def __init__(self, path: Path, *, checks: bool = True) -> None:
        self._path = path
        self._checks = checks
        self._seals: Seals | None = None
        self._ring: Ring | None = None
        self._last_turn = 0
        self._failed: Problem | None = None
        self._keys: dict[object, object] = {}  # of sessions, as far as they were asked for

    def open(self, conn: sqlite3.Connection) -> None:
        """Begin with a database of the newest shape: let its statements call the functions of the
        digests, seal what has none yet, and count on. Raises sqlite3.Error, StorageError.
        """
        if self._seals is None:
            cure = "put it back from a backup, or delete it: the rows are sealed anew then"
            self._seals = Seals(load_key(key_of(self._path), cure), self._checks)
        self._seals.attach(conn)
        key_id = self._seals.key_id
        commits, sealed, known = conn.execute(
            "SELECT commits, sealed, key_id FROM proof"
        ).fetchone()
        if not sealed or (known is not None and known != key_id):
            conn.execute("BEGIN IMMEDIATE")
            # With another key no digest says anything any more; that was told when the file was looked at.
            conn.execute(_SEAL if known in {None, key_id} else _SEAL_ALL)
            conn.execute(_SEALED, (key_id,))
            conn.execute("COMMIT")
        if self._checks and self._ring is None:
            self._begin_to_count(conn, commits)
        self._last_turn = _last_turn(conn)
        self._seals.made.clear()

    def begin(self) -> None:
        """A transaction begins."""
        if self._seals is not None:
            self._seals.made.clear()

    def count(self, conn: sqlite3.Connection) -> Commit | None:
        """Count the transaction that is about to be committed. Raises sqlite3.Error."""
        if self._ring is None or self._seals is None:
            return None
        ((number,),) = conn.execute(_COUNT).fetchall()
        rows = [
            (s, first, last) for s, (first, last) in self._seals.made.items() if isinstance(s, int)
        ]
        turn = _last_turn(conn)
        messages = (self._last_turn + 1, turn) if turn > self._last_turn else None
        return Commit(number, rows, messages)

    def acknowledge(self, commit: Commit) -> None:
        """It was committed: let the ring say so before anyone is told."""
        assert self._ring is not None
        if commit.messages is not None:
            self._last_turn = commit.messages[1]
        try:
            self._ring.keep(commit)
        except OSError as error:
            self._fail(error)
        else:
            self._failed = None

    def name_broken(self, conn: sqlite3.Connection) -> None:
        """Find out what the sessions are called whose rows were found not to be what was stored."""
        if self._seals is None or all(key in self._keys for key, _ in self._seals.broken):
            return
        with suppress(sqlite3.Error):
            self._keys = dict(map(tuple, conn.execute("SELECT id, key FROM sessions")))

    def problems(self) -> tuple[Problem, ...]:
        """Rows that are not what was stored, and a ring that cannot be written."""
        found = [self._failed] if self._failed else []
        if self._seals is not None and (broken := list(self._seals.broken)):
            first = broken[:_MOST_NAMED]
            names = [f"{self._keys.get(session, 'session')} {seq!s}" for session, seq in first]
            more = f" and {len(broken) - _MOST_NAMED} more" if len(broken) > _MOST_NAMED else ""
            found.append(
                Problem(
                    "row_damaged",
                    f"rows of conversations are not what was stored: {', '.join(names)}{more};"
                    " they are left out of prompts",
                    "restore a backup if you need them; deleting their conversations ends this",
                )
            )
        return tuple(found)

    def close(self) -> None:
        """Close the ring."""
        if self._ring is not None:
            self._ring.close()

    def _begin_to_count(self, conn: sqlite3.Connection, commits: int) -> None:
        """Go on behind all that the ring and the database know of."""
        ring = ring_of(self._path)
        try:
            known = commits_in(ring)
            first = max(commits, 1, *known)
            if first != commits:
                conn.execute("UPDATE proof SET commits = ?", (first,))
            self._ring = Ring(ring)
            if first not in known:
                self._ring.keep(Commit(first))
        except OSError as error:  # a full disk keeps nobody from starting
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self._failed is None:
            log.error("acknowledgement_not_kept", reason=error.strerror)
        name = ring_of(self._path).name
        text = f"{name} cannot be written ({error.strerror}): what is stored is stored, yet lost unseen if the disk fails"
        self._failed = Problem(
            "acknowledgement_not_kept", text, f"make room and rights in {self._path.parent}"
        )


def _last_turn(conn: sqlite3.Connection) -> int:
    # Without a look at `rows` and `turns`: where these are damaged, other tables may still be written.
    found = conn.execute(_LAST_TURN).fetchone()
    return int(found[0]) if found else 0
