"""The SessionStore in SQLite: inbox, transcripts and contexts; forks of sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from agentd.core.errors import Busy
from agentd.core.message import Text
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.text import well_formed
from agentd.core.transcript import (
    Choices,
    Coverage,
    History,
    NewRow,
    Row,
    RowRole,
    SessionInfo,
    SummaryTrouble,
    summary_rows,
)
from agentd.core.turn import MAIN, PendingTurn, Receipt, SessionKey, Turn, TurnRequest
from agentd.storage import inbox, transcript
from agentd.storage.codec import stamp
from agentd.storage.proofs import digest_of, is_proven
from agentd.storage.redacting import redact_request, redact_row, redact_turn
from agentd.storage.sqlite import Database
from agentd.storage.transcript import ContextCache, find_session, require_session

_PARK = """
UPDATE turns SET attempts = max(0, attempts - 1),
    state = CASE WHEN ? AND state = 'running' THEN 'waiting' ELSE state END
WHERE id = ? AND ended_at IS NULL
"""
_SWAP = """
UPDATE sessions SET generation = generation + 1, context_from = ?, summary = ?, swapped_at = rows,
    excerpted = 0
WHERE id = ?
"""
_COVER = """
UPDATE sessions SET covered_to = max(covered_to, ?), flush_failures = 0, flush_failure = '',
    flush_due = 0
