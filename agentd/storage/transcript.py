"""Sessions and the rows of their transcripts, each function a step of a transaction."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.erasure import MASK
from agentd.core.errors import Busy, NotFound
from agentd.core.message import TextSource
from agentd.core.outside import removal_notice
from agentd.core.text import well_formed
from agentd.core.transcript import (
    DAMAGED,
    ApprovalMode,
    Choices,
    History,
    NewRow,
    Row,
    SessionInfo,
    SummaryTrouble,
    opens_turn,
    without_loose_calls,
)
from agentd.core.turn import DELETED, MAIN, SessionKey, SessionKind, kind_of
from agentd.storage.codec import (
    dump_blocks,
    dump_usage,
    load_images,
    load_row,
    moment,
    stamp,
)
from agentd.storage.fact_store import unlink_session
from agentd.storage.proofs import COLUMNS, digest_of, is_proven

CACHE_BYTES = 8 << 20  # approximate, over all sessions
MIN_CACHED_ROWS = 64  # fewer are decoded fast enough
ROW_OVERHEAD = 800  # bytes of a cached row in addition to its text
TITLE_LENGTH = 80  # characters
MANY_ROWS = 2_000  # rows of a context; fewer are always read completely

_DIGEST = "SELECT digest FROM rows WHERE session_id = ? AND seq = ?"
_TELL = "CREATE TEMP TRIGGER {name}_{event} AFTER {event} ON main.rows BEGIN SELECT {name}(); END"
_COUNT_ROW = """
UPDATE sessions SET rows = rows + 1, turns = turns + :opens, updated_at = :at,
    context_tokens = coalesce(:tokens, context_tokens),
    title = CASE WHEN title = '' THEN :title ELSE title END
