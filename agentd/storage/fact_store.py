"""Facts about the user, and hashes of forgotten ones, in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from msgspec.structs import replace

from agentd.core.fact import (
    Category,
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactSource,
    FactStatus,
    FactWrite,
    FormerState,
    Provenance,
    Triple,
)
from agentd.core.health import Problem
from agentd.core.text import well_formed
from agentd.core.turn import SessionKey
from agentd.storage.codec import UnreadableRows, dumps, maybe_moment, maybe_stamp, moment, stamp
from agentd.storage.sqlite import Database

_ALL = "SELECT * FROM facts ORDER BY noted_at, id"
_THESE = "SELECT * FROM facts WHERE id IN (SELECT value FROM json_each(?))"
_TELL = """
CREATE TEMP TRIGGER {name}_{event}_{row} AFTER {event} ON main.facts
BEGIN SELECT {name}({row}.id); END
"""
_age = attrgetter("noted_at", "id")
_PUT = """
INSERT INTO facts (id, text, category, source, confidence, valid_from, noted_at, status, valid_to,
    superseded_by, session, seq, triple, replaces)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET text = excluded.text, category = excluded.category,
    source = excluded.source, confidence = excluded.confidence, valid_from = excluded.valid_from,
    noted_at = excluded.noted_at, status = excluded.status, valid_to = excluded.valid_to,
    superseded_by = excluded.superseded_by, session = excluded.session, seq = excluded.seq,
    triple = excluded.triple, replaces = excluded.replaces
"""
_DROP_STALE_VECTORS = """
DELETE FROM fact_vectors WHERE fact_id = ?1
    AND EXISTS (SELECT 1 FROM facts WHERE id = ?1 AND text <> ?2)
"""
_MARK = """
INSERT INTO fact_marks (session, seq) VALUES (?, ?)
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > seq
"""
_PUT_EVIDENCE = """
INSERT OR IGNORE INTO fact_evidence (fact_id, at, session, seq, begins, ends, is_context)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_DROP_UNPLACED = """
DELETE FROM fact_evidence
WHERE fact_id = ? AND session = ? AND seq = ? AND ends = 0 AND session <> ''
"""
_EVIDENCE = """
SELECT * FROM fact_evidence WHERE fact_id IN (SELECT value FROM json_each(?)) ORDER BY at, id
"""
_UNLINK_EVIDENCE = """
UPDATE OR REPLACE fact_evidence SET session = '', seq = 0, begins = 0, ends = 0 WHERE session = ?
"""
_PUT_CHANGE = (
    "INSERT INTO fact_changes (at, session, op, new, before) VALUES (?, ?, ?, ?, ?) RETURNING id"
)
_PUT_VECTOR = """
INSERT INTO fact_vectors (fact_id, model, vector) SELECT id, ?2, ?3 FROM facts
WHERE id = ?1 AND status <> 'forgotten'
ON CONFLICT (fact_id, model) DO UPDATE SET vector = excluded.vector
"""

_BURY = "INSERT OR REPLACE INTO fact_tombstones VALUES (?, ?)"
_REMOVE = (
    "DELETE FROM fact_vectors WHERE fact_id = ?",
    "DELETE FROM fact_evidence WHERE fact_id = ?",
    "DELETE FROM facts WHERE id = ?",
)


