"""The concept graph in SQLite: derived, deletable at any time."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from agentd.domain.belief import GROUP, LEAST, SURVIVING, Consolidated, Trace
from agentd.domain.concept import (
    Concept,
    ConceptHash,
    Context,
    ContextHash,
    Edge,
    EpisodeHash,
    FactHash,
    GraphCounts,
    Inserted,
    Record,
    Relation,
)
from agentd.storage import graph_rows as rows
from agentd.storage.graph_values import (
    RELATION,
    SAID,
    SECOND,
    TRACE,
    concept_of,
    context_of,
    edge_of,
    end_of,
    moment,
    relation_of,
    ticks,
    trace_of,
)
from agentd.storage.sqlite import Database

_COUNTS = """
SELECT (SELECT count(*) FROM graph_concepts), (SELECT count(*) FROM graph_facts),
    (SELECT count(*) FROM graph_episodes), (SELECT count(*) FROM graph_contexts)
"""
_NAMED = (
    "SELECT hash FROM graph_concepts WHERE label IN (?)",
    "SELECT concept FROM graph_aliases WHERE folded IN (?)",
)
_CONCEPTS = "SELECT * FROM graph_concepts WHERE hash IN (?)"
_ALIASES = "SELECT DISTINCT concept, name FROM graph_aliases WHERE concept IN (?)"
_CONTEXTS = "SELECT * FROM graph_contexts WHERE hash IN (?)"
_AROUND = (
    "SELECT hash FROM graph_facts WHERE subject IN (?)",
    "SELECT hash FROM graph_facts WHERE object IN (?)",
)
_SAID = "SELECT COLUMNS FROM graph_facts f CROSS JOIN graph_episodes e ON e.fact = f.hash"
_OUT, _IN, _STATING = (
    f"{_SAID} WHERE f.{end}".replace("COLUMNS", SAID)
    for end in ("subject IN (?)", "object IN (?)", "predicate = ?")
)
_JOINED = "FROM graph_episodes e JOIN graph_facts f ON f.hash = e.fact"
_EPISODES = f"SELECT {RELATION} {_JOINED} WHERE e.fact IN (?)"
_ALL_EPISODES = f"SELECT {RELATION} {_JOINED} ORDER BY e.hash"
_TRACES = f"SELECT {TRACE} {_JOINED} WHERE e.fact IN (?)"
_LIVELY = f"SELECT {TRACE} {_JOINED} WHERE e.until >= ? AND e.promoted = 0"
_ENDED = f"SELECT {TRACE} {_JOINED} WHERE e.until <= ?"
_FADING = """
SELECT fact, hash, confidence, since FROM graph_episodes WHERE until IS NOT NULL AND hash IN (?)
"""
_TOUCH = "UPDATE graph_episodes SET since = ?, until = ? WHERE fact = ? AND hash = ?"
_TOUCHED = "SELECT hash, since FROM graph_episodes WHERE since > said"
_NOTE = "INSERT INTO graph_consolidations (at, promoted, swept) VALUES (?, ?, ?)"
_NOTED = "SELECT promoted, swept, at FROM graph_consolidations ORDER BY id DESC LIMIT ?"

_SLACK = SECOND  # `until` is rounded: what is near it is looked at exactly
_LOUDER = end_of(SURVIVING, 0)  # from the surviving confidence down to the least


class SqliteGraph:
    """The GraphStore of the index database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def insert(self, records: Sequence[Record]) -> Inserted:
        """See GraphStore."""
        return await self._db.write(lambda conn: rows.insert(conn, records))

    async def rebuild(self, records: Sequence[Record]) -> Inserted:
        """See GraphStore."""

        def change(conn: sqlite3.Connection) -> Inserted:
            touched = [(row["hash"], row["since"]) for row in conn.execute(_TOUCHED)]
            rows.clear(conn)
            inserted = rows.insert(conn, records)
            _touch(conn, dict(touched))
            return inserted

        return await self._db.write(change)

    async def remove(self, episodes: Sequence[EpisodeHash]) -> int:
        """See GraphStore."""
        wanted = [episode.value for episode in episodes]
        return await self._db.write(lambda conn: rows.remove(conn, wanted))

    async def counts(self) -> GraphCounts:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> GraphCounts:
            concepts, facts, episodes, contexts = conn.execute(_COUNTS).fetchone()
            query = "SELECT predicate, count(*) FROM graph_facts GROUP BY predicate ORDER BY 1"
            predicates = {row[0]: row[1] for row in conn.execute(query)}
            return GraphCounts(concepts, facts, episodes, contexts, predicates)

        return await self._db.read(look)

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        """See GraphStore."""
        wanted = [name.value for name in hashes]
        found = await self._db.read(lambda conn: _concepts(conn, wanted))
        return {concept.hash: concept for concept in found}

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, Context]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> dict[ContextHash, Context]:
            found = rows.among(conn, _CONTEXTS, [name.value for name in hashes])
            return {context.hash: context for context in map(context_of, found)}

        return await self._db.read(look)

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        """See GraphStore. Names are found whatever their case."""
        folded = {spelling for name in names for spelling in (name, name.casefold())}

        def look(conn: sqlite3.Connection) -> list[Concept]:
            found = {row[0] for query in _NAMED for row in rows.among(conn, query, folded)}
            return _concepts(conn, found)

        return await self._db.read(look)

    async def edges(
        self,
        concepts: Sequence[ConceptHash],
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        """See GraphStore."""
        names = {concept.value: concept for concept in concepts}

        def look(conn: sqlite3.Connection) -> list[Edge]:
            out = rows.among(conn, _OUT, names)
            back = (row for row in rows.among(conn, _IN, names) if row[1] not in names)
            found = _by_fact((*out, *back), scopes)
            made, at = dict(names), _at(now)
            return [edge_of(found[fact], at, made) for fact in sorted(found)]

        return await self._db.read(look)

    async def stating(
        self,
        predicate: str,
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> list[Edge]:
            found = _by_fact(map(tuple, conn.execute(_STATING, (predicate,))), scopes)
            made, at = dict[bytes, ConceptHash](), _at(now)
            edges = (edge_of(said, at, made) for said in found.values())
            return heapq.nsmallest(limit, edges, key=lambda edge: (-edge.confidence, edge.fact))

        return await self._db.read(look)

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> list[Relation]:
            if concepts is None:
                return [relation_of(tuple(row)) for row in conn.execute(_ALL_EPISODES)]
            found = rows.among(conn, _EPISODES, _around(conn, concepts))
            return sorted(map(relation_of, found), key=lambda relation: relation.episode)

        return await self._db.read(look)

    async def traces(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Trace]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> list[Trace]:
            found = map(trace_of, rows.among(conn, _TRACES, {fact.value for fact in facts}))
            return _sorted(t for t in found if scopes is None or t.scope in scopes)

        return await self._db.read(look)

    async def promotable(self, now: datetime) -> Sequence[Trace]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> list[Trace]:
            groups: dict[tuple[FactHash, str, bool], list[Trace]] = {}
            for row in conn.execute(_LIVELY, (ticks(now) + _LOUDER - _SLACK,)):
                trace = trace_of(tuple(row))
                if trace.effective(now) > SURVIVING:
                    said = trace.relation
                    groups.setdefault((said.fact, trace.scope, said.denied), []).append(trace)
            return _sorted(t for group in groups.values() if len(group) >= GROUP for t in group)

        return await self._db.read(look)

    async def touch(self, episodes: Sequence[EpisodeHash], at: datetime) -> int:
        """See GraphStore."""
        since = dict.fromkeys([episode.value for episode in episodes], ticks(at))
        return await self._db.write(lambda conn: _touch(conn, since))

    async def sweep(self, now: datetime) -> Sequence[Relation]:
        """See GraphStore."""

        def change(conn: sqlite3.Connection) -> list[Relation]:
            near = [trace_of(tuple(row)) for row in conn.execute(_ENDED, (ticks(now) + _SLACK,))]
            gone = [t.relation for t in _sorted(near) if t.effective(now) < LEAST]
            rows.remove(conn, [relation.episode.value for relation in gone], promotions=False)
            return gone

        return await self._db.write(change)

    async def note(self, consolidated: Consolidated) -> None:
        """See GraphStore."""
        values = (ticks(consolidated.at), consolidated.promoted, consolidated.swept)
        await self._db.execute(_NOTE, values)

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """See GraphStore."""

        def look(conn: sqlite3.Connection) -> list[Consolidated]:
            found = conn.execute(_NOTED, (limit,))
            return [Consolidated(r["promoted"], r["swept"], moment(r["at"])) for r in found]

        return await self._db.read(look)


def _concepts(conn: sqlite3.Connection, hashes: Iterable[bytes]) -> list[Concept]:
    """Those that are there, in the order of their hashes."""
    wanted = sorted(set(hashes))
    aliases: dict[bytes, list[str]] = {}
    for concept, name in rows.among(conn, _ALIASES, wanted):
        aliases.setdefault(concept, []).append(name)
    found = rows.among(conn, _CONCEPTS, wanted)
    concepts = (concept_of(row, aliases.get(row[0], ())) for row in found)
    return sorted(concepts, key=lambda concept: concept.hash)


def _around(conn: sqlite3.Connection, concepts: Iterable[ConceptHash]) -> set[bytes]:
    """The facts about these concepts."""
    wanted = {concept.value for concept in concepts}
    return {row[0] for query in _AROUND for row in rows.among(conn, query, wanted)}


def _by_fact(
    found: Iterable[tuple[Any, ...]], scopes: Sequence[str] | None
) -> dict[bytes, list[tuple[Any, ...]]]:
    """Episodes by fact, those of these scopes."""
    seen = None if scopes is None else frozenset(scopes)
    facts: dict[bytes, list[tuple[Any, ...]]] = {}
    for row in found:
        if seen is None or row[-1] in seen:
            facts.setdefault(row[0], []).append(row)
    return facts


def _at(now: datetime | None) -> int | None:
    return None if now is None else ticks(now)


def _touch(conn: sqlite3.Connection, since: Mapping[bytes, int]) -> int:
    """Let episodes fade from then on; returns how many of them fade at all."""
    found = list(rows.among(conn, _FADING, since))
    later = [
        (since[episode], end_of(confidence, since[episode]), fact, episode)
        for fact, episode, confidence, before in found
        if since[episode] > before
    ]
    conn.executemany(_TOUCH, later)
    return len(found)


def _sorted(traces: Iterable[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda trace: trace.relation.episode)