WHERE id = :session RETURNING rows
"""
_VALUES = {name: f":{name}" for name in (*COLUMNS, "blocks")}
_INSERT_ROW = "".join(
    (
        f"INSERT INTO rows (turn_id, {', '.join(_VALUES)}, digest) ",
        f"VALUES (:turn_id, {', '.join(_VALUES.values())}, {digest_of(**_VALUES)})",
    )
)
_INSERT_IMAGE = "INSERT OR IGNORE INTO images (row_id, sha256) VALUES (?, ?)"
_WAITING = "SELECT images FROM turns WHERE images <> '[]'"
_NTH_LAST_TURN = """
SELECT seq FROM rows WHERE session_id = ? AND opens_turn = 1 ORDER BY seq DESC LIMIT 1 OFFSET ?
"""
_LISTED = """
SELECT * FROM sessions WHERE key NOT LIKE 'heartbeat:%' ORDER BY updated_at DESC, id DESC
"""
_ROW_COUNTS = _LISTED.replace("*", "key, rows")
_MADE = f"chat:{'[0-9a-f]' * 12}"  # keys made for clients that named none
_UNUSED = """
SELECT id FROM sessions WHERE rows = 0 AND turns = 0 AND key GLOB ? AND created_at < ?
AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = sessions.id)
"""
# A flush that was cut by a crash or an outage may be deleted with its session.
_UNENDED = """
SELECT 1 FROM turns WHERE session_id = ? AND ended_at IS NULL AND origin <> 'flush'
"""
_PROVEN = "SELECT rows.*, PROVEN AS proven FROM rows".replace("PROVEN", is_proven("rows."))
_OF_TURN = f"{_PROVEN} WHERE turn_id = ? ORDER BY seq"
_SLICE = f"{_PROVEN} WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT ?"
_OPENING = f"{_PROVEN} WHERE session_id = ? AND opens_turn = 1 ORDER BY seq"
_RETITLE = "UPDATE sessions SET title = ? WHERE id = ?"
_SUMMARY = "SELECT source FROM rows WHERE session_id = ? AND seq = ? AND role = 'summary'"
_SPOKEN = "role IN ('user', 'assistant', 'notice')"  # rows that a prompt is made from
_IN_CONTEXT = f"{_PROVEN} WHERE session_id = ? AND seq >= ? AND {_SPOKEN} ORDER BY seq"
_NEWEST = """
SELECT min(seq) AS first FROM (
    SELECT seq, sum(length(blocks)) OVER (ORDER BY seq DESC) AS size FROM rows
    WHERE session_id = :session AND seq >= :first AND SPOKEN
) WHERE size <= :most
""".replace("SPOKEN", _SPOKEN)
_SIZE = """
SELECT coalesce(sum(length(blocks)), 0) AS size FROM rows
WHERE session_id = ? AND seq >= ? AND seq < ? AND SPOKEN
""".replace("SPOKEN", _SPOKEN)


def find_session(conn: sqlite3.Connection, key: SessionKey) -> sqlite3.Row | None:
    """Return the columns of a session; None if it does not exist."""
    found: sqlite3.Row | None = conn.execute(
        "SELECT * FROM sessions WHERE key = ?", (key,)
    ).fetchone()
    return found


def make_session(conn: sqlite3.Connection, key: SessionKey, at: datetime, cwd: str = "") -> bool:
    """Add a session; return False if it exists."""
    made = conn.execute(
        "INSERT INTO sessions (key, cwd, created_at, updated_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (key) DO NOTHING",
        (key, cwd, stamp(at), stamp(at)),
    )
    return made.rowcount == 1


def require_session(conn: sqlite3.Connection, key: SessionKey, at: datetime) -> sqlite3.Row:
    """Return the columns of a session; create `main` if missing. Raises NotFound for any other."""
    if key == MAIN:
        make_session(conn, key, at)
    found = find_session(conn, key)
    if found is None:
        raise unknown(key)
    return found


def delete_session(conn: sqlite3.Connection, key: SessionKey, at: datetime) -> None:
    """Delete a session and record the deletion, so that indexes and facts are cleaned later.

    `main` is created again with a higher generation, so that unfinished work on the old one is
    refused as stale. Raises NotFound; Busy while a turn of the session has not ended, except a
    flush.
    """
    found = require_session(conn, key, at)
    if conn.execute(_UNENDED, (found["id"],)).fetchone():
        raise Busy(
            f"a turn of session {key!r} has not ended",
            cure="wait for it, or cancel it, then delete",
        )
    conn.execute("DELETE FROM sessions WHERE id = ?", (found["id"],))
    conn.execute("INSERT INTO deletions (session) VALUES (?)", (key,))
    conn.execute("UPDATE charges SET session = ? WHERE session = ?", (DELETED, key))
    unlink_session(conn, key)
    if key == MAIN:
        make_session(conn, key, at)
        conn.execute(
            "UPDATE sessions SET generation = ? WHERE key = ?", (found["generation"] + 1, key)
        )


def unknown(key: SessionKey) -> NotFound:
    """Return the error for a session that does not exist."""
    return NotFound(f"there is no session {key!r}", cure="`agentd sessions list` shows all of them")


def add_row(
    conn: sqlite3.Connection,
    session_id: int,
    new: NewRow,
    at: datetime,
    turn_id: int | None = None,
) -> Row:
    """Append a row to a transcript and update the session's counts."""
    opens = opens_turn(new)
    row = new.stored(0, at, turn_id)
    counted = {
        "session": session_id,
        "opens": opens,
        "at": stamp(at),
        "tokens": new.usage.total_tokens if new.usage else None,
        "title": _title_of(row) if opens else "",
    }
    ((seq,),) = conn.execute(_COUNT_ROW, counted).fetchall()
    row = replace(row, seq=seq)
    added = conn.execute(
        _INSERT_ROW,
        {
            "session_id": session_id,
            "seq": seq,
            "turn_id": turn_id,
            "role": row.role,
            "opens_turn": opens,
            "at": stamp(at),
            "provider": row.provider,
            "usage": dump_usage(row.usage),
            "tag": row.tag,
            "source": str(row.source),
            "blocks": dump_blocks(row.blocks),
        },
    )
    for image in row.images:
        conn.execute(_INSERT_IMAGE, (added.lastrowid, image.sha256))
    return row


