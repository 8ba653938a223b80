"""Records of the concept graph into the tables of the index database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import log2
from operator import attrgetter
from typing import Any, TypeVar

from agentd.core.graph import (
    CONSOLIDATION,
    HALF_LIFE,
    LEAST,
    STANDING,
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    FactHash,
    Held,
    Inserted,
    Record,
    Relation,
    Trace,
    Weight,
    belief,
    check,
    faded,
    independent,
    read_evidence,
    teller_of,
)
from agentd.storage.codec import dumps

# Values of the concept graph as columns, and back.

SECOND = 1_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_HALF_LIFE = HALF_LIFE // _TICK
_LONG_AGO = -(1 << 62)
LONE = b""  # the episode of a concept that stands by itself

Values = tuple[Any, ...]


def ticks(at: datetime) -> int:
    """An aware time in microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(microseconds: int) -> datetime:
    """The time that `ticks` gave, in UTC."""
    return _EPOCH + timedelta(0, 0, microseconds)  # by place: a question reads hundreds


def end_of(confidence: float, since: int) -> int:
    """When it will have faded below 0.01, to the microsecond or so; long ago if it always was."""
    if confidence < LEAST:
        return _LONG_AGO
    return since + int(_HALF_LIFE * log2(confidence / LEAST))


@dataclass(frozen=True, slots=True)
class MentionRow:
    """What one episode says of a concept, or with LONE the record by itself; times in ticks."""

    concept: bytes
    episode: bytes
    label: str
    confidence: float
    created: int
    updated: int
    aliases: tuple[str, ...]


def mentions(record: Record) -> Iterator[MentionRow]:
    """The record's concepts, each with every episode that it is an end of, or with none."""
    episodes: dict[bytes, list[bytes]] = {concept.hash.value: [] for concept in record.concepts}
    for relation in record.relations:
        subject, target, episode = (
            relation.subject.value,
            relation.object.value,
            relation.episode.value,
        )
        episodes[subject].append(episode)
        if target != subject:
            episodes[target].append(episode)
    for concept in record.concepts:
        created = ticks(concept.created)
        updated = created if concept.updated is concept.created else ticks(concept.updated)
        name, told = concept.hash.value, (concept.label, concept.confidence, created, updated)
        for episode in episodes[name] or (LONE,):
            yield MentionRow(name, episode, *told, concept.aliases)


def context_row(context: ConceptContext) -> Values:
    """A row of graph_contexts, from the column `hash` on."""
    said = ticks(context.event_time)
    where = (context.source, context.scope, context.agent, context.session)
    return context.hash.value, said, *where


def episode_row(relation: Relation, context: ConceptContext) -> Values:
    """A row of graph_episodes from `confidence` on, but for the column `promoted`."""
    said = ticks(context.event_time)
    stands = context.source in STANDING
    return (
        relation.confidence,
        ticks(relation.created),
        relation.denied,
        dumps(relation.refs) if relation.refs else "[]",
        said,
        context.source,
        context.scope,
        said,
        None if stands else end_of(relation.confidence, said),
        max(1, len(relation.refs)) if context.source == CONSOLIDATION else 1,
    )


def promoted_rows(relation: Relation, context: ConceptContext) -> list[tuple[bytes, bytes]]:
    """The rows of graph_promoted that the relation stands for: none unless it is a promotion."""
    if context.source != CONSOLIDATION:
        return []
    return [(read_evidence(ref)[0].value, relation.episode.value) for ref in relation.refs]


def concept_of(row: Sequence[Any], aliases: Iterable[str]) -> Concept:
    """A concept from its row."""
    _, name, label, confidence, created, updated = row
    first = moment(created)
    last = first if updated == created else moment(updated)
    names = tuple(sorted(set(aliases))) if aliases else ()
    return Concept(ConceptHash(name), label, confidence, first, last, names)


def context_of(row: Sequence[Any]) -> ConceptContext:
    """A context from its row."""
    return ConceptContext(ContextHash(row[1]), moment(row[2]), *row[3:])


