"""The search index in SQLite's full-text tables: derived, deletable at any time."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from agentd.domain.memory import Chunk, Found, Hit, IndexState, Source
from agentd.errors import StorageCorrupt
from agentd.storage.codec import well_formed
from agentd.storage.sqlite import Database
from agentd.storage.words import grams, is_prefix, match_expression, query_terms, text_terms

COVERAGE_WEIGHT = (
    0.6  # of the share of the query's information that a chunk holds; the rest is bm25
)
COMMON = 0.2  # of the chunks: a word in more of them tells nothing
POSTINGS = 5_000  # places of words that one search reads, the rarest words first; more make it slow
FEW = 50  # chunks, below which every word counts

_COUNT_ALL = "SELECT count(*) FROM chunks"
_COUNT_SHARED = "SELECT count(*) FROM chunks WHERE owner_only = 0"
_FREQUENCIES = """
SELECT term, doc FROM vocabulary_SCOPE WHERE term IN (SELECT value FROM json_each(?))
"""
_CANDIDATES = """
SELECT c.*, f.path, m.rank FROM (
    SELECT rowid AS id, rank FROM words_SCOPE WHERE words_SCOPE MATCH :match
        AND (:sources IS NULL OR (SELECT source FROM chunks WHERE chunks.id = words_SCOPE.rowid)
            IN (SELECT value FROM json_each(:sources)))
    ORDER BY rank, rowid LIMIT :limit
) m JOIN chunks c ON c.id = m.id JOIN files f ON f.id = c.file_id
"""
_UPSERT_FILE = """
INSERT INTO files (path, source, digest) VALUES (?, ?, ?)
ON CONFLICT (path) DO UPDATE SET source = excluded.source, digest = excluded.digest RETURNING id
"""
_INSERT_CHUNK = """
INSERT INTO chunks (file_id, source, owner_only, start_line, end_line, date, text, grams)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_WORDS = "INSERT INTO words_SCOPE (rowid, text, grams) VALUES (?, ?, ?)"
_DELETE_WORDS_ALL = """
INSERT INTO words_all (words_all, rowid, text, grams)
SELECT 'delete', id, text, grams FROM chunks WHERE file_id = ?
"""
_DELETE_WORDS_SHARED = """
INSERT INTO words_shared (words_shared, rowid, text, grams)
SELECT 'delete', id, text, grams FROM chunks WHERE file_id = ? AND owner_only = 0
"""
_OPTIMISE = (
    "INSERT INTO words_all (words_all) VALUES ('optimize')",
    "INSERT INTO words_shared (words_shared) VALUES ('optimize')",
)
_CLEAR = (
    "INSERT INTO words_all (words_all) VALUES ('delete-all')",
    "INSERT INTO words_shared (words_shared) VALUES ('delete-all')",
    "DELETE FROM chunks",
    "DELETE FROM files",
)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The statements for what one kind of reader may find."""

    count: str
    frequencies: str
    candidates: str


_OWNER = _Scope(
    _COUNT_ALL, _FREQUENCIES.replace("SCOPE", "all"), _CANDIDATES.replace("SCOPE", "all")
)
_OTHERS = _Scope(
    _COUNT_SHARED, _FREQUENCIES.replace("SCOPE", "shared"), _CANDIDATES.replace("SCOPE", "shared")
)


class SqliteIndex:
    """The MemoryIndex of the index database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def digests(self, source: Source) -> Mapping[str, str]:
        """See MemoryIndex."""

        def find(conn: sqlite3.Connection) -> dict[str, str]:
            found = conn.execute("SELECT path, digest FROM files WHERE source = ?", (source,))
            return {row["path"]: row["digest"] for row in found}

        return await self._db.read(find)

    async def replace(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """See MemoryIndex."""

        def change(conn: sqlite3.Connection) -> None:
            file_id = _upsert_file(conn, path, digest, chunks)
            _delete_chunks(conn, file_id)
            _insert_chunks(conn, file_id, chunks)

        await self._db.write(change)

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """See MemoryIndex."""

        def change(conn: sqlite3.Connection) -> None:
            _insert_chunks(conn, _upsert_file(conn, path, digest, chunks), chunks)

        await self._db.write(change)

    async def remove(self, paths: Sequence[str]) -> None:
        """See MemoryIndex."""
        await self._db.write(lambda conn: _remove(conn, paths))

    async def erase(self, paths: Sequence[str]) -> None:
        """See MemoryIndex."""

        def change(conn: sqlite3.Connection) -> None:
            _remove(conn, paths)
            for statement in _OPTIMISE:  # until then the full-text tables only cross words out
                conn.execute(statement)

        await self._db.erase(change)

    async def clear(self) -> None:
        """See MemoryIndex."""

        def change(conn: sqlite3.Connection) -> None:
            for statement in _CLEAR:
                conn.execute(statement)

        await self._db.write(change)

    async def search(
        self, query: str, *, owner: bool, limit: int, sources: frozenset[Source] | None = None
    ) -> Found:
        """See MemoryIndex. Scores lie between 0 and 1; equal ones are in order of path and line."""
        terms = query_terms(query)
        if not terms:
            return Found((), "empty_query")
        scope = _OWNER if owner else _OTHERS
        only = None if sources is None else json.dumps(sorted(sources))
        try:
            return await self._db.read(lambda conn: _search(conn, scope, terms, limit, only))
        except StorageCorrupt:
            return Found((), "indexing")  # the database has begun anew

    async def state(self) -> IndexState:
        """See MemoryIndex. What is pending is known to the indexer alone."""

        def count(conn: sqlite3.Connection) -> IndexState:
            (files,) = conn.execute("SELECT count(*) FROM files").fetchone()
            (chunks,) = conn.execute(_COUNT_ALL).fetchone()
            return IndexState(files, chunks, pending=0, state="ready")

        return await self._db.read(count)


def _search(
    conn: sqlite3.Connection, scope: _Scope, terms: tuple[str, ...], limit: int, sources: str | None
) -> Found:
    (total,) = conn.execute(scope.count).fetchone()
    if not total:
        return Found((), "nothing_indexed")
    frequency = _frequency(conn, scope, terms, total)
    weights = _weights(terms, frequency, total)
    values = {
        "match": match_expression(_affordable(weights, frequency)),
        "sources": sources,
        "limit": 2 * limit + 30,  # coverage may lift a chunk above those that bm25 prefers
    }
    hits = [_hit(row, weights) for row in conn.execute(scope.candidates, values)]
    hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
    return Found(tuple(hits[: max(0, limit)]), "" if hits else "no_match")


def _frequency(
    conn: sqlite3.Connection, scope: _Scope, terms: tuple[str, ...], total: int
) -> dict[str, int]:
    """How many chunks hold each term; terms that none holds are missing."""
    found = conn.execute(scope.frequencies, (json.dumps(terms),))
    return {row["term"]: min(int(row["doc"]), total) for row in found}


def _weights(terms: tuple[str, ...], frequency: Mapping[str, int], total: int) -> dict[str, float]:
    """How much each term tells (its inverse document frequency); common ones are left out if any
    other is left.
    """
    telling = [t for t in terms if frequency.get(t, 0) <= COMMON * total or total < FEW]
    # A word that no chunk holds finds nothing, so it must not be all that is left.
    if not any(t in frequency or is_prefix(t) for t in telling):
        telling = list(terms)
    return {t: _information(frequency.get(t, 0), total) for t in telling}


def _affordable(weights: Mapping[str, float], frequency: Mapping[str, int]) -> tuple[str, ...]:
    """The rarest terms, as many as can be looked up quickly; never fewer than one that is there."""
    chosen: list[str] = []
    read = 0
    for term in sorted(weights, key=lambda t: frequency.get(t, 0)):
        if read and read + frequency.get(term, 0) > POSTINGS:
            break
        chosen.append(term)
        read += frequency.get(term, 0)
    return tuple(chosen)


def _information(frequency: int, total: int) -> float:
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _hit(row: sqlite3.Row, weights: Mapping[str, float]) -> Hit:
    held = text_terms(row["text"])
    coverage = sum(w for term, w in weights.items() if term in held) / sum(weights.values())
    bm25 = max(0.0, -row["rank"])
    score = COVERAGE_WEIGHT * coverage + (1 - COVERAGE_WEIGHT) * bm25 / (1 + bm25)
    chunk = Chunk(
        path=row["path"],
        start_line=row["start_line"],
        end_line=row["end_line"],
        text=row["text"],
        source=Source(row["source"]),
        owner_only=bool(row["owner_only"]),
        date=date.fromisoformat(row["date"]) if row["date"] else None,
    )
    return Hit(chunk, score, {"keyword": score})


def _upsert_file(conn: sqlite3.Connection, path: str, digest: str, chunks: Sequence[Chunk]) -> int:
    by_path = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    source = chunks[0].source if chunks else by_path
    ((file_id,),) = conn.execute(_UPSERT_FILE, (path, source, digest)).fetchall()
    return int(file_id)


def _insert_chunks(conn: sqlite3.Connection, file_id: int, chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        text = well_formed(chunk.text)
        pairs = grams(text)
        day = chunk.date.isoformat() if chunk.date else None
        lines = (chunk.start_line, chunk.end_line)
        values = (file_id, chunk.source, chunk.owner_only, *lines, day, text, pairs)
        chunk_id = conn.execute(_INSERT_CHUNK, values).lastrowid
        conn.execute(_INSERT_WORDS.replace("SCOPE", "all"), (chunk_id, text, pairs))
        if not chunk.owner_only:
            conn.execute(_INSERT_WORDS.replace("SCOPE", "shared"), (chunk_id, text, pairs))


def _remove(conn: sqlite3.Connection, paths: Sequence[str]) -> None:
    for path in paths:
        found = conn.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        if found:
            _delete_chunks(conn, found["id"])
            conn.execute("DELETE FROM files WHERE id = ?", (found["id"],))


def _delete_chunks(conn: sqlite3.Connection, file_id: int) -> None:
    conn.execute(_DELETE_WORDS_ALL, (file_id,))
    conn.execute(_DELETE_WORDS_SHARED, (file_id,))
    conn.execute("DELETE FROM chunks WHERE file_id = ?", (file_id,))
