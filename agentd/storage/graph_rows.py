"""Writes records of the concept graph into tables of the index database; removes episodes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from agentd.core.evidence import check, teller_of
from agentd.core.graph import ConceptContext, InsertCounts, Record, Relation
from agentd.storage.graph_columns import (
    LONE,
    WORTH,
    EpisodeWorth,
    MentionRow,
    Values,
    context_row,
    episode_row,
    mentions,
    promoted_rows,
    worth_columns,
)

_Name = TypeVar("_Name", bytes, str)

_BATCH = 2_000  # records whose rows are held at once
_MANY = 200  # from so many records on, the page cache is enlarged meanwhile
_HELD = 32 << 10  # KiB of that cache
_LOGGED = 16 << 10  # pages in the log before they are moved into the file then; else:
_USUAL = 1_000
_VALUES = 512  # values in one statement
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
_RECORD_PROMOTED = """
UPDATE graph_episodes SET promoted = EXISTS (SELECT 1 FROM graph_promoted WHERE episode = ?1)
WHERE hash = ?1
"""
_FACTS_OF = "SELECT fact FROM graph_episodes WHERE hash IN (?)"
_COUNTED = "SELECT episode FROM graph_promoted WHERE episode IN (?)"
_EPISODES = "FROM graph_episodes"
WORTHS = f"SELECT fact, {WORTH} {_EPISODES} WHERE fact IN (?)"
_UPDATE_FACT = """
UPDATE graph_facts SET stands = ?, rank = ?, newest = ?, scope = ?, confidence = ?, denied = ?,
    since = ?, until = ?, observed = ? WHERE id = ?
"""
_PROMOTIONS = "SELECT promotion FROM graph_promoted WHERE episode IN (?)"
_EVIDENCE = "SELECT episode FROM graph_promoted WHERE promotion IN (?)"
_HASHES = "SELECT hash FROM graph_episodes WHERE hash IN (?)"
_THERE = """
SELECT e.hash, e.id, e.fact, e.context, f.predicate, f.subject, f.object FROM graph_episodes e
JOIN graph_facts f ON f.id = e.fact WHERE e.hash IN (?)
"""
_DROP_CONTEXT = """
DELETE FROM graph_contexts WHERE id = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_episodes WHERE context = ?1)
"""
_DROP_FACT = """
DELETE FROM graph_facts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM graph_episodes WHERE fact = ?1)
"""
_DROP_PREDICATE = """
DELETE FROM graph_predicates WHERE id = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE predicate = ?1)
"""
_DROP_CONCEPT = """
DELETE FROM graph_concepts WHERE id = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE subject = ?1)
    AND NOT EXISTS (SELECT 1 FROM graph_facts WHERE object = ?1)
    AND NOT EXISTS (SELECT 1 FROM graph_mentions WHERE episode = 0 AND concept = ?1)
"""
_UPDATE_CONCEPT = """
UPDATE graph_concepts SET (confidence, created, updated) = (
    SELECT max(m.confidence), min(m.created), max(m.updated) FROM (
        SELECT 0 AS id
        UNION ALL SELECT e.id FROM graph_facts f CROSS JOIN graph_episodes e ON e.fact = f.id
            WHERE f.subject = ?1
        UNION ALL SELECT e.id FROM graph_facts f CROSS JOIN graph_episodes e ON e.fact = f.id
            WHERE f.object = ?1
    ) near CROSS JOIN graph_mentions m ON m.episode = near.id AND m.concept = ?1
) WHERE id = ?1
"""


def insert(conn: sqlite3.Connection, records: Sequence[Record]) -> InsertCounts:
    """Add records and return what was new. Records are inserted in batches, and each batch in the
    order of the tables, which is much faster. Raises GraphError for an unsound record.
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
    return InsertCounts(concepts, facts, episodes, total - episodes)


