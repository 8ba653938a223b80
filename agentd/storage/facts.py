"""What is known about the user, in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from agentd.domain.erasure import Needles
from agentd.domain.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Provenance,
    Sighting,
    Triple,
)
from agentd.domain.turn import SessionKey
from agentd.storage.codec import dumps, maybe_moment, maybe_stamp, moment, stamp, well_formed
from agentd.storage.sqlite import Database

_ALL = "SELECT * FROM facts ORDER BY noted_at, id"
_PUT = """
INSERT INTO facts (id, text, category, source, confidence, valid_from, noted_at, status, valid_to,
    superseded_by, session, seq, triple)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET text = excluded.text, category = excluded.category,
    source = excluded.source, confidence = excluded.confidence, valid_from = excluded.valid_from,
    noted_at = excluded.noted_at, status = excluded.status, valid_to = excluded.valid_to,
    superseded_by = excluded.superseded_by, session = excluded.session, seq = excluded.seq,
    triple = excluded.triple
"""
_DROP_STALE_VECTORS = """
DELETE FROM fact_vectors WHERE fact_id = ?1
    AND EXISTS (SELECT 1 FROM facts WHERE id = ?1 AND text <> ?2)
"""
_MARK = """
INSERT INTO fact_marks (session, seq) VALUES (?, ?)
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq WHERE excluded.seq > seq
"""
_SEEN = "INSERT OR IGNORE INTO fact_sightings (fact_id, at, session, seq) VALUES (?, ?, ?, ?)"
_UNLINK_SIGHTINGS = "UPDATE OR REPLACE fact_sightings SET session = '', seq = 0 WHERE session = ?"
_SIGHTINGS = """
SELECT * FROM fact_sightings WHERE fact_id IN (SELECT value FROM json_each(?)) ORDER BY at, id
"""
_PUT_VECTOR = """
INSERT INTO fact_vectors (fact_id, model, vector) SELECT id, ?2, ?3 FROM facts
WHERE id = ?1 AND status <> 'forgotten'
ON CONFLICT (fact_id, model) DO UPDATE SET vector = excluded.vector
"""


class SqliteFacts:
    """The FactStore of the state database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def facts(self) -> tuple[Fact, ...]:
        """See FactStore."""
        return await self._db.read(rows_of)

    async def save(
        self,
        facts: Sequence[Fact],
        *,
        marks: Mapping[SessionKey, int] | None = None,
        sightings: Sequence[Sighting] = (),
    ) -> None:
        """See FactStore. Marks never go back; the same sighting counts once."""

        def change(conn: sqlite3.Connection) -> None:
            for fact in facts:
                conn.execute(_DROP_STALE_VECTORS, (fact.id, well_formed(fact.text)))
            conn.executemany(_PUT, map(_columns, facts))
            conn.executemany(_MARK, (marks or {}).items())
            conn.executemany(_SEEN, map(_sighting, sightings))

        await self._db.write(change)

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        """See FactStore. Vectors stay where the words are the same."""

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

    async def sightings(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Sighting]]:
        """See FactStore."""
        ids = json.dumps(list(fact_ids))
        rows = await self._db.read(lambda conn: conn.execute(_SIGHTINGS, (ids,)).fetchall())
        found: dict[str, list[Sighting]] = {fact_id: [] for fact_id in fact_ids}
        for row in rows:
            found[row["fact_id"]].append(
                Sighting(row["fact_id"], moment(row["at"]), _provenance(row))
            )
        return found

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        """See FactStore."""

        def change(conn: sqlite3.Connection) -> None:
            for fact_id in fact_ids:
                known = conn.execute("SELECT 1 FROM facts WHERE id = ?", (fact_id,)).fetchone()
                if known:
                    put_row(conn, Fact.grave(fact_id, at))
                conn.execute("DELETE FROM fact_vectors WHERE fact_id = ?", (fact_id,))
                conn.execute("DELETE FROM fact_sightings WHERE fact_id = ?", (fact_id,))
            hashes = ((digest, stamp(at)) for digest in digests)
            conn.executemany("INSERT OR IGNORE INTO fact_tombstones VALUES (?, ?)", hashes)

        await self._db.write(change)

    async def buried(self) -> frozenset[bytes]:
        """See FactStore."""
        query = "SELECT digest FROM fact_tombstones"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return frozenset(row["digest"] for row in rows)

    async def unbury(self, digests: Sequence[bytes]) -> None:
        """See FactStore."""
        query, values = "DELETE FROM fact_tombstones WHERE digest = ?", [(d,) for d in digests]

        def change(conn: sqlite3.Connection) -> None:
            conn.executemany(query, values)

        await self._db.write(change)

    async def park(self, fact_ids: Sequence[str]) -> None:
        """See FactStore."""

        def change(conn: sqlite3.Connection) -> None:
            conn.execute("DELETE FROM fact_parked")
            rows = ((fact_id,) for fact_id in fact_ids)
            conn.executemany("INSERT INTO fact_parked (fact_id) VALUES (?)", rows)

        await self._db.write(change)

    async def parked(self) -> tuple[str, ...]:
        """See FactStore."""
        query = "SELECT fact_id FROM fact_parked ORDER BY position"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return tuple(row["fact_id"] for row in rows)

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        """See FactStore."""
        values = (fact_id, stamp(at), accepted)

        def change(conn: sqlite3.Connection) -> None:
            conn.execute("INSERT OR REPLACE INTO fact_answers VALUES (?, ?, ?)", values)

        await self._db.write(change)

    async def answered(self) -> Mapping[str, bool]:
        """See FactStore."""
        query = "SELECT fact_id, accepted FROM fact_answers"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return {row["fact_id"]: bool(row["accepted"]) for row in rows}

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        """See FactStore."""
        query = "SELECT fact_id, vector FROM fact_vectors WHERE model = ?"
        rows = await self._db.read(lambda conn: conn.execute(query, (model,)).fetchall())
        return {row["fact_id"]: row["vector"] for row in rows}

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """See FactStore."""
        values = [(fact_id, model, vector) for fact_id, vector in vectors.items()]

        def change(conn: sqlite3.Connection) -> None:
            conn.executemany(_PUT_VECTOR, values)

        await self._db.write(change)

    async def begin_erasure(self, needles: Needles) -> int:
        """See FactStore. The same words are not kept twice."""
        text = dumps(needles.as_json())

        def change(conn: sqlite3.Connection) -> int:
            known = conn.execute("SELECT id FROM fact_erasures WHERE needles = ?", (text,))
            if found := known.fetchone():
                return int(found["id"])
            query = "INSERT INTO fact_erasures (needles) VALUES (?) RETURNING id"
            ((number,),) = conn.execute(query, (text,)).fetchall()
            return int(number)

        return await self._db.write(change)

    async def erasures(self) -> Mapping[int, Needles]:
        """See FactStore."""
        query = "SELECT * FROM fact_erasures ORDER BY id"
        rows = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return {row["id"]: Needles.from_json(json.loads(row["needles"])) for row in rows}

    async def end_erasure(self, number: int) -> None:
        """See FactStore. Slow: the database is written anew."""
        query = "DELETE FROM fact_erasures WHERE id = ?"
        await self._db.erase(lambda conn: conn.execute(query, (number,)).rowcount)


def rows_of(conn: sqlite3.Connection) -> tuple[Fact, ...]:
    """All facts, the oldest first."""
    return tuple(map(_load, conn.execute(_ALL)))


def put_row(conn: sqlite3.Connection, fact: Fact) -> None:
    """Add the fact, or let the one of its id be so."""
    conn.execute(_PUT, _columns(fact))


def unlink_session(conn: sqlite3.Connection, session: SessionKey) -> None:
    """Let no fact know any more that it was said in this session."""
    conn.execute("UPDATE facts SET session = '', seq = 0 WHERE session = ?", (session,))
    conn.execute(_UNLINK_SIGHTINGS, (session,))
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
    )


def _sighting(sighting: Sighting) -> tuple[object, ...]:
    origin = sighting.origin
    return (sighting.fact_id, stamp(sighting.at), origin.session, origin.seq)


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
    )


def _provenance(row: sqlite3.Row) -> Provenance:
    return Provenance(SessionKey(row["session"]), row["seq"])