def relation_of(row: Sequence[Any]) -> Relation:
    """An episode from the columns that RELATION names."""
    fact, episode, context, subject, predicate, thing, confidence, created, denied, refs = row
    return Relation(
        FactHash(fact),
        EpisodeHash(episode),
        ContextHash(context),
        ConceptHash(subject),
        predicate,
        ConceptHash(thing),
        confidence,
        moment(created),
        denied=bool(denied),
        refs=tuple(json.loads(refs)),
    )


def held_of(row: Sequence[Any]) -> tuple[EpisodeHash, Held]:
    """What is held of an episode, by its hash."""
    name, sure, denied, refs, said = row
    return EpisodeHash(name), Held(sure, bool(denied), tuple(json.loads(refs)), moment(said))


RELATION = (
    "f.hash, e.hash, c.hash, s.hash, p.name, o.hash, e.confidence, e.created, e.denied, e.refs"
)
TRACE = f"{RELATION}, e.source, e.scope, e.said, e.since, e.promoted, c.agent"
_OF_RELATION = 10


def trace_of(row: Sequence[Any]) -> Trace:
    """An episode with its worth from the columns that TRACE names."""
    source, scope, said, since, promoted, agent = row[_OF_RELATION:]
    return Trace(
        relation_of(row[:_OF_RELATION]),
        source,
        scope,
        moment(said),
        moment(since),
        is_promoted=bool(promoted),
        teller=teller_of(source, agent),
    )


_TELLER = """CASE source WHEN 'shared'
    THEN (SELECT c.agent FROM graph_contexts c WHERE c.id = context) ELSE '' END"""  # as teller_of
WORTH = f"confidence, denied, said, since, until, observed, promoted, scope, {_TELLER}"


@dataclass(frozen=True, slots=True)
class Worth:
    """What an episode adds to its fact, by the columns that WORTH names."""

    confidence: float
    denied: int
    said: int
    since: int
    until: int | None
    observed: int
    promoted: int
    scope: str
    teller: str = ""

    @property
    def weight(self) -> Weight:
        """See `independent`."""
        return Weight(self.teller, bool(self.denied), bool(self.promoted), self.confidence)

    def left(self, now: int | None) -> float:
        """Its confidence at a time, or as it was said."""
        return left(self.confidence, self.since, self.until, now)


_WEIGHT = attrgetter("weight")


def left(confidence: float, since: int, until: int | None, now: int | None) -> float:
    """What is left of a confidence at a time, or all of it without one."""
    if now is None or until is None:
        return confidence
    return faded(confidence, (now - since) / SECOND)


def told(episodes: Sequence[Worth]) -> Values:
    """The columns of graph_facts that all its episodes give, from `stands` on."""
    if len(episodes) == 1 and not episodes[0].promoted:
        return _told_once(episodes[0])
    counting = [one for one in independent(episodes, _WEIGHT) if not one.promoted]
    stands = any(one.until is None and not one.denied for one in counting)
    denial = [one.confidence for one in counting if one.denied and one.until is None]
    support = [one for one in counting if not one.denied]
    if stands:
        rank = belief([one.confidence for one in support], denial)
    else:
        rank = float(_end_of_all(support, 1.0 - belief(denial)))
    newest = max(one.said for one in episodes)
    scopes = {one.scope for one in episodes}
    where = episodes[0].scope if len(scopes) == 1 else None
    return stands, rank, newest, where, None, None, None, None, None


def _told_once(one: Worth) -> Values:
    """The same for one that no promotion counts: what it is worth stands with it."""
    stands = one.until is None and not one.denied
    end = _LONG_AGO if one.denied or one.until is None else one.until
    rank = one.confidence if stands else float(end)
    worth = one.confidence, one.denied, one.since, one.until, one.observed
    return stands, rank, one.said, one.scope, *worth


