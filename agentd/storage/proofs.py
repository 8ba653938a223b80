"""Proves that the state database contains what was stored and acknowledged.

Each row of a transcript has a keyed digest (`Seals`). Each commit has a number, which is also
written to a file beside the database (`Ring`). `ProofGuard` maintains both with each commit and
finds what is missing or changed.
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
from pathlib import Path

import structlog
from msgspec import Struct, field

from agentd.core.health import Problem
from agentd.core.paths import open_regular, read_regular, sync_directory
from agentd.storage.keys import load_key

log = structlog.get_logger()

DIGEST_BYTES = 16
COLUMNS = ("session_id", "seq", "role", "opens_turn", "at", "provider", "usage", "tag", "source")
_NUMBERS = frozenset({"session_id", "seq", "opens_turn"})
_TAGS = {type(None): b"n", int: b"i", float: b"f", str: b"s", bytes: b"s"}
Value = None | int | float | str | bytes


def digest_of(prefix: str = "", **given: str) -> str:
    """Return the SQL call that computes a row's digest: from its columns, each with `prefix` before
    its name, or from the expressions in `given` instead.
    """
    values = {name: given.get(name, prefix + name) for name in (*COLUMNS, "blocks")}
    # Text as bytes: damaged text may be invalid UTF-8, which cannot be passed to a function.
    told = [v if name in _NUMBERS else f"CAST({v} AS BLOB)" for name, v in values.items()]
    return f"row_digest({', '.join(told)})"


def is_proven(prefix: str = "") -> str:
    """Return the SQL call that tells whether a row matches its digest."""
    return digest_of(prefix).replace("row_digest(", f"row_proven({prefix}digest, ")


class Seals(Struct):
    """The SQL functions that compute and check digests of rows, and their key.

    Each row has one digest over its content and its place, so a row can be masked or erased without
    touching another. Without the key nobody can make a valid digest, nor does damage produce one.

    `broken` holds the rows, as (session id, row number), that did not match their digest when they
    were last checked. `made` holds the first and the last row number that got a digest since `made`
    was emptied, by session id. Without `checks` every row counts as proven.
    """

    key: bytes
    checks: bool = True
    broken: dict[tuple[object, object], None] = field(default_factory=dict)
    made: dict[object, list[int]] = field(default_factory=dict)

    @property
    def key_id(self) -> bytes:
        """An identifier that differs between keys and reveals nothing about them."""
        return hashlib.blake2b(b"key id", key=self.key, digest_size=8).digest()

    def attach(self, conn: sqlite3.Connection) -> None:
        """Register the functions `row_digest` and `row_proven` with the connection."""
        count = len(COLUMNS) + 1
        conn.create_function("row_digest", count, self.digest, deterministic=True)
        conn.create_function("row_proven", count + 1, self.proven)

    def digest(self, *values: Value) -> bytes:
        """Return the digest of a row that is being stored, from its values in the order of the
        columns.
        """
        session, seq = values[:2]
        if isinstance(seq, int):
            known = self.made.setdefault(session, [seq, seq])
            known[:] = min(known[0], seq), max(known[1], seq)
        return self._digest(values)

    def proven(self, digest: Value, *values: Value) -> bool:
        """Whether `digest` is the digest of the row with these values; updates `broken`."""
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


SLOT = 512  # bytes: a sector, which a disk writes whole or not at all
SLOTS = 512
_HEAD = struct.Struct("<IQH")  # checksum of the rest, number, length of the JSON
_ROOM = SLOT - _HEAD.size


def ring_of(database: Path) -> Path:
    """Return the path of a database's ring."""
    return database.with_name(f"{database.name}-acknowledged")


