"""A second session from a first one, as steps of a transaction."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from agentd.core.errors import Busy
from agentd.core.turn import SessionKey
from agentd.storage.codec import stamp
from agentd.storage.proofs import digest_of, is_proven
from agentd.storage.transcript import find_session, require_session

_FIRST_OPEN = """
SELECT min(rows.seq) AS seq FROM rows JOIN turns ON turns.id = rows.turn_id
WHERE rows.session_id = ? AND turns.ended_at IS NULL
"""
_COPY_SESSION = """
INSERT INTO sessions (key, title, cwd, created_at, updated_at, rows, turns, context_tokens,
    generation, context_from, summary, swapped_at, covered_to, excerpted, mode, model, effort)
SELECT :key, title, :cwd, :at, :at, :last,
    (SELECT count(*) FROM rows WHERE session_id = :source AND seq <= :last AND opens_turn = 1),
    context_tokens, generation, context_from, summary, swapped_at, min(covered_to, :last),
    excerpted, mode, model, effort
FROM sessions WHERE id = :source
"""
_COPY_ROWS = """
INSERT INTO rows
    (session_id, seq, turn_id, role, opens_turn, at, provider, usage, tag, source, blocks, digest)
SELECT :copy, seq, NULL, role, opens_turn, at, provider, usage, tag, source, blocks,
    iif(PROVEN, DIGEST, NULL)
FROM rows WHERE session_id = :source AND seq <= :last
""".replace("PROVEN", is_proven()).replace("DIGEST", digest_of(session_id=":copy"))
_COPY_IMAGES = """
INSERT INTO images (row_id, sha256)
SELECT copied.id, images.sha256 FROM rows AS copied
JOIN rows AS original ON original.session_id = :source AND original.seq = copied.seq
JOIN images ON images.row_id = original.id
WHERE copied.session_id = :copy
"""
_COPY_COVERAGES = """
INSERT INTO coverages (session_id, first, last, ok, reason, at)
SELECT :copy, first, last, ok, reason, at FROM coverages
WHERE session_id = :source AND last <= :last ORDER BY id
"""


def fork_session(
    conn: sqlite3.Connection, source: SessionKey, key: SessionKey, cwd: str, at: datetime
) -> None:
    """Copy a session up to the first turn that has not ended. Raises NotFound, and Busy for a key
    that is taken.
    """
    found = require_session(conn, source, at)
    if find_session(conn, key) is not None:
        raise Busy(f"there is a session {key!r} already", cure="use another key")
    first_open = conn.execute(_FIRST_OPEN, (found["id"],)).fetchone()["seq"]
    values = {
        "source": found["id"],
        "key": key,
        "cwd": cwd or found["cwd"],
        "at": stamp(at),
        "last": found["rows"] if first_open is None else first_open - 1,
    }
    copy = conn.execute(_COPY_SESSION, values).lastrowid
    conn.execute(_COPY_ROWS, {**values, "copy": copy})
    conn.execute(_COPY_IMAGES, {**values, "copy": copy})
    conn.execute(_COPY_COVERAGES, {**values, "copy": copy})