class _HeldFacts:
    """The facts as last read. Triggers of the connection report each changed row, whatever changed
    it; that fact is dropped at once, and it alone is read again. Used on the database's thread
    only.
    """

    def __init__(self, unreadable: UnreadableRows) -> None:
        self._unreadable = unreadable
        self._conn: sqlite3.Connection | None = None
        self._facts: dict[str, Fact] | None = None  # None: all must be read
        self._changed: set[str] = set()
        self._all: tuple[Fact, ...] | None = None

    def read(self, conn: sqlite3.Connection) -> tuple[Fact, ...]:
        """Return all facts, oldest first."""
        if conn is not self._conn:
            self._follow(conn)
        if self._facts is None:
            self._all = self._unreadable.readable(conn.execute(_ALL), _load)
            self._facts = {fact.id: fact for fact in self._all}
            self._changed.clear()
        elif self._changed:
            rows = conn.execute(_THESE, (json.dumps(list(self._changed)),)).fetchall()
            self._facts.update((f.id, f) for f in self._unreadable.readable(rows, _load))
            self._changed.clear()
        if self._all is None:
            self._all = tuple(sorted(self._facts.values(), key=_age))
        return self._all

    def _follow(self, conn: sqlite3.Connection) -> None:
        self._facts, self._all = None, None
        name = f"facts_{id(self)}"  # unique: the connection keeps this object alive
        conn.create_function(name, 1, self._let_go)
        for event, row in (
            ("INSERT", "NEW"),
            ("UPDATE", "NEW"),
            ("UPDATE", "OLD"),
            ("DELETE", "OLD"),
        ):
            conn.execute(_TELL.format(name=name, event=event, row=row))
        self._conn = conn

    def _let_go(self, fact_id: str) -> None:
        self._changed.add(fact_id)
        self._unreadable.gone(fact_id)  # until it turns out unreadable again
        self._all = None
        if self._facts is not None:
            self._facts.pop(fact_id, None)


