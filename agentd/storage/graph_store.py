"""The GraphStore in SQLite: derived data, may be deleted at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import partial
from typing import TypeVar

from agentd.core.evidence import FACTS, GROUP, LEAST, SURVIVING, Consolidated, Trace
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Edge,
    EpisodeHash,
    FactHash,
    GraphCounts,
    InsertCounts,
    NeighbourQuery,
    Record,
    Relation,
    StoredEpisode,
)
from agentd.core.ports import Walk
from agentd.storage import graph_rows as rows
from agentd.storage.graph_columns import (
    RELATION,
    SECOND,
    TRACE,
    concept_of,
    context_of,
    end_of,
    held_episode,
    moment,
    relation_of,
    ticks,
    trace_of,
)
from agentd.storage.graph_edges import around, stating
from agentd.storage.graph_rows import delete_episodes, refresh_concepts, remove
from agentd.storage.sqlite import Database

T = TypeVar("T")

FEW = 1_000
SWEPT = 500  # episodes removed per transaction, so that other work can run in between

_COUNTS = """
SELECT (SELECT count(*) FROM graph_concepts), (SELECT count(*) FROM graph_facts),
    (SELECT count(*) FROM graph_episodes), (SELECT count(*) FROM graph_contexts)
"""
_SHARES = """
SELECT name, n FROM (SELECT predicate, count(*) AS n FROM graph_facts GROUP BY predicate)
JOIN graph_predicates ON id = predicate ORDER BY name
"""
_LABELLED = "SELECT * FROM graph_concepts WHERE label IN (?)"
_CALLED = """
SELECT * FROM graph_concepts WHERE id IN (SELECT concept FROM graph_aliases WHERE folded IN (?))
"""
_CONCEPTS = "SELECT * FROM graph_concepts WHERE hash IN (?)"
_LABELS = "SELECT hash, label FROM graph_concepts WHERE hash IN (?)"
_ALIASES = "SELECT DISTINCT concept, name FROM graph_aliases WHERE concept IN (?)"
_CONTEXTS = "SELECT * FROM graph_contexts WHERE hash IN (?)"
_NUMBERS = "SELECT id FROM graph_concepts WHERE hash IN (?)"
_ABOUT = (
    "SELECT id FROM graph_facts WHERE subject IN (?)",
    "SELECT id FROM graph_facts WHERE object IN (?)",
)
_JOINED = """
FROM graph_episodes e CROSS JOIN graph_facts f ON f.id = e.fact
CROSS JOIN graph_contexts c ON c.id = e.context CROSS JOIN graph_predicates p ON p.id = f.predicate
CROSS JOIN graph_concepts s ON s.id = f.subject CROSS JOIN graph_concepts o ON o.id = f.object
"""
_EPISODES = f"SELECT {RELATION} {_JOINED} WHERE e.fact IN (?)"
_ALL_EPISODES = f"SELECT {RELATION} {_JOINED} ORDER BY e.hash"
_HELD = "SELECT hash, confidence, denied, refs, said FROM graph_episodes"
_SAID_ON = f"SELECT {RELATION} {_JOINED} WHERE e.said BETWEEN ? AND ? ORDER BY e.hash"
_OF_FACTS = "SELECT id FROM graph_facts WHERE hash IN (?)"
_TRACES = f"SELECT {TRACE} {_JOINED} WHERE e.fact IN (?)"
_LIVELY = f"SELECT {TRACE} {_JOINED} WHERE (e.until >= ? OR e.source = ?) AND e.promoted = 0"
_ENDED = "SELECT id FROM graph_episodes WHERE until <= ?"
_NEAR = f"SELECT {TRACE} {_JOINED} WHERE e.id IN (?)"
_FADING = """
SELECT id, fact, hash, confidence, since FROM graph_episodes
WHERE until IS NOT NULL AND hash IN (?)
"""
_TOUCH = "UPDATE graph_episodes SET since = ?, until = ? WHERE id = ?"
_NOTE = "INSERT INTO graph_consolidations (at, promoted, swept) VALUES (?, ?, ?)"
_NOTED = "SELECT promoted, swept, at FROM graph_consolidations ORDER BY id DESC LIMIT ?"

_SLACK = SECOND  # `until` is rounded: episodes near it are judged exactly
_LOUDER = end_of(SURVIVING, 0)  # time from the confidence SURVIVING down to LEAST


class SqliteGraph:
    """The GraphStore of the index database. Up to `few` facts, reading all is faster than letting
    the database choose the surest.
    """

    def __init__(self, db: Database, *, few: int = FEW) -> None:
        self._db = db
        self._few = few

    async def insert(self, records: Sequence[Record]) -> InsertCounts:
        """See GraphWriter."""
        return await self._db.write(lambda conn: rows.insert(conn, records))

    async def remove(self, episodes: Sequence[EpisodeHash]) -> int:
        """See GraphWriter."""
        wanted = [episode.value for episode in episodes]
        return await self._db.write(partial(remove, episodes=wanted))

    async def stored_episodes(self) -> Mapping[EpisodeHash, StoredEpisode]:
        """See EpisodeReader."""
        return await self._db.read(lambda conn: dict(map(held_episode, conn.execute(_HELD))))

    async def said_on(self, day: date) -> Sequence[Relation]:
        """See EpisodeReader."""
        # Up to the day's last moment: the last possible date has no next day to compare with.
        times = [ticks(datetime.combine(day, one, UTC)) for one in (time.min, time.max)]

        def look(conn: sqlite3.Connection) -> list[Relation]:
            return [relation_of(tuple(row)) for row in conn.execute(_SAID_ON, times)]

        return await self._db.read(look)

    async def counts(self) -> GraphCounts:
        """See GraphWriter."""

        def look(conn: sqlite3.Connection) -> GraphCounts:
            concepts, facts, episodes, contexts = conn.execute(_COUNTS).fetchone()
            predicates = {row[0]: row[1] for row in conn.execute(_SHARES)}
            return GraphCounts(concepts, facts, episodes, contexts, predicates)

        return await self._db.read(look)

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        """See GraphReader."""
        wanted = [name.value for name in hashes]
        found = await self._db.read(lambda conn: _concepts(conn, _CONCEPTS, wanted))
        return {concept.hash: concept for concept in found}

    async def labels(self, hashes: Collection[ConceptHash]) -> Mapping[ConceptHash, str]:
        """See GraphReader."""
        wanted = {name.value: name for name in hashes}
        found = await self._db.read(lambda conn: list(rows.among(conn, _LABELS, wanted)))
        return {wanted[name]: label for name, label in found}

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, ConceptContext]:
        """See EpisodeReader."""

        def look(conn: sqlite3.Connection) -> dict[ContextHash, ConceptContext]:
            found = rows.among(conn, _CONTEXTS, [name.value for name in hashes])
            return {context.hash: context for context in map(context_of, found)}

        return await self._db.read(look)

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        """See GraphReader. Names are compared without case."""
        folded = {spelling for name in names for spelling in (name, name.casefold())}

        def look(conn: sqlite3.Connection) -> list[Concept]:
            found = {*_concepts(conn, _LABELLED, folded), *_concepts(conn, _CALLED, folded)}
            return sorted(found, key=lambda concept: concept.hash)

        return await self._db.read(look)

    async def edges(
        self,
        concepts: Sequence[ConceptHash],
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
        most: int | None = None,
        about: Collection[str] = (),
    ) -> Sequence[Edge]:
        """See GraphReader."""
        wanted = NeighbourQuery(concepts, scopes, now, most, about)
        return await self._db.read(lambda conn: _around(conn, wanted, self._few))

    async def walk(self, walk: Walk[T]) -> T:
        """See GraphReader."""

        def run(conn: sqlite3.Connection) -> T:
            try:
                asked = next(walk)
                while True:
                    asked = walk.send(_around(conn, asked, self._few))
            except StopIteration as end:
                outcome: T = end.value
                return outcome

        return await self._db.read(run)

    async def stating(
        self,
        predicate: str,
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        """See GraphReader."""
        return await self._db.read(lambda conn: stating(conn, predicate, limit, scopes, _at(now)))

    async def predicates(self) -> Sequence[str]:
        """See GraphReader."""
        query = "SELECT name FROM graph_predicates ORDER BY name"
        return await self._db.read(lambda conn: [row[0] for row in conn.execute(query)])

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        """See EpisodeReader."""

        def look(conn: sqlite3.Connection) -> list[Relation]:
            if concepts is None:
                return [relation_of(tuple(row)) for row in conn.execute(_ALL_EPISODES)]
            found = rows.among(conn, _EPISODES, _facts_about(conn, concepts))
            return sorted(map(relation_of, found), key=lambda relation: relation.episode)

        return await self._db.read(look)

    async def traces(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Trace]:
        """See EpisodeReader."""

        def look(conn: sqlite3.Connection) -> list[Trace]:
            names = {fact.value for fact in facts}
            numbers = [row[0] for row in rows.among(conn, _OF_FACTS, names)]
            found = map(trace_of, rows.among(conn, _TRACES, numbers))
            return _in_order(t for t in found if scopes is None or t.scope in scopes)

        return await self._db.read(look)

    async def promotable(self, now: datetime) -> Sequence[Trace]:
        """See GraphWriter."""

        def look(conn: sqlite3.Connection) -> list[Trace]:
            groups: dict[tuple[FactHash, str, bool], list[Trace]] = {}
            for row in conn.execute(_LIVELY, (ticks(now) + _LOUDER - _SLACK, FACTS)):
                trace = trace_of(tuple(row))
                if trace.effective(now) > SURVIVING:
                    said = trace.relation
                    groups.setdefault((said.fact, trace.scope, said.denied), []).append(trace)
            return _in_order(t for group in groups.values() if len(group) >= GROUP for t in group)

        return await self._db.read(look)

    async def touch(self, episodes: Sequence[EpisodeHash], at: datetime) -> int:
        """See GraphWriter."""
        since = dict.fromkeys([episode.value for episode in episodes], ticks(at))
        return await self._db.write(lambda conn: _touch(conn, since))

    async def sweep(self, now: datetime) -> Sequence[Relation]:
        """See GraphWriter."""
        gone: list[Relation] = []
        touched: set[int] = set()  # recomputed at the end: once per concept, not once per batch
        near = await self._db.read(lambda conn: _faded_episodes(conn, now))
        for start in range(0, len(near), SWEPT):
            some = near[start : start + SWEPT]
            gone += await self._db.write(partial(_sweep, near=some, now=now, touched=touched))
        left = sorted(touched)
        for start in range(0, len(left), SWEPT):
            part = left[start : start + SWEPT]
            await self._db.write(partial(refresh_concepts, concepts=part))
        return sorted(gone, key=lambda relation: relation.episode)

    async def note(self, consolidated: Consolidated) -> None:
        """See GraphWriter."""
        values = (ticks(consolidated.at), consolidated.promoted, consolidated.swept)
        await self._db.execute(_NOTE, values)

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """See GraphWriter."""

        def look(conn: sqlite3.Connection) -> list[Consolidated]:
            found = conn.execute(_NOTED, (limit,))
            return [Consolidated(r["promoted"], r["swept"], moment(r["at"])) for r in found]

        return await self._db.read(look)


def _around(conn: sqlite3.Connection, wanted: NeighbourQuery, few: int) -> Sequence[Edge]:
    now = _at(wanted.now)
    return around(conn, wanted.concepts, wanted.scopes, now, wanted.most, wanted.about, few)


def _concepts(
    conn: sqlite3.Connection, query: str, values: Iterable[bytes] | Iterable[str]
) -> list[Concept]:
    """Return the concepts that the query finds, ordered by hash."""
    found = {row[0]: row for row in rows.among(conn, query, values)}
    aliases: dict[int, list[str]] = {}
    for concept, name in rows.among(conn, _ALIASES, found):
        aliases.setdefault(concept, []).append(name)
    concepts = [concept_of(row, aliases.get(number, ())) for number, row in found.items()]
    return sorted(concepts, key=lambda concept: concept.hash.value)


def _numbers(conn: sqlite3.Connection, hashes: Iterable[bytes]) -> list[int]:
    return [row[0] for row in rows.among(conn, _NUMBERS, hashes)]


def _facts_about(conn: sqlite3.Connection, concepts: Iterable[ConceptHash]) -> set[int]:
    wanted = _numbers(conn, {concept.value for concept in concepts})
    return {row[0] for query in _ABOUT for row in rows.among(conn, query, wanted)}


def _faded_episodes(conn: sqlite3.Connection, now: datetime) -> list[int]:
    """Return the ids of episodes that have faded or nearly have. This scans all of them, once a
    day: an index of their ends would cost more than that with every insert.
    """
    return [row[0] for row in conn.execute(_ENDED, (ticks(now) + _SLACK,))]


def _sweep(
    conn: sqlite3.Connection, near: Sequence[int], now: datetime, touched: set[int]
) -> list[Relation]:
    """Remove those of the episodes `near` that have faded; add the concepts to recompute to
    `touched`.
    """
    traces = map(trace_of, rows.among(conn, _NEAR, near))
    gone = [trace.relation for trace in traces if trace.effective(now) < LEAST]
    touched |= delete_episodes(conn, [relation.episode.value for relation in gone])
    return gone


def _at(now: datetime | None) -> int | None:
    return None if now is None else ticks(now)


def _touch(conn: sqlite3.Connection, since: Mapping[bytes, int]) -> int:
    """Let each episode fade from its time in `since` on, unless it does so from a later one; return
    how many of them can fade.
    """
    found = list(rows.among(conn, _FADING, since))
    later = [
        (since[episode], end_of(confidence, since[episode]), number)
        for number, _, episode, confidence, before in found
        if since[episode] > before
    ]
    conn.executemany(_TOUCH, later)
    rows.refresh_facts(conn, {fact for _, fact, *_ in found})
    return len(found)


def _in_order(traces: Iterable[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda trace: trace.relation.episode)
