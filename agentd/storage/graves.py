"""What was forgotten, carried into a database that comes out of a backup. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from agentd.domain.fact import Fact
from agentd.storage.codec import stamp
from agentd.storage.facts import put_row, rows_of

Digest = Callable[[str], bytes]


def graves_in(file: Path) -> frozenset[bytes] | None:
    """The hashes of all that was forgotten; None for a file that is not there or cannot be read."""
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            return frozenset(row[0] for row in conn.execute("SELECT digest FROM fact_tombstones"))
    except sqlite3.DatabaseError:
        return None


def bury_again(file: Path, graves: frozenset[bytes], digest: Digest, now: datetime) -> int:
    """Forget each fact whose words have a hash among the graves, as `digest` makes them, and keep the
    hashes; gives how many facts there were. Their evidence stays: it tells where the words stand.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA secure_delete = ON")
        conn.execute("BEGIN IMMEDIATE")
        found = [fact for fact in rows_of(conn) if fact.text and digest(fact.text) in graves]
        for fact in found:
            put_row(conn, Fact.grave(fact.id, now))
            conn.execute("DELETE FROM fact_vectors WHERE fact_id = ?", (fact.id,))
        kept = [(grave, stamp(now)) for grave in graves]
        conn.executemany("INSERT OR IGNORE INTO fact_tombstones VALUES (?, ?)", kept)
        conn.execute("COMMIT")
    return len(found)