class Commit(Struct, frozen=True):
    """One commit: the rows it added, as (session id, first, last row number), and the first and
    last turn id of the messages it received.
    """

    number: int
    rows: Sequence[tuple[int, int, int]] = ()
    messages: tuple[int, int] | None = None

    def packed(self) -> bytes:
        """Return the commit as the bytes of one slot. Rows that do not fit are left out."""
        rows = list(self.rows)
        while len(text := json.dumps([rows, self.messages]).encode()) > _ROOM:
            rows = rows[: len(rows) // 2]
        rest = _HEAD.pack(0, self.number, len(text))[4:] + text
        return (struct.pack("<I", zlib.crc32(rest)) + rest).ljust(SLOT, b"\0")


class Ring:
    """The file that records acknowledged commits: a ring of slots of one disk sector each,
    overwritten in place and synced after each commit, before any caller learns that it is stored.
    Blocking.

    A slot contains the commit's number and the numbers of the rows and messages that it added, no
    text. If the write-ahead log loses its end, the database counts fewer commits than the ring, and
    the ring says what the missing ones added.
    """

    def __init__(self, path: Path) -> None:
        """A ring that is missing or has another size is created at its full size, so that no later
        write needs room on the disk. Raises OSError.
        """
        self._path = path
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        os.fchmod(self._descriptor, 0o600)
        if os.fstat(self._descriptor).st_size != SLOT * SLOTS:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, bytes(SLOT * SLOTS), 0)
            os.fsync(self._descriptor)
            sync_directory(path.parent)

    def keep(self, commit: Commit) -> None:
        """Write the commit into its slot, durably. Raises OSError."""
        os.pwrite(self._descriptor, commit.packed(), commit.number % SLOTS * SLOT)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def commits_in(ring: Path) -> Mapping[int, Commit]:
    """Return the readable commits of a ring, by number; empty if the file is missing. Raises
    OSError.
    """
    with suppress(FileNotFoundError):
        return {commit.number: commit for commit in _slots(read_regular(ring))}
    return {}


def describe_commits(conn: sqlite3.Connection, commits: Sequence[Commit]) -> list[str]:
    """Describe what the commits added and the database lacks: one text per session with lost rows,
    then one for lost messages.
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
    """Return the path of the key for the rows' digests."""
    return database.with_name("rows.key")


class ProofGuard:
    """Maintains and checks the proofs of the database at `path`. Without `checks` it makes digests
    and proves nothing; tests use that to show what the proofs are for. All methods but `problems`
    must be called on the database's thread.
    """

    def __init__(self, path: Path, *, checks: bool = True) -> None:
        self._path = path
        self._checks = checks
        self._seals: Seals | None = None
        self._ring: Ring | None = None
        self._last_turn = 0
        self._failed: Problem | None = None
        self._keys: dict[object, object] = {}  # session keys by id, from `name_broken`

    def open(self, conn: sqlite3.Connection) -> None:
        """Start with a database that is already migrated: register the digest functions, make
        digests for rows without one (for all rows if the key has changed), and continue the count
        of commits. Raises sqlite3.Error, StorageError.
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
            # With another key the old digests prove nothing; `make_sound` has reported that.
            conn.execute(_SEAL if known in {None, key_id} else _SEAL_ALL)
            conn.execute(_SEALED, (key_id,))
            conn.execute("COMMIT")
        if self._checks and self._ring is None:
            self._begin_to_count(conn, commits)
        self._last_turn = _last_turn(conn)
        self._seals.made.clear()

    def begin(self) -> None:
        """Note that a transaction begins."""
        if self._seals is not None:
            self._seals.made.clear()

    def count(self, conn: sqlite3.Connection) -> Commit | None:
        """Increment the commit count within the open transaction; return the Commit to acknowledge
        after it, None if nothing is counted. Raises sqlite3.Error.
        """
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
        """Write the finished commit to the ring, before its callers learn that it is stored. A
        failure becomes a problem.
        """
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
        """Look up the keys of the sessions with rows that failed their check, for `problems`."""
        if self._seals is None or all(key in self._keys for key, _ in self._seals.broken):
            return
        with suppress(sqlite3.Error):
            self._keys = dict(map(tuple, conn.execute("SELECT id, key FROM sessions")))

    def problems(self) -> tuple[Problem, ...]:
        """Rows that do not match their digest, and a ring that cannot be written."""
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
        """Continue from the highest number that the ring or the database knows."""
        ring = ring_of(self._path)
        try:
            known = commits_in(ring)
            first = max(commits, 1, *known)
            if first != commits:
                conn.execute("UPDATE proof SET commits = ?", (first,))
            self._ring = Ring(ring)
            if first not in known:
                self._ring.keep(Commit(first))
        except OSError as error:  # a full disk must not prevent a start
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self._failed is None:
            log.error("acknowledgement_not_kept", reason=error.strerror)
        name = ring_of(self._path).name
        text = (
            f"{name} cannot be written ({error.strerror}): what is stored is stored, yet lost "
            "unseen if the disk fails"
        )
        self._failed = Problem(
            "acknowledgement_not_kept", text, f"make room and rights in {self._path.parent}"
        )


def _last_turn(conn: sqlite3.Connection) -> int:
    # Does not read `rows` or `turns`: other tables stay writable when these are damaged.
    found = conn.execute(_LAST_TURN).fetchone()
    return int(found[0]) if found else 0