def _end_of_all(support: Sequence[Worth], share: float) -> int:
    """When what fades will together have faded below 0.01, were it added up and then multiplied."""
    if not support:
        return _LONG_AGO
    last = max(one.since for one in support)
    weight = sum(one.confidence * 0.5 ** ((last - one.since) / _HALF_LIFE) for one in support)
    return end_of(weight * share, last)


def together(episodes: Sequence[Worth], now: int | None) -> tuple[float, int, int]:
    """What episodes of a fact come to: its confidence, how often it was said, and when last."""
    worth: tuple[list[float], list[float]] = ([], [])
    counting = independent(episodes, _WEIGHT)
    for one in counting:
        if not one.promoted:  # its promotion counts it
            worth[one.denied].append(one.left(now))
    count = sum(one.observed - one.promoted for one in counting)
    return belief(*worth), count, max(one.said for one in episodes)


_Name = TypeVar("_Name", bytes, str)

_BATCH = 2_000  # records whose rows are held at once
_MANY = 200  # records from which on more of the database is held in memory meanwhile
_HELD = 32 << 10  # KiB of it
_LOGGED = 16 << 10  # pages that the log takes then before they are put into the file, else:
_USUAL = 1_000
_VALUES = 512  # that one statement takes
_NUMBERS = "SELECT hash, id FROM graph_TABLE WHERE hash IN (?)"
_LAST = "SELECT coalesce(max(id), 0) FROM graph_TABLE"
_CONCEPT = "INSERT INTO graph_concepts VALUES (?, ?, ?, ?, ?, ?)"
_STRENGTHEN = "UPDATE graph_concepts SET confidence = ?, created = ?, updated = ? WHERE id = ?"
_MENTION = """
INSERT INTO graph_mentions VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET confidence = max(confidence, excluded.confidence),
    created = min(created, excluded.created), updated = max(updated, excluded.updated)
"""
_ALIAS = "INSERT OR IGNORE INTO graph_aliases VALUES (?, ?, ?, ?)"
_CONTEXT = "INSERT INTO graph_contexts VALUES (?, ?, ?, ?, ?, ?, ?)"
_PREDICATE = "INSERT INTO graph_predicates VALUES (?, ?)"
_FACT = "INSERT INTO graph_facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_EPISODE = "INSERT INTO graph_episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PROMOTED = "INSERT OR IGNORE INTO graph_promoted VALUES (?, ?)"
_MARK = """
UPDATE graph_episodes SET promoted = EXISTS (SELECT 1 FROM graph_promoted WHERE episode = ?1)
WHERE hash = ?1
"""
_FACTS_OF = "SELECT fact FROM graph_episodes WHERE hash IN (?)"
_COUNTED = "SELECT episode FROM graph_promoted WHERE episode IN (?)"
_EPISODES = "FROM graph_episodes"
WORTHS = f"SELECT fact, {WORTH} {_EPISODES} WHERE fact IN (?)"
_TELL = """
UPDATE graph_facts SET stands = ?, rank = ?, newest = ?, scope = ?, confidence = ?, denied = ?,
    since = ?, until = ?, observed = ? WHERE id = ?
"""


def insert(conn: sqlite3.Connection, records: Sequence[Record]) -> Inserted:
    """Add records, some at a time and these in the order of the tables, which is much faster. Raises
    GraphError for one that is not sound.
    """
    concepts = facts = episodes = total = 0
    remaining = iter(records)
    with _room(conn, len(records)):
        while batch := list(islice(remaining, _BATCH)):
            for record in batch:
                check(record)
            added = _insert(conn, batch)
            concepts, facts, episodes = concepts + added[0], facts + added[1], episodes + added[2]
            total += sum(len(record.relations) for record in batch)
    return Inserted(concepts, facts, episodes, total - episodes)


def mark(conn: sqlite3.Connection, episodes: Collection[bytes]) -> None:
    """Note of these whether promotions count them."""
    conn.executemany(_MARK, [(episode,) for episode in episodes])
    tell(conn, {row[0] for row in among(conn, _FACTS_OF, episodes)})