class SqliteFacts:
    """The FactStore, FactVectorStore and ProposalStore of the state database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._unreadable = UnreadableRows(
            "fact", "`agentd restart` takes it from its line in memory/facts.md again"
        )
        self._changes = UnreadableRows("change of facts", "it cannot be undone; no fact misses")
        self._held = _HeldFacts(self._unreadable)

    def problems(self) -> tuple[Problem, ...]:
        """The facts and changes whose rows are unreadable."""
        return (*self._unreadable.problems(), *self._changes.problems())

    async def facts(self) -> tuple[Fact, ...]:
        """See FactStore. Rows that have not changed are not read again."""
        return await self._db.read(self._held.read)

    async def write(self, write: FactWrite) -> tuple[FactChange, ...]:
        """See FactStore."""

        def change(conn: sqlite3.Connection) -> tuple[FactChange, ...]:
            for fact in write.facts:
                conn.execute(_DROP_STALE_VECTORS, (fact.id, well_formed(fact.text)))
            conn.executemany(_PUT, map(_columns, write.facts))
            for fact_id in write.removed:
                for query in _REMOVE:
                    conn.execute(query, (fact_id,))
            placed = ((e.fact_id, e.session, e.seq) for e in write.evidence if e.end)
            conn.executemany(_DROP_UNPLACED, placed)
            conn.executemany(_PUT_EVIDENCE, map(_evidence_columns, write.evidence))
            conn.executemany(_MARK, write.marks.items())
            undone = ((number,) for number in write.undone)
            conn.executemany("UPDATE fact_changes SET undone = 1 WHERE id = ?", undone)
            conn.executemany(_BURY, ((digest, stamp(at)) for digest, at in write.buried.items()))
            unburied = ((digest,) for digest in write.unburied)
            conn.executemany("DELETE FROM fact_tombstones WHERE digest = ?", unburied)
            if write.parked is not None:
                conn.execute("DELETE FROM fact_parked")
                parked = ((fact_id,) for fact_id in write.parked)
                conn.executemany("INSERT INTO fact_parked (fact_id) VALUES (?)", parked)
            return tuple(_put_change(conn, one) for one in write.changes)

        return await self._db.write(change)

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        """See FactStore. A fact whose text is unchanged keeps its vectors."""

        def change(conn: sqlite3.Connection) -> None:
            ids = json.dumps([fact.id for fact in facts])
            conn.execute(
                "DELETE FROM facts WHERE id NOT IN (SELECT value FROM json_each(?))", (ids,)
            )
            conn.executemany(_DROP_STALE_VECTORS, ((f.id, well_formed(f.text)) for f in facts))
            conn.executemany(_PUT, map(_columns, facts))

        await self._db.write(change)

    async def marks(self) -> Mapping[SessionKey, int]:
        """See FactStore."""
        rows = await self._db.read(lambda c: c.execute("SELECT * FROM fact_marks").fetchall())
        return {SessionKey(row["session"]): row["seq"] for row in rows}

    async def evidence(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        """See FactStore."""
        ids = json.dumps(list(fact_ids))
        rows = await self._db.read(lambda conn: conn.execute(_EVIDENCE, (ids,)).fetchall())
        found: dict[str, list[Evidence]] = {fact_id: [] for fact_id in fact_ids}
        for row in rows:
            found[row["fact_id"]].append(_load_evidence(row))
        return found

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """See FactStore."""
        query = "SELECT * FROM fact_changes ORDER BY id DESC LIMIT ?"
        rows = await self._db.read(lambda conn: conn.execute(query, (limit,)).fetchall())
        return self._changes.readable(rows, _load_change)

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        """See FactStore."""

        def change(conn: sqlite3.Connection) -> None:
            for fact_id in fact_ids:
                known = conn.execute("SELECT 1 FROM facts WHERE id = ?", (fact_id,)).fetchone()
                if known:
                    put_row(conn, Fact.tombstone(fact_id, at))
                conn.execute("DELETE FROM fact_vectors WHERE fact_id = ?", (fact_id,))
                conn.execute("DELETE FROM fact_evidence WHERE fact_id = ?", (fact_id,))
            conn.executemany(_BURY, ((digest, stamp(at)) for digest in digests))

        await self._db.write(change)

    async def tombstones(self) -> Mapping[bytes, datetime]:
        """See FactStore."""
        query = "SELECT digest, at FROM fact_tombstones"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return {row["digest"]: moment(row["at"]) for row in rows}

    async def parked_ids(self) -> tuple[str, ...]:
        """See FactStore."""
        query = "SELECT fact_id FROM fact_parked ORDER BY position"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return tuple(row["fact_id"] for row in rows)

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        """See ProposalStore."""
        values = (fact_id, stamp(at), accepted)

        def change(conn: sqlite3.Connection) -> None:
            conn.execute("INSERT OR REPLACE INTO fact_answers VALUES (?, ?, ?)", values)

        await self._db.write(change)

    async def answers(self) -> Mapping[str, bool]:
        """See ProposalStore."""
        query = "SELECT fact_id, accepted FROM fact_answers"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return {row["fact_id"]: bool(row["accepted"]) for row in rows}

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        """See FactVectorStore."""
        query = "SELECT fact_id, vector FROM fact_vectors WHERE model = ?"
        rows = await self._db.read(lambda conn: conn.execute(query, (model,)).fetchall())
        return {row["fact_id"]: row["vector"] for row in rows}

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """See FactVectorStore."""
        values = [(fact_id, model, vector) for fact_id, vector in vectors.items()]

        def change(conn: sqlite3.Connection) -> None:
            conn.executemany(_PUT_VECTOR, values)

        await self._db.write(change)


def put_row(conn: sqlite3.Connection, fact: Fact) -> None:
    """Insert the fact, or overwrite the one with its id."""
    conn.execute(_PUT, _columns(fact))


def unlink_session(conn: sqlite3.Connection, session: SessionKey) -> None:
    """Remove the session from the facts and evidence that came from it, and the mark of how far it
    was read.
    """
    conn.execute("UPDATE facts SET session = '', seq = 0 WHERE session = ?", (session,))
    conn.execute(_UNLINK_EVIDENCE, (session,))
    conn.execute("DELETE FROM fact_marks WHERE session = ?", (session,))


def _columns(fact: Fact) -> tuple[object, ...]:
    triple = fact.triple
    fields = triple and dumps([triple.subject, triple.relation, triple.value])
    return (
        fact.id,
        well_formed(fact.text),
        fact.category,
        fact.source,
        fact.confidence,
        stamp(fact.valid_from),
        stamp(fact.noted_at),
        fact.status,
        maybe_stamp(fact.valid_to),
        fact.superseded_by,
        fact.origin.session,
        fact.origin.seq,
        fields,
        ",".join(fact.replaces),
    )


def _evidence_columns(one: Evidence) -> tuple[object, ...]:
    said = (one.session, one.seq, one.start, one.end, one.is_context)
    return (one.fact_id, stamp(one.at), *said)


def _load_evidence(row: sqlite3.Row) -> Evidence:
    return Evidence(
        moment(row["at"]),
        SessionKey(row["session"]),
        row["seq"],
        row["begins"],
        row["ends"],
        is_context=bool(row["is_context"]),
        fact_id=row["fact_id"],
    )


def _put_change(conn: sqlite3.Connection, change: FactChange) -> FactChange:
    before = [[b.id, b.status, maybe_stamp(b.valid_to), b.superseded_by] for b in change.before]
    values = (stamp(change.at), change.session, change.op, change.new, dumps(before))
    ((number,),) = conn.execute(_PUT_CHANGE, values).fetchall()
    return replace(change, id=int(number))


def _load_change(row: sqlite3.Row) -> FactChange:
    before = tuple(
        FormerState(fact_id, FactStatus(status), maybe_moment(until), by)
        for fact_id, status, until, by in json.loads(row["before"])
    )
    return FactChange(
        ChangeKind(row["op"]),
        moment(row["at"]),
        SessionKey(row["session"]),
        row["new"],
        before,
        row["id"],
        bool(row["undone"]),
    )


def _load(row: sqlite3.Row) -> Fact:
    return Fact(
        id=row["id"],
        text=row["text"],
        category=Category(row["category"]),
        source=FactSource(row["source"]),
        confidence=row["confidence"],
        valid_from=moment(row["valid_from"]),
        noted_at=moment(row["noted_at"]),
        status=FactStatus(row["status"]),
        valid_to=maybe_moment(row["valid_to"]),
        superseded_by=row["superseded_by"],
        origin=_provenance(row),
        triple=Triple(*json.loads(row["triple"])) if row["triple"] else None,
        replaces=tuple(filter(None, row["replaces"].split(","))),
    )


def _provenance(row: sqlite3.Row) -> Provenance:
    return Provenance(SessionKey(row["session"]), row["seq"])


Digest = Callable[[str], bytes]


def tombstones_in(file: Path) -> frozenset[bytes] | None:
    """Return the hashes of all forgotten facts in a database file; None if it is missing or
    unreadable.
    """
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            return frozenset(row[0] for row in conn.execute("SELECT digest FROM fact_tombstones"))
    except sqlite3.DatabaseError:
        return None


def bury_again(file: Path, tombstones: frozenset[bytes], digest: Digest, now: datetime) -> int:
    """Forget each fact whose text `digest` maps to one of the tombstones, and store the tombstones;
    return how many facts were forgotten. Their evidence stays: it shows where the words are.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA secure_delete = ON")
        conn.execute("BEGIN IMMEDIATE")
        # Selected by text alone: a fact with other columns damaged is forgotten as well.
        rows = conn.execute("SELECT id, text FROM facts WHERE text <> ''").fetchall()
        found = [row["id"] for row in rows if digest(row["text"]) in tombstones]
        for fact_id in found:
            put_row(conn, Fact.tombstone(fact_id, now))
            conn.execute("DELETE FROM fact_vectors WHERE fact_id = ?", (fact_id,))
        kept = [(tombstone, stamp(now)) for tombstone in tombstones]
        conn.executemany("INSERT OR IGNORE INTO fact_tombstones VALUES (?, ?)", kept)
        conn.execute("COMMIT")
    return len(found)
