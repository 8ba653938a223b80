"""The ChunkStore in SQLite, the durable part of the search index: derived, may be deleted at any
time.

Its keyword search is used while no better one is ready.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentd.core.search import (
    OWNER,
    Audience,
    Entry,
    Hit,
    IndexState,
    LinePatch,
    SearchResult,
    Source,
    StoredChunk,
    Unembedded,
)
from agentd.storage import index_rows as rows
from agentd.storage.index_rows import CHUNK, CHUNKS, chunk_of
from agentd.storage.sqlite import Database

COVERAGE_WEIGHT = 0.6  # weight of the share of the query that a chunk contains; the rest is bm25
POSTINGS = 5_000  # postings that one search reads, of the rarest terms first; more are slow
OWN = 5_000  # newest chunks of a session's own that are searched: they are read one by one
SATURATION = 1.2  # bm25's k1

_COUNT_ALL = "SELECT count(*) FROM chunks"
_COUNT_SHARED = "SELECT count(*) FROM chunks WHERE scope = ''"
_COUNTED = "SELECT term, doc FROM vocabulary_PART WHERE term IN (SELECT value FROM json_each(?1))"
_FREQUENCIES = "SELECT term, sum(doc) AS doc FROM (COUNTED) GROUP BY term"
_MATCHING = """
SELECT * FROM (
    SELECT rowid AS id, rank FROM words_PART WHERE words_PART MATCH :match
        AND (:sources IS NULL OR (
            SELECT files.source FROM chunks JOIN files ON files.id = chunks.file_id
            WHERE chunks.id = words_PART.rowid
        ) IN (SELECT value FROM json_each(:sources)))
    ORDER BY rank, rowid LIMIT :limit
)
"""
_CANDIDATES = """
SELECT COLUMNS, c.terms FROM (MATCHING ORDER BY rank, id LIMIT :limit) m
JOIN chunks c ON c.id = m.id JOIN chunk_lines l ON l.id = m.id JOIN files f ON f.id = c.file_id
""".replace("COLUMNS", CHUNK)
_OWN = """
SELECT COLUMNS, c.terms FROM CHUNKS WHERE c.scope = ? ORDER BY c.id DESC LIMIT ?
""".replace("COLUMNS", CHUNK).replace("CHUNKS", CHUNKS)


class _Scope(Struct, frozen=True):
    """The statements for one of the two sets of search terms: all chunks, or the shared ones."""

    count: str
    frequencies: str
    candidates: str

    @classmethod
    def of(cls, count: str, parts: Sequence[str]) -> _Scope:
        """Return the statements for terms that are kept in these parts."""
        counted, matching = (
            " UNION ALL ".join(query.replace("PART", part) for part in parts)
            for query in (_COUNTED, _MATCHING)
        )
        frequencies = _FREQUENCIES.replace("COUNTED", counted)
        return cls(count, frequencies, _CANDIDATES.replace("MATCHING", matching))


_ALL = _Scope.of(_COUNT_ALL, rows.PARTS)
_SHARED = _Scope.of(_COUNT_SHARED, ("shared",))


def find(
    conn: sqlite3.Connection,
    terms: Sequence[str],
    audience: Audience,
    *,
    limit: int,
    sources: frozenset[Source] | None,
) -> SearchResult:
    """Return the chunks that match the terms best. Scores are in [0, 1]; equal ones are ordered by
    path and line.

    For all but the owner, only the shared chunks and the audience's own are counted, so that scores
    reveal nothing about words in other chunks.
    """
    scope = _ALL if audience == OWNER else _SHARED
    own = conn.execute(_OWN, (audience.own, OWN)).fetchall() if audience.own else []
    (shared,) = conn.execute(scope.count).fetchone()
    total = shared + len(own)
    if not total:
        return SearchResult((), "nothing_indexed")
    frequency = _frequency(conn, scope, terms, shared)
    held = [Counter(row["terms"].split()) for row in own]
    frequencies = Counter(frequency)
    frequencies.update(term for said in held for term in terms if term in said)
    if not frequencies:
        return SearchResult((), "no_match")
    weights = {term: _information(frequencies[term], total) for term in terms}
    hits = [
        _hit(row, _bm25(said, weights), weights)
        for row, said in zip(own, held, strict=True)
        if not said.keys().isdisjoint(weights) and (sources is None or row["source"] in sources)
    ]
    if frequency:
        values = {
            "match": " OR ".join(f'"{term}"' for term in _affordable(frequency)),
            "sources": None if sources is None else json.dumps(sorted(sources)),
            "limit": 2 * limit + 30,  # coverage may lift a chunk above those that bm25 prefers
        }
        # Scores of the full-text tables are relative to the part that a chunk is in.
        found = conn.execute(scope.candidates, values).fetchall()
        said = [Counter(row["terms"].split()) for row in found]
        hits += [_hit(r, _bm25(s, weights), weights) for r, s in zip(found, said, strict=True)]
    hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
    return SearchResult(tuple(hits[: max(0, limit)]), "" if hits else "no_match")


def _frequency(
    conn: sqlite3.Connection, scope: _Scope, terms: Sequence[str], total: int
) -> dict[str, int]:
    """Return how many chunks contain each term; terms that none contains are left out."""
    plain = [term for term in terms if term.isalnum()]  # parts of the others are terms, too
    found = conn.execute(scope.frequencies, (json.dumps(plain),))
    return {row["term"]: min(int(row["doc"]), total) for row in found}


def _affordable(frequency: Mapping[str, int]) -> Sequence[str]:
    """Return the rarest terms, as many as can be looked up quickly; at least one."""
    chosen: list[str] = []
    read = 0
    for term in sorted(frequency, key=lambda t: (frequency[t], t)):
        if read and read + frequency[term] > POSTINGS:
            break
        chosen.append(term)
        read += frequency[term]
    return chosen


def _information(frequency: int, total: int) -> float:
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _bm25(said: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """Return the bm25 score of a chunk, as if it were of average length."""
    return sum(
        weight * said[term] * (1 + SATURATION) / (said[term] + SATURATION)
        for term, weight in weights.items()
        if term in said
    )


def _hit(row: sqlite3.Row, bm25: float, weights: Mapping[str, float]) -> Hit:
    held = frozenset(row["terms"].split())
    coverage = sum(w for term, w in weights.items() if term in held) / sum(weights.values())
    score = COVERAGE_WEIGHT * coverage + (1 - COVERAGE_WEIGHT) * bm25 / (1 + bm25)
    return Hit(chunk_of(row), score, {"keyword": score})


CACHED = 50_000  # newest vectors that are kept although no chunk needs them

_LOAD = """
SELECT COLUMNS, c.terms, c.traits FROM (SEEN ORDER BY id LIMIT :limit) s
JOIN chunks c ON c.id = s.id JOIN chunk_lines l ON l.id = s.id JOIN files f ON f.id = c.file_id
ORDER BY c.id
""".replace("COLUMNS", rows.CHUNK)
_LOAD_ALL = _LOAD.replace("SEEN", "SELECT id FROM chunks WHERE id > :after")
_LOAD_SEEN = _LOAD.replace(  # two walks of the index: chunks that may not be seen cost no time
    "SEEN",
    "SELECT id FROM chunks WHERE scope = '' AND id > :after UNION ALL"
    " SELECT id FROM chunks WHERE scope = :own AND scope <> '' AND id > :after",
)
_VECTORS = """
-- Joined in this order: the other one reads all vectors.
SELECT c.id, e.vector FROM models m CROSS JOIN chunks c
CROSS JOIN embeddings e ON e.model_id = m.id AND e.digest = c.digest
WHERE m.name = :model AND c.id > :after AND c.id <= :upto
"""
_VECTORS_SEEN = f"{_VECTORS} AND c.scope IN ('', :own)"
_LACKING = """
SELECT COLUMNS FROM CHUNKS
WHERE c.id > :after AND NOT EXISTS (
    SELECT 1 FROM embeddings e WHERE e.digest = c.digest
        AND e.model_id = (SELECT id FROM models WHERE name = :model)
) ORDER BY c.id LIMIT :limit
""".replace("CHUNKS", CHUNKS)
_PENDING = _LACKING.replace("COLUMNS", f"{rows.CHUNK}, c.digest")
_COUNT_PENDING = "SELECT count(*) FROM (LACKING)".replace(
    "LACKING", _LACKING.replace("COLUMNS", "1")
)
_PUT_VECTOR = """
INSERT OR IGNORE INTO embeddings (model_id, digest, vector)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM chunks WHERE digest = ?2)
"""
_ORPHANS = """
SELECT id FROM embeddings e WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.digest = e.digest)
"""
_FORGET_ORPHANS = "DELETE FROM embeddings WHERE id IN (ORPHANS)".replace("ORPHANS", _ORPHANS)
_PRUNE = "DELETE FROM embeddings WHERE id IN (ORPHANS ORDER BY id DESC LIMIT -1 OFFSET ?)".replace(
    "ORPHANS", _ORPHANS
)


class SqliteChunks:
    """The ChunkStore of the index database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @property
    def epoch(self) -> int:
        """See ChunkIndex."""
        return self._db.begun_anew

    async def digests(self, source: Source) -> Mapping[str, str]:
        """See ChunkIndex."""

        def look(conn: sqlite3.Connection) -> dict[str, str]:
            found = conn.execute("SELECT path, digest FROM files WHERE source = ?", (source,))
            return {row["path"]: row["digest"] for row in found}

        return await self._db.read(look)

    async def entries(self, path: str, since: int = 1) -> Sequence[Entry]:
        """See ChunkIndex."""
        return await self._db.read(lambda conn: rows.entries_of(conn, path, since))

    async def replace(
        self, path: str, digest: str, entries: Sequence[Entry], since: int = 1
    ) -> Sequence[int]:
        """See ChunkWriter."""

        def change(conn: sqlite3.Connection) -> list[int]:
            file_id = rows.put_file(conn, path, digest, entries)
            return rows.exchange(conn, file_id, entries, since)

        return await self._db.write(change)

    async def patch(
        self, path: str, digest: str, patches: Sequence[LinePatch[Entry]]
    ) -> Sequence[int]:
        """See ChunkWriter."""

        def change(conn: sqlite3.Connection) -> list[int]:
            return rows.patch(conn, rows.put_file(conn, path, digest, ()), patches)

        return await self._db.write(change)

    async def lines(self, path: str) -> Sequence[tuple[int, int, int]]:
        """See ChunkIndex."""
        return await self._db.read(lambda conn: rows.lines_of(conn, path))

    async def extend(self, path: str, digest: str, entries: Sequence[Entry]) -> None:
        """See ChunkWriter."""

        def change(conn: sqlite3.Connection) -> None:
            rows.insert(conn, rows.put_file(conn, path, digest, entries), entries)

        await self._db.write(change)

    async def remove(self, paths: Sequence[str]) -> Sequence[int]:
        """See ChunkWriter."""
        return await self._db.write(lambda conn: rows.remove(conn, paths))

    async def erase(self, paths: Sequence[str]) -> Sequence[int]:
        """See ChunkWriter."""

        def change(conn: sqlite3.Connection) -> list[int]:
            gone = rows.remove(conn, paths)
            conn.execute(_FORGET_ORPHANS)
            rows.merge_words(conn)
            return gone

        return await self._db.erase(change)

    async def outdate(self) -> None:
        """See ChunkWriter."""
        await self._db.execute("UPDATE files SET digest = ''", ())

    async def verify(self) -> None:
        """See ChunkIndex."""
        await self._db.verify()

    async def load(self, after: int, limit: int, audience: Audience) -> Sequence[StoredChunk]:
        """See ChunkReader."""
        values = {"after": after, "limit": limit, "own": audience.own}
        statement = _LOAD_ALL if audience == OWNER else _LOAD_SEEN

        def look(conn: sqlite3.Connection) -> list[StoredChunk]:
            return [
                StoredChunk(row["id"], rows.chunk_of(row), row["terms"], row["traits"])
                for row in conn.execute(statement, values)
            ]

        return await self._db.read(look)

    async def has(self, scope: str) -> bool:
        """See ChunkReader."""

        def look(conn: sqlite3.Connection) -> bool:
            found = conn.execute("SELECT 1 FROM chunks WHERE scope = ? LIMIT 1", (scope,))
            return found.fetchone() is not None

        return await self._db.read(look)

    async def ids(self) -> Sequence[int]:
        """See ChunkReader."""

        def look(conn: sqlite3.Connection) -> list[int]:
            return [row["id"] for row in conn.execute("SELECT id FROM chunks ORDER BY id")]

        return await self._db.read(look)

    async def keyword(
        self,
        terms: Sequence[str],
        audience: Audience,
        *,
        limit: int,
        sources: frozenset[Source] | None = None,
    ) -> SearchResult:
        """See ChunkReader."""
        return await self._db.read(
            lambda conn: find(conn, terms, audience, limit=limit, sources=sources)
        )

    async def vectors(
        self, model: str, after: int, upto: int, audience: Audience
    ) -> Sequence[tuple[int, bytes]]:
        """See ChunkReader."""
        values = {"after": after, "upto": upto, "own": audience.own, "model": model}
        statement = _VECTORS if audience == OWNER else _VECTORS_SEEN

        def look(conn: sqlite3.Connection) -> list[tuple[int, bytes]]:
            return [(row["id"], row["vector"]) for row in conn.execute(statement, values)]

        return await self._db.read(look)

    async def pending(self, model: str, after: int, limit: int) -> Sequence[Unembedded]:
        """See VectorBacklog."""
        values = {"model": model, "after": after, "limit": limit}

        def look(conn: sqlite3.Connection) -> list[Unembedded]:
            found = conn.execute(_PENDING, values)
            return [Unembedded(row["id"], row["digest"], rows.chunk_of(row)) for row in found]

        return await self._db.read(look)

    async def count_pending(self, model: str, after: int, most: int) -> int:
        """See VectorBacklog."""
        values = {"model": model, "after": after, "limit": most}

        def look(conn: sqlite3.Connection) -> int:
            (count,) = conn.execute(_COUNT_PENDING, values).fetchone()
            return int(count)

        return await self._db.read(look)

    async def put_vectors(
        self, model: str, vectors: Mapping[bytes, bytes]
    ) -> Sequence[tuple[int, bytes]]:
        """See VectorBacklog."""

        def change(conn: sqlite3.Connection) -> list[tuple[int, bytes]]:
            conn.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (model,))
            (number,) = conn.execute("SELECT id FROM models WHERE name = ?", (model,)).fetchone()
            conn.executemany(_PUT_VECTOR, [(number, *pair) for pair in vectors.items()])
            return [
                (row["id"], vector)
                for digest, vector in vectors.items()
                for row in conn.execute("SELECT id FROM chunks WHERE digest = ?", (digest,))
            ]

        return await self._db.write(change)

    async def prune(self) -> None:
        """See VectorBacklog."""
        await self._db.execute(_PRUNE, (CACHED,))

    async def meta(self, name: str) -> str:
        """See VectorBacklog."""

        def look(conn: sqlite3.Connection) -> str:
            found = conn.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
            return str(found["value"]) if found else ""

        return await self._db.read(look)

    async def set_meta(self, name: str, value: str) -> None:
        """See VectorBacklog."""
        await self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    async def state(self) -> IndexState:
        """See ChunkIndex."""

        def count(conn: sqlite3.Connection) -> IndexState:
            (files,) = conn.execute("SELECT count(*) FROM files").fetchone()
            (chunks,) = conn.execute("SELECT count(*) FROM chunks").fetchone()
            return IndexState(files, chunks, pending=0, state="ready")

        return await self._db.read(count)