def remove(conn: sqlite3.Connection, episodes: Iterable[bytes]) -> int:
    """Remove episodes, everything that only they needed, and the promotions that count them; return
    how many of the given episodes existed.
    """
    wanted = set(episodes)
    also = {row[0] for row in among(conn, _PROMOTIONS, wanted)}
    there = {row[0] for row in among(conn, _HASHES, wanted)}
    refresh_concepts(conn, delete_episodes(conn, wanted | also))
    return len(there)


def delete_episodes(conn: sqlite3.Connection, episodes: Iterable[bytes]) -> set[int]:
    """Remove these episodes alone and everything that only they needed; return the concepts for
    which `refresh_concepts` is due.
    """
    rows = list(among(conn, _THERE, episodes))
    pairs = {(end, row[1]) for row in rows for end in row[5:]}
    gone = [row[0] for row in rows]
    counted = {row[0] for row in among(conn, _EVIDENCE, gone)}
    conn.executemany("DELETE FROM graph_episodes WHERE id = ?", [(row[1],) for row in rows])
    conn.executemany("DELETE FROM graph_mentions WHERE concept = ? AND episode = ?", pairs)
    conn.executemany("DELETE FROM graph_aliases WHERE concept = ? AND episode = ?", pairs)
    conn.executemany("DELETE FROM graph_promoted WHERE promotion = ?", [(name,) for name in gone])
    conn.executemany(_DROP_FACT, {(row[2],) for row in rows})
    conn.executemany(_DROP_CONTEXT, {(row[3],) for row in rows})
    conn.executemany(_DROP_PREDICATE, {(row[4],) for row in rows})
    touched = {concept for concept, _ in pairs}
    conn.executemany(_DROP_CONCEPT, [(concept,) for concept in touched])
    record_promoted(conn, counted)
    refresh_facts(conn, {row[2] for row in rows})
    return touched


def refresh_concepts(conn: sqlite3.Connection, concepts: Iterable[int]) -> None:
    """Recompute confidence and times of concepts from their remaining mentions. For a concept with
    very many facts this takes as long as removing hundreds of episodes.
    """
    conn.executemany(_UPDATE_CONCEPT, [(concept,) for concept in concepts])


def record_promoted(conn: sqlite3.Connection, episodes: Collection[bytes]) -> None:
    """Record for each of these episodes whether a promotion counts it, then recompute its fact."""
    conn.executemany(_RECORD_PROMOTED, [(episode,) for episode in episodes])
    refresh_facts(conn, {row[0] for row in among(conn, _FACTS_OF, episodes)})


def refresh_facts(conn: sqlite3.Connection, facts: Iterable[int]) -> None:
    """Recompute the columns of these facts that summarise their episodes."""
    found: dict[int, list[EpisodeWorth]] = {}
    for fact, *worth in among(conn, WORTHS, facts):
        found.setdefault(fact, []).append(EpisodeWorth(*worth))
    conn.executemany(
        _UPDATE_FACT, [(*worth_columns(episodes), fact) for fact, episodes in found.items()]
    )


def among(
    conn: sqlite3.Connection, statement: str, values: Iterable[object], more: Values = ()
) -> Iterator[tuple[Any, ...]]:
    """Run the statement for all values, in batches: they replace its `IN (?)`, and `more` are the
    values of the `?` after it. Yields each row as a plain tuple.
    """
    remaining = iter(values)
    cursor = conn.cursor()
    cursor.row_factory = None
    while batch := list(islice(remaining, _VALUES)):
        size = 1 << (len(batch) - 1).bit_length()  # few lengths: compiled once each
        batch += batch[:1] * (size - len(batch))
        marks = ", ".join("?" * size)
        yield from cursor.execute(statement.replace("IN (?)", f"IN ({marks})"), (*batch, *more))