def referred_images(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the digests of the images of all rows and of messages whose turns have not ended."""
    waiting = [image for turn in conn.execute(_WAITING) for image in load_images(turn["images"])]
    stored = conn.execute("SELECT DISTINCT sha256 FROM images")
    return frozenset([*(row["sha256"] for row in stored), *(image.sha256 for image in waiting)])


def retitle(conn: sqlite3.Connection, session_id: int) -> None:
    """Set the title of a session from its oldest remaining user row that does not begin with a line
    of which something was forgotten; "" if there is none: then the next message gives it one.
    """
    rows = (load_row(found) for found in conn.execute(_OPENING, (session_id,)))
    title = next((_title_of(row) for row in rows if MASK not in _opening_line(row)), "")
    conn.execute(_RETITLE, (title, session_id))


def turn_rows(conn: sqlite3.Connection, turn_id: int) -> tuple[Row, ...]:
    """Return the rows of a turn, oldest first."""
    found = conn.execute(_OF_TURN, (turn_id,))
    return without_loose_calls([load_row(r) for r in found])


def slice_rows(
    conn: sqlite3.Connection, session_id: int, first: int, limit: int | None
) -> tuple[Row, ...]:
    """Return up to `limit` rows of a session from number `first` on."""
    found = conn.execute(
        _SLICE,
        (session_id, first, -1 if limit is None else max(0, limit)),
    )
    return tuple(load_row(r) for r in found)


def recent_rows(conn: sqlite3.Connection, session_id: int, turns: int) -> tuple[Row, ...]:
    """Return the rows since the beginning of the last `turns` turns, without summaries."""
    if turns < 1:
        return ()
    start = conn.execute(_NTH_LAST_TURN, (session_id, turns - 1)).fetchone()
    return _context_rows(conn, session_id, start["seq"] if start else 1)


def load_history(
    conn: sqlite3.Connection, key: SessionKey, contexts: ContextCache, most: int | None = None
) -> History:
    """Return what a session's next prompt is made from. If `most` is given and the context has very
    many rows, it contains only the newest of about `most` characters. `contexts` may have the rows
    cached.
    """
    found = find_session(conn, key)
    if found is None:
        return History(key)
    first, omitted = found["context_from"], 0
    if most is not None and found["rows"] - first >= MANY_ROWS:
        held = contexts.characters(found["id"], first)
        if held is None or held > most:
            first, omitted = _newest(conn, found, most)
    return History(
        session=key,
        rows=contexts.rows(conn, found["id"], first),
        left_out=omitted,
        summary=_summary_of(conn, found),
        context_from=found["context_from"],
        covered_to=found["covered_to"],
        generation=found["generation"],
        swapped_at=found["swapped_at"],
        flush_failures=found["flush_failures"],
        flush_due=bool(found["flush_due"]),
        choices=load_choices(found),
        trouble=_load_trouble(found),
        is_excerpted=bool(found["excerpted"]),
    )


def load_choices(found: sqlite3.Row) -> Choices:
    """Return the user's choices from a session's columns."""
    return Choices(ApprovalMode(found["mode"]), found["model"], found["effort"])


def list_sessions(conn: sqlite3.Connection) -> tuple[SessionInfo, ...]:
    """Return all stored sessions, the last used first, without those of heartbeats, which are
    always silent.
    """
    found = conn.execute(_LISTED)
    return tuple(_load_info(s) for s in found)


def row_counts(conn: sqlite3.Connection) -> dict[SessionKey, int]:
    """Return the number of rows of each session that `list_sessions` returns."""
    return {SessionKey(found["key"]): found["rows"] for found in conn.execute(_ROW_COUNTS)}


def unused_sessions(conn: sqlite3.Connection, before: datetime) -> list[tuple[int]]:
    """Return the ids of sessions that clients created before `before` without naming them, and that
    have no rows and no turns.
    """
    return [(found["id"],) for found in conn.execute(_UNUSED, (_MADE, stamp(before)))]


def drop_unused(conn: sqlite3.Connection, before: datetime) -> int:
    """Delete what `unused_sessions` returns; return how many."""
    found = unused_sessions(conn, before)
    conn.executemany("DELETE FROM sessions WHERE id = ?", found)
    return len(found)


class ContextCache:
    """The decoded rows of long contexts, for the sessions used last.

    A turn only adds rows, so cached ones stay valid until a row is changed or deleted; then the
    whole cache is dropped: triggers of the connection report it, whatever made the change. The size
    over all sessions is bounded. Used on the database's thread only.
    """

    def __init__(self, most: int = CACHE_BYTES) -> None:
        self._most = most
        self._held: OrderedDict[int, _Context] = OrderedDict()
        self._conn: sqlite3.Connection | None = None

    @property
    def size(self) -> int:
        """The approximate size of all cached rows in bytes."""
        return sum(context.size for context in self._held.values())

    def rows(self, conn: sqlite3.Connection, session_id: int, first: int) -> tuple[Row, ...]:
        """Return the rows of the context that begins with number `first`."""
        self._listen(conn)
        held = self._held.pop(session_id, None)
        if held is not None and not (held.first == first and self._stands(conn, session_id, held)):
            held = None
        old = held.rows if held else ()
        new = conn.execute(_IN_CONTEXT, (session_id, old[-1].seq + 1 if old else first)).fetchall()
        rows = (*old, *map(load_row, new)) if new else old
        if any(row.tag == DAMAGED for row in rows[len(old) :]):
            return without_loose_calls(rows)  # not cached: damaged rows are checked again
        characters = (held.characters if held else 0) + sum(len(row["blocks"]) for row in new)
        digest = new[-1]["digest"] if new else held.digest if held else b""
        if len(rows) >= MIN_CACHED_ROWS:
            self._keep(session_id, _Context(first, rows, digest, characters))
        return rows

    def characters(self, session_id: int, first: int) -> int | None:
        """Return how many characters the context had when last read; None if it is not cached."""
        held = self._held.get(session_id)
        return held.characters if held is not None and held.first == first else None

    def clear(self) -> None:
        """Drop all cached rows."""
        self._held.clear()

    def _keep(self, session_id: int, context: _Context) -> None:
        self._held[session_id] = context
        while self._held and self.size > self._most:
            self._held.popitem(last=False)

    def _stands(self, conn: sqlite3.Connection, session_id: int, held: _Context) -> bool:
        found = conn.execute(_DIGEST, (session_id, held.rows[-1].seq)).fetchone()
        return found is not None and found["digest"] == held.digest

    def _listen(self, conn: sqlite3.Connection) -> None:
        """Create the triggers that report changed rows, if the connection is a new one."""
        if self._conn is conn:
            return
        self.clear()
        name = f"contexts_{id(self)}"  # unique: the connection keeps this object alive
        conn.create_function(name, 0, self.clear)
        for event in ("UPDATE", "DELETE"):
            conn.execute(_TELL.format(name=name, event=event))
        self._conn = conn


class _Context(Struct):
    """The cached rows of a session from number `first` on. `digest` is that of the last row, which
    must still be stored: rows of a transaction that failed later may have been read.
    """

    first: int
    rows: tuple[Row, ...]
    digest: bytes
    characters: int

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return self.characters + ROW_OVERHEAD * len(self.rows)


def _summary_of(conn: sqlite3.Connection, found: sqlite3.Row) -> str:
    """Return the summary from a session's columns. In the owner's sessions a summary that contains
    text from outside, as earlier versions wrote them, is replaced by a line that says so.
    """
    summary, key = str(found["summary"]), SessionKey(found["key"])
    if not summary or kind_of(key) is not SessionKind.OWNER:
        return summary
    row = conn.execute(_SUMMARY, (found["id"], found["swapped_at"])).fetchone()
    if row is None or not TextSource.parse(row["source"]).tainted:
        return summary
    return removal_notice(key, found["swapped_at"], "a summary that holds text from outside")


def _title_of(row: Row) -> str:
    """Return the title of a session whose oldest user row is this one."""
    return well_formed(_opening_line(row)[:TITLE_LENGTH])


def _opening_line(row: Row) -> str:
    return row.text.strip().split("\n", 1)[0]


def _newest(conn: sqlite3.Connection, found: sqlite3.Row, most: int) -> tuple[int, int]:
    """Return the first of the newest rows of a context with about `most` characters, and how many
    characters precede it.
    """
    session, start = found["id"], found["context_from"]
    newest = conn.execute(_NEWEST, {"session": session, "first": start, "most": most}).fetchone()
    first = found["rows"] if newest["first"] is None else newest["first"]
    return first, conn.execute(_SIZE, (session, start, first)).fetchone()["size"]


def _context_rows(conn: sqlite3.Connection, session_id: int, first: int) -> tuple[Row, ...]:
    found = conn.execute(_IN_CONTEXT, (session_id, first))
    return without_loose_calls([load_row(r) for r in found])


def _load_info(found: sqlite3.Row) -> SessionInfo:
    return SessionInfo(
        key=SessionKey(found["key"]),
        title=found["title"],
        created_at=moment(found["created_at"]),
        updated_at=moment(found["updated_at"]),
        rows=found["rows"],
        turns=found["turns"],
        context_tokens=found["context_tokens"],
        generation=found["generation"],
        cwd=found["cwd"],
        flush_due=bool(found["flush_due"]),
        trouble=_load_trouble(found),
    )


def _load_trouble(found: sqlite3.Row) -> SummaryTrouble:
    at = found["summary_retry_at"]
    retry_at = None if at is None else moment(at)
    return SummaryTrouble(found["summary_failures"], found["summary_failure"], retry_at)