def tell(conn: sqlite3.Connection, facts: Iterable[int]) -> None:
    """Let these facts say what all their episodes come to."""
    found: dict[int, list[Worth]] = {}
    for fact, *worth in among(conn, WORTHS, facts):
        found.setdefault(fact, []).append(Worth(*worth))
    conn.executemany(_TELL, [(*told(episodes), fact) for fact, episodes in found.items()])


def among(
    conn: sqlite3.Connection, statement: str, values: Iterable[object], more: Values = ()
) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement for all values, some at a time: these stand where it says `IN (?)`, and
    `more` are those for the `?` behind. Each row is a plain tuple.
    """
    remaining = iter(values)
    cursor = conn.cursor()
    cursor.row_factory = None
    while batch := list(islice(remaining, _VALUES)):
        size = 1 << (len(batch) - 1).bit_length()  # few lengths: each is compiled once and kept
        batch += batch[:1] * (size - len(batch))
        marks = ", ".join("?" * size)
        yield from cursor.execute(statement.replace("IN (?)", f"IN ({marks})"), (*batch, *more))


@contextmanager
def _room(conn: sqlite3.Connection, records: int) -> Iterator[None]:
    """Hold more pages for a while: each record changes a dozen of them, and those are everywhere. For
    the same reason they are put from the log into the file more seldom, until few records come again.
    """
    is_many = records >= _MANY
    conn.execute(f"PRAGMA wal_autocheckpoint = {_LOGGED if is_many else _USUAL}")
    if not is_many:
        yield
        return
    (usual,) = conn.execute("PRAGMA cache_size").fetchone()
    conn.execute(f"PRAGMA cache_size = -{_HELD}")
    try:
        yield
    finally:
        conn.execute(f"PRAGMA cache_size = {usual}")


def _insert(conn: sqlite3.Connection, batch: Sequence[Record]) -> tuple[int, int, int]:
    """How many concepts, facts and episodes are new."""
    mentioned = [mention for record in batch for mention in mentions(record)]
    concepts, new_concepts = _insert_concepts(conn, mentioned)
    said: dict[bytes, tuple[Relation, ConceptContext]] = {}
    for record in batch:
        contexts = {context.hash.value: context for context in record.contexts}
        for relation in record.relations:
            said.setdefault(relation.episode.value, (relation, contexts[relation.context.value]))
    episodes, new_facts, new_episodes = _insert_relations(conn, said, concepts)
    rows = []
    aliases = []
    for one in mentioned:
        concept, episode = concepts[one.concept], episodes[one.episode]
        rows.append((episode, concept, one.confidence, one.created, one.updated))
        if one.aliases:
            aliases += [(concept, episode, alias, alias.casefold()) for alias in one.aliases]
    rows.sort()
    conn.executemany(_MENTION, rows)
    conn.executemany(_ALIAS, aliases)
    return new_concepts, new_facts, new_episodes


def _insert_concepts(
    conn: sqlite3.Connection, mentioned: Iterable[MentionRow]
) -> tuple[dict[bytes, int], int]:
    """The numbers of concepts, and how many are new; each as what is said of it comes to."""
    united: dict[bytes, tuple[str, float, int, int]] = {}
    for one in mentioned:
        sure, created, updated = one.confidence, one.created, one.updated
        if (known := united.get(one.concept)) is not None:
            sure, created = max(known[1], sure), min(known[2], created)
            updated = max(known[3], updated)
        united[one.concept] = (one.label, sure, created, updated)
    query = "SELECT hash, id, confidence, created, updated FROM graph_concepts WHERE hash IN (?)"
    ids: dict[bytes, int] = {}
    stronger = []
    for name, number, *before in among(conn, query, united):
        ids[name] = number
        _, sure, created, updated = united[name]
        after = [max(before[0], sure), min(before[1], created), max(before[2], updated)]
        if after != before:
            stronger.append((*after, number))
    conn.executemany(_STRENGTHEN, stronger)
    fresh = _numbered(conn, "concepts", united, ids)
    conn.executemany(_CONCEPT, ((ids[name], name, *united[name]) for name in fresh))
    return ids, len(fresh)


def _insert_relations(
    conn: sqlite3.Connection,
    said: dict[bytes, tuple[Relation, ConceptContext]],
    concepts: dict[bytes, int],
) -> tuple[dict[bytes, int], int, int]:
    """The numbers of episodes, and how many facts and episodes are new."""
    contexts = _insert_contexts(conn, {c.hash.value: c for _, c in said.values()})
    episodes = _ids(conn, "episodes", said)
    new = _numbered(conn, "episodes", said, episodes)
    episodes[LONE] = 0
    relations = {said[name][0].fact.value: said[name][0] for name in new}
    facts = _ids(conn, "facts", relations)
    old_facts = set(facts.values())
    new_facts = _numbered(conn, "facts", relations, facts)
    counted = {row[0] for row in among(conn, _COUNTED, new)}
    rows, worth = [], dict[int, list[Worth]]()
    for name in new:
        relation, context = said[name]
        fact, values = facts[relation.fact.value], episode_row(relation, context)
        promoted = name in counted
        key = episodes[name], name, fact, contexts[context.hash.value]
        rows.append((*key, *values, promoted))
        sure, _, denied, _, at, source, scope, since, until, observed = values
        teller = teller_of(source, context.agent)
        worth.setdefault(fact, []).append(
            Worth(sure, denied, at, since, until, observed, promoted, scope, teller)
        )
    predicates = _insert_predicates(conn, {r.predicate for r in relations.values()})
    conn.executemany(
        _FACT, (_fact_row(relations[f], facts[f], predicates, concepts, worth) for f in new_facts)
    )
    conn.executemany(_EPISODE, rows)
    tell(conn, old_facts)
    promotions = [row for name in new for row in promoted_rows(*said[name])]
    conn.executemany(_PROMOTED, promotions)
    mark(conn, {episode for episode, _ in promotions})
    return episodes, len(new_facts), len(new)


def _fact_row(
    relation: Relation,
    number: int,
    predicates: dict[str, int],
    concepts: dict[bytes, int],
    worth: dict[int, list[Worth]],
) -> Values:
    subject, thing = concepts[relation.subject.value], concepts[relation.object.value]
    key = number, relation.fact.value, subject, predicates[relation.predicate], thing
    return *key, *told(worth[number])


def _insert_contexts(
    conn: sqlite3.Connection, contexts: dict[bytes, ConceptContext]
) -> dict[bytes, int]:
    ids = _ids(conn, "contexts", contexts)
    fresh = _numbered(conn, "contexts", contexts, ids)
    conn.executemany(_CONTEXT, ((ids[name], *context_row(contexts[name])) for name in fresh))
    return ids


def _insert_predicates(conn: sqlite3.Connection, names: set[str]) -> dict[str, int]:
    query = "SELECT name, id FROM graph_predicates WHERE name IN (?)"
    ids: dict[str, int] = dict(among(conn, query, names))
    fresh = _numbered(conn, "predicates", names, ids)
    conn.executemany(_PREDICATE, [(ids[name], name) for name in fresh])
    return ids


def _ids(conn: sqlite3.Connection, table: str, hashes: Iterable[bytes]) -> dict[bytes, int]:
    """The numbers of those that are there."""
    return dict(among(conn, _NUMBERS.replace("TABLE", table), hashes))


def _numbered(
    conn: sqlite3.Connection, table: str, names: Iterable[_Name], ids: dict[_Name, int]
) -> list[_Name]:
    """Those that have no number, in order; now they have the next ones."""
    fresh = sorted(name for name in names if name not in ids)
    (last,) = conn.execute(_LAST.replace("TABLE", table)).fetchone()
    ids.update(zip(fresh, range(last + 1, last + 1 + len(fresh)), strict=True))
    return fresh