@contextmanager
def _room(conn: sqlite3.Connection, records: int) -> Iterator[None]:
    """Enlarge the page cache for many records: each changes a dozen pages all over the file. For
    the same reason pages are moved from the log into the file less often, until an insert of few
    records.
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
    """Insert a batch; return how many concepts, facts and episodes are new."""
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
    """Insert or strengthen concepts, each united from all its mentions; return the ids by hash and
    how many are new.
    """
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
    fresh = _assign_ids(conn, "concepts", united, ids)
    conn.executemany(_CONCEPT, ((ids[name], name, *united[name]) for name in fresh))
    return ids, len(fresh)


def _insert_relations(
    conn: sqlite3.Connection,
    said: dict[bytes, tuple[Relation, ConceptContext]],
    concepts: dict[bytes, int],
) -> tuple[dict[bytes, int], int, int]:
    """Insert episodes with their contexts, facts and predicates; return the episode ids by hash and
    how many facts and episodes are new.
    """
    contexts = _insert_contexts(conn, {c.hash.value: c for _, c in said.values()})
    episodes = _ids(conn, "episodes", said)
    new = _assign_ids(conn, "episodes", said, episodes)
    episodes[LONE] = 0
    relations = {said[name][0].fact.value: said[name][0] for name in new}
    facts = _ids(conn, "facts", relations)
    old_facts = set(facts.values())
    new_facts = _assign_ids(conn, "facts", relations, facts)
    counted = {row[0] for row in among(conn, _COUNTED, new)}
    rows, worth = [], dict[int, list[EpisodeWorth]]()
    for name in new:
        relation, context = said[name]
        fact, values = facts[relation.fact.value], episode_row(relation, context)
        promoted = name in counted
        key = episodes[name], name, fact, contexts[context.hash.value]
        rows.append((*key, *values, promoted))
        sure, _, denied, _, at, source, scope, since, until, observed = values
        teller = teller_of(source, context.agent)
        worth.setdefault(fact, []).append(
            EpisodeWorth(sure, denied, at, since, until, observed, promoted, scope, teller)
        )
    predicates = _insert_predicates(conn, {r.predicate for r in relations.values()})
    conn.executemany(
        _FACT, (_fact_row(relations[f], facts[f], predicates, concepts, worth) for f in new_facts)
    )
    conn.executemany(_EPISODE, rows)
    refresh_facts(conn, old_facts)
    promotions = [row for name in new for row in promoted_rows(*said[name])]
    conn.executemany(_PROMOTED, promotions)
    record_promoted(conn, {episode for episode, _ in promotions})
    return episodes, len(new_facts), len(new)


def _fact_row(
    relation: Relation,
    number: int,
    predicates: dict[str, int],
    concepts: dict[bytes, int],
    worth: dict[int, list[EpisodeWorth]],
) -> Values:
    subject, thing = concepts[relation.subject.value], concepts[relation.object.value]
    key = number, relation.fact.value, subject, predicates[relation.predicate], thing
    return *key, *worth_columns(worth[number])


def _insert_contexts(
    conn: sqlite3.Connection, contexts: dict[bytes, ConceptContext]
) -> dict[bytes, int]:
    ids = _ids(conn, "contexts", contexts)
    fresh = _assign_ids(conn, "contexts", contexts, ids)
    conn.executemany(_CONTEXT, ((ids[name], *context_row(contexts[name])) for name in fresh))
    return ids


def _insert_predicates(conn: sqlite3.Connection, names: set[str]) -> dict[str, int]:
    query = "SELECT name, id FROM graph_predicates WHERE name IN (?)"
    ids: dict[str, int] = dict(among(conn, query, names))
    fresh = _assign_ids(conn, "predicates", names, ids)
    conn.executemany(_PREDICATE, [(ids[name], name) for name in fresh])
    return ids


def _ids(conn: sqlite3.Connection, table: str, hashes: Iterable[bytes]) -> dict[bytes, int]:
    """Return the ids of those that exist, by hash."""
    return dict(among(conn, _NUMBERS.replace("TABLE", table), hashes))


def _assign_ids(
    conn: sqlite3.Connection, table: str, names: Iterable[_Name], ids: dict[_Name, int]
) -> list[_Name]:
    """Give the next free ids to the names without one, in order, and return those names."""
    fresh = sorted(name for name in names if name not in ids)
    (last,) = conn.execute(_LAST.replace("TABLE", table)).fetchone()
    ids.update(zip(fresh, range(last + 1, last + 1 + len(fresh)), strict=True))
    return fresh