WHERE id = ?
"""
_TROUBLE = """
UPDATE sessions SET summary_failures = ?, summary_failure = ?, summary_retry_at = ? WHERE id = ?
"""
_UNERASED = "SELECT id, session FROM deletions ORDER BY id"
_ERASED = "DELETE FROM deletions WHERE id = ?"
_UNUSED_FOR = timedelta(days=1)  # a client may still use a session that it created
_CHOOSE = "UPDATE sessions SET mode = ?, model = ?, effort = ? WHERE id = ?"
_COUNT_FAILURE = """
UPDATE sessions SET flush_failures = flush_failures + 1, flush_failure = ? WHERE id = ?
RETURNING flush_failures
"""


class SqliteSessions:
    """The SessionStore of the state database. Secrets that `redactor` finds are not stored; most
    texts are searched on the database's thread, since they may be long.
    """

    def __init__(self, db: Database, clock: Clock, redactor: Redactor | None = None) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._contexts = ContextCache()

    async def receive(self, request: TurnRequest) -> Receipt:
        """See Inbox. Raises InvalidRequest for text with an unpaired surrogate."""
        inbox.check_storable(request)
        now = self._clock.now()

        def take(conn: sqlite3.Connection) -> Receipt:
            kept, redacted = redact_request(request, self._redactor)
            return inbox.receive(conn, kept, now, redacted)

        return await self._db.write(take)

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        """See Inbox. Raises NotFound, InvalidRequest for a turn that has ended."""
        now = self._clock.now()
        return await self._db.write(lambda conn: inbox.begin(conn, turn_id, now))

    async def append(self, turn_id: int, row: NewRow) -> Row:
        """See Inbox. Raises as `begin` does."""
        now = self._clock.now()

        def add(conn: sqlite3.Connection) -> Row:
            return inbox.append(conn, turn_id, redact_row(row, self._redactor), now)

        return await self._db.write(add)

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        """See Inbox. A turn that never began first gets its user row, which is not among the
        returned rows. Raises as `begin` does.
        """
        now = self._clock.now()

        def end(conn: sqlite3.Connection) -> tuple[Row, ...]:
            kept = [redact_row(row, self._redactor) for row in rows]
            return inbox.finish(conn, turn_id, redact_turn(turn, self._redactor), kept, now)

        return await self._db.write(end)

    async def park(self, turn_id: int, *, waits: bool = False) -> None:
        """See Inbox. Does nothing for a turn that has ended: the caller may have been
        cancelled while the end was being stored.
        """
        await self._db.execute(_PARK, (waits, turn_id))

    async def pending(self) -> tuple[PendingTurn, ...]:
        """See Inbox."""
        return await self._db.read(inbox.pending)

    async def load(self, session: SessionKey, most: int | None = None) -> History:
        """See Contexts."""
        return await self._db.read(
            lambda conn: transcript.load_history(conn, session, self._contexts, most)
        )

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        """See Transcripts. Raises NotFound."""
        now = self._clock.now()
        new = redact_row(NewRow(RowRole.NOTICE, (Text(text),), tag=tag), self._redactor)

        def add(conn: sqlite3.Connection) -> Row:
            found = transcript.require_session(conn, session, now)
            return transcript.add_row(conn, found["id"], new, now)

        return await self._db.write(add)

    async def swap(
        self,
        session: SessionKey,
        generation: int,
        keep_from: int,
        summary: str,
        outside: str = "",
    ) -> bool:
        """See Contexts. Raises NotFound."""
        now = self._clock.now()
        summary = self._redactor.kept(summary).text

        def change(conn: sqlite3.Connection) -> bool:
            found = transcript.require_session(conn, session, now)
            if found["generation"] != generation:
                return False
            for new in summary_rows(session, summary, outside):
                transcript.add_row(conn, found["id"], redact_row(new, self._redactor), now)
            conn.execute(_SWAP, (keep_from, well_formed(summary), found["id"]))
            return True

        return await self._db.write(change)

    async def set_trouble(self, session: SessionKey, trouble: SummaryTrouble) -> None:
        """See Contexts. Raises NotFound."""
        now = self._clock.now()
        at = None if trouble.retry_at is None else stamp(trouble.retry_at)
        values = (trouble.failures, well_formed(trouble.reason), at)

        def change(conn: sqlite3.Connection) -> None:
            found = transcript.require_session(conn, session, now)
            conn.execute(_TROUBLE, (*values, found["id"]))

        await self._db.write(change)

    async def mark_excerpted(self, session: SessionKey) -> None:
        """See Contexts."""
        await self._db.execute("UPDATE sessions SET excerpted = 1 WHERE key = ?", (session,))

    async def cover(self, session: SessionKey, coverage: Coverage) -> None:
        """See Contexts. Raises NotFound."""
        now = self._clock.now()

        def record(conn: sqlite3.Connection) -> None:
            found = transcript.require_session(conn, session, now)
            conn.execute(
                "INSERT INTO coverages (session_id, first, last, ok, reason, at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    found["id"],
                    coverage.first,
                    coverage.last,
                    coverage.ok,
                    well_formed(coverage.reason),
                    stamp(now),
                ),
            )
            conn.execute(_COVER, (coverage.last, found["id"]))

        await self._db.write(record)

    async def flush_failed(self, session: SessionKey, reason: str) -> int:
        """See Contexts. Raises NotFound."""
        now = self._clock.now()

        def count(conn: sqlite3.Connection) -> int:
            found = transcript.require_session(conn, session, now)
            ((failures,),) = conn.execute(
                _COUNT_FAILURE, (well_formed(reason), found["id"])
            ).fetchall()
            return int(failures)

        return await self._db.write(count)

    async def last_asked(self, session: SessionKey, start: str) -> str:
        """See Contexts."""
        return await self._db.read(lambda conn: inbox.last_asked(conn, session, start))

    async def coverages(self, session: SessionKey) -> tuple[Coverage, ...]:
        """See Contexts."""

        def find(conn: sqlite3.Connection) -> tuple[Coverage, ...]:
            found = conn.execute(
                "SELECT c.* FROM coverages c JOIN sessions s ON s.id = c.session_id"
                " WHERE s.key = ? ORDER BY c.id",
                (session,),
            )
            return tuple(Coverage(c["first"], c["last"], bool(c["ok"]), c["reason"]) for c in found)

        return await self._db.read(find)

    async def set_flush_due(self, sessions: Sequence[SessionKey]) -> None:
        """See Contexts."""
        keys = [(key,) for key in sessions]

        def mark(conn: sqlite3.Connection) -> None:
            conn.executemany("UPDATE sessions SET flush_due = 1 WHERE key = ?", keys)

        await self._db.write(mark)

    async def create(self, session: SessionKey, cwd: str = "") -> bool:
        """See SessionRegistry."""
        now = self._clock.now()

        def make(conn: sqlite3.Connection) -> bool:
            return transcript.make_session(conn, session, now, cwd) and session != MAIN

        return await self._db.write(make)

    async def drop_unused(self) -> int:
        """Delete sessions that clients created without a name more than a day ago and never used;
        return how many. Raises StorageError.
        """
        before = self._clock.now() - _UNUSED_FOR
        if not await self._db.read(lambda conn: transcript.unused_sessions(conn, before)):
            return 0
        return await self._db.write(lambda conn: transcript.drop_unused(conn, before))

    async def exists(self, session: SessionKey) -> bool:
        """See Transcripts."""
        if session == MAIN:
            return True
        return await self._db.read(lambda conn: transcript.find_session(conn, session) is not None)

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """See Transcripts."""
        stored = await self._db.read(transcript.list_sessions)
        if any(s.key == MAIN for s in stored):
            return stored
        now = self._clock.now()
        return (*stored, SessionInfo(MAIN, "", now, now, 0, 0, 0, 0))

    async def row_counts(self) -> Mapping[SessionKey, int]:
        """See Transcripts."""
        return await self._db.read(transcript.row_counts)

    async def rows(
        self, session: SessionKey, first: int = 1, limit: int | None = None
    ) -> tuple[Row, ...]:
        """See Transcripts. Raises NotFound if there is no such session."""

        def find(conn: sqlite3.Connection) -> tuple[Row, ...]:
            found = transcript.find_session(conn, session)
            if found is not None:
                return transcript.slice_rows(conn, found["id"], first, limit)
            if session == MAIN:
                return ()
            raise transcript.unknown(session)

        return await self._db.read(find)

    async def recent(self, session: SessionKey, turns: int) -> tuple[Row, ...]:
        """See Transcripts. Empty for an unknown session."""

        def find(conn: sqlite3.Connection) -> tuple[Row, ...]:
            found = transcript.find_session(conn, session)
            return transcript.recent_rows(conn, found["id"], turns) if found else ()

        return await self._db.read(find)

    async def add_rows(self, session: SessionKey, rows: Sequence[tuple[NewRow, datetime]]) -> int:
        """See Transcripts. Returns how many rows the session now has.

        Raises Busy if it has rows already.
        """
        now = self._clock.now()

        def add(conn: sqlite3.Connection) -> int:
            transcript.make_session(conn, session, rows[0][1] if rows else now)
            found = transcript.require_session(conn, session, now)
            if found["rows"]:
                raise Busy(
                    f"session {session!r} has messages already",
                    cure="import it with --as KEY, or delete the session first",
                )
            for new, at in rows:
                transcript.add_row(conn, found["id"], redact_row(new, self._redactor), at)
            return len(rows)

        return await self._db.write(add)

    async def last_heard(self) -> tuple[datetime, str] | None:
        """See Transcripts."""
        return await self._db.read(inbox.last_heard)

    async def choices(self, session: SessionKey) -> Choices:
        """See SessionRegistry."""

        def find(conn: sqlite3.Connection) -> Choices:
            found = transcript.find_session(conn, session)
            return Choices() if found is None else transcript.load_choices(found)

        return await self._db.read(find)

    async def choose(self, session: SessionKey, choices: Choices) -> None:
        """See SessionRegistry. Raises NotFound."""
        now = self._clock.now()

        def change(conn: sqlite3.Connection) -> None:
            found = transcript.require_session(conn, session, now)
            chosen = (choices.mode, choices.model, choices.effort, found["id"])
            conn.execute(_CHOOSE, chosen)

        await self._db.write(change)

    async def fork(self, session: SessionKey, copy: SessionKey, cwd: str = "") -> None:
        """See SessionRegistry. Raises NotFound, Busy."""
        now = self._clock.now()
        await self._db.write(lambda conn: fork_session(conn, session, copy, cwd, now))

    async def images(self) -> frozenset[str]:
        """See Transcripts."""
        return await self._db.read(transcript.referred_images)

    async def delete(self, session: SessionKey) -> None:
        """See SessionRegistry."""
        now = self._clock.now()
        await self._db.erase(lambda conn: transcript.delete_session(conn, session, now))

    async def unerased(self) -> Mapping[int, SessionKey]:
        """See SessionRegistry."""
        rows = await self._db.read(lambda conn: conn.execute(_UNERASED).fetchall())
        return {row["id"]: SessionKey(row["session"]) for row in rows}

    async def mark_erased(self, deletion: int) -> None:
        """See SessionRegistry."""
        await self._db.erase(lambda conn: conn.execute(_ERASED, (deletion,)).rowcount)


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
    """Copy a session up to the first turn that has not ended. Raises NotFound, and Busy if there is
    a session `key`.
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
