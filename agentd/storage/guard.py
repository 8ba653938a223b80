"""What proves that the state database holds what was stored and what was acknowledged.

Each row of a transcript has a keyed digest (`seals`), each commit a number that is kept outside the
database, too (`acknowledged`). To be used on the database's thread, but for `problems`.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

import structlog

from agentd.domain.health import Problem
from agentd.storage.acknowledged import Commit, Ring, commits_in, ring_of
from agentd.storage.keys import kept_key
from agentd.storage.seals import Seals, digest_of

log = structlog.get_logger()

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
    """The guard of the database at `path`; without `checks` it seals rows and proves nothing, which only
    shows what the proofs are for.
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
            self._seals = Seals(kept_key(key_of(self._path), cure), self._checks)
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
