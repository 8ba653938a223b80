"""Keyword search in the index database itself: for answers while nothing better is ready."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentd.domain.memory import OWNER, Audience, Found, Hit, Source
from agentd.storage.index_rows import CHUNK, chunk_of

COVERAGE_WEIGHT = (
    0.6  # of the share of the query's information that a chunk holds; the rest is bm25
)
POSTINGS = 5_000  # places of terms that one search reads, the rarest first; more make it slow
OWN = 5_000  # chunks that are a session's own, the newest: these are read one by one
SATURATION = 1.2  # of a word that a chunk of one's own says again and again

_COUNT_ALL = "SELECT count(*) FROM chunks"
_COUNT_SHARED = "SELECT count(*) FROM chunks WHERE scope = ''"
_FREQUENCIES = """
SELECT term, doc FROM vocabulary_SCOPE WHERE term IN (SELECT value FROM json_each(?))
"""
_CANDIDATES = """
SELECT COLUMNS, c.terms, m.rank FROM (
    SELECT rowid AS id, rank FROM words_SCOPE WHERE words_SCOPE MATCH :match
        AND (:sources IS NULL OR (
            SELECT files.source FROM chunks JOIN files ON files.id = chunks.file_id
            WHERE chunks.id = words_SCOPE.rowid
        ) IN (SELECT value FROM json_each(:sources)))
    ORDER BY rank, rowid LIMIT :limit
) m JOIN chunks c ON c.id = m.id JOIN files f ON f.id = c.file_id
""".replace("COLUMNS", CHUNK)
_OWN = """
SELECT COLUMNS, c.terms FROM chunks c JOIN files f ON f.id = c.file_id
WHERE c.scope = ? ORDER BY c.id DESC LIMIT ?
""".replace("COLUMNS", CHUNK)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The statements for what has terms of its own in the database."""

    count: str
    frequencies: str
    candidates: str


_ALL = _Scope(_COUNT_ALL, _FREQUENCIES.replace("SCOPE", "all"), _CANDIDATES.replace("SCOPE", "all"))
_SHARED = _Scope(
    _COUNT_SHARED, _FREQUENCIES.replace("SCOPE", "shared"), _CANDIDATES.replace("SCOPE", "shared")
)


def find(
    conn: sqlite3.Connection,
    terms: Sequence[str],
    audience: Audience,
    *,
    limit: int,
    sources: frozenset[Source] | None,
) -> Found:
    """The chunks that hold most of what the terms tell. Scores lie between 0 and 1; equal ones are in
    order of path and line. What a session alone may find beside the shared chunks is counted with
    them: nothing else tells how rare a word is.
    """
    scope = _ALL if audience == OWNER else _SHARED
    own = conn.execute(_OWN, (audience.own, OWN)).fetchall() if audience.own else []
    (shared,) = conn.execute(scope.count).fetchone()
    total = shared + len(own)
    if not total:
        return Found((), "nothing_indexed")
    frequency = _frequency(conn, scope, terms, shared)
    held = [Counter(row["terms"].split()) for row in own]
    frequencies = Counter(frequency)
    frequencies.update(term for said in held for term in terms if term in said)
    if not frequencies:
        return Found((), "no_match")
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
        found = conn.execute(scope.candidates, values)
        hits += [_hit(row, max(0.0, -row["rank"]), weights) for row in found]
    hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
    return Found(tuple(hits[: max(0, limit)]), "" if hits else "no_match")


def _frequency(
    conn: sqlite3.Connection, scope: _Scope, terms: Sequence[str], total: int
) -> dict[str, int]:
    """How many chunks hold each term; terms that none holds are missing."""
    plain = [term for term in terms if term.isalnum()]  # the others are there in parts, too
    found = conn.execute(scope.frequencies, (json.dumps(plain),))
    return {row["term"]: min(int(row["doc"]), total) for row in found}


def _affordable(frequency: Mapping[str, int]) -> Sequence[str]:
    """The rarest terms, as many as can be looked up quickly; never fewer than one."""
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
    """As the database scores a chunk of usual length."""
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
