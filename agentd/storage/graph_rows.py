"""Records of the concept graph into the tables of the index database, and episodes out of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from agentd.domain.belief import check
from agentd.domain.concept import Concept, Context, Inserted, Record, Relation
from agentd.storage.graph_values import (
    Values,
    context_row,
    episode_row,
    mention_row,
    mentions,
    promoted_rows,
)

_BATCH = 2_000  # records whose rows are held at once
_VALUES = 512  # that one statement takes
_CLEAR = (
    "DELETE FROM graph_concepts",
    "DELETE FROM graph_mentions",
    "DELETE FROM graph_aliases",
    "DELETE FROM graph_contexts",
    "DELETE FROM graph_facts",
    "DELETE FROM graph_episodes",
    "DELETE FROM graph_promoted",
)
_CONCEPT = "INSERT OR IGNORE INTO graph_concepts VALUES (?, ?, ?, ?, ?)"
_STRENGTHEN = """
UPDATE graph_concepts SET confidence = max(confidence, ?2), created = min(created, ?3),
    updated = max(updated, ?4)
WHERE hash = ?1 AND (confidence < ?2 OR created > ?3 OR updated < ?4)
"""
_MENTION = """
INSERT INTO graph_mentions VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET confidence = max(confidence, excluded.confidence),
    created = min(created, excluded.created), updated = max(updated, excluded.updated)
"""
_ALIAS = "INSERT OR IGNORE INTO graph_aliases VALUES (?, ?, ?, ?)"
_CONTEXT = "INSERT OR IGNORE INTO graph_contexts VALUES (?, ?, ?, ?, ?, ?)"
_FACT = "INSERT OR IGNORE INTO graph_facts VALUES (?, ?, ?, ?)"
_EPISODE = """
INSERT OR IGNORE INTO graph_episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    EXISTS (SELECT 1 FROM graph_promoted WHERE episode = ?2))
"""
_PROMOTED = "INSERT OR IGNORE INTO graph_promoted VALUES (?, ?)"
_MARK = """
UPDATE graph_episodes SET promoted = EXISTS (SELECT 1 FROM graph_promoted WHERE episode = ?1)
WHERE hash = ?1
"""

_PROMOTIONS = "SELECT promotion FROM graph_promoted WHERE episode IN (?)"
_EVIDENCE = "SELECT episode FROM graph_promoted WHERE promotion IN (?)"
_THERE = """
SELECT e.hash, e.fact, e.context, f.subject, f.object FROM graph_episodes e
JOIN graph_facts f ON f.hash = e.fact WHERE e.hash IN (?)
"""
_DROP_CONTEXT = """
DELETE FROM graph_contexts WHERE hash = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_episodes WHERE context = ?1)
"""
_DROP_FACT = """
DELETE FROM graph_facts WHERE hash = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_episodes WHERE fact = ?1)
"""
_DROP_CONCEPT = """
DELETE FROM graph_concepts WHERE hash = ?1
    AND NOT EXISTS (SELECT 1 FROM graph_mentions WHERE concept = ?1)
"""
_TELL_AGAIN = """
UPDATE graph_concepts SET (confidence, created, updated) = (
    SELECT max(confidence), min(created), max(updated) FROM graph_mentions WHERE concept = ?1
) WHERE hash = ?1
"""


def insert(conn: sqlite3.Connection, records: Sequence[Record]) -> Inserted:
    """Add records, some at a time and these in the order of the tables, which is much faster. Raises
    GraphError for one that is not sound.
    """
    concepts = facts = episodes = total = 0
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):
        for record in batch:
            check(record)
        concepts += _insert_concepts(conn, batch)
        added = _insert_relations(conn, batch)
        facts, episodes = facts + added[0], episodes + added[1]
        total += sum(len(record.relations) for record in batch)
    return Inserted(concepts, facts, episodes, total - episodes)


def clear(conn: sqlite3.Connection) -> None:
    """Take all records out."""
    for statement in _CLEAR:
        conn.execute(statement)


def remove(conn: sqlite3.Connection, episodes: Iterable[bytes], *, promotions: bool = True) -> int:
    """Take episodes out with what nothing else needs, and with the promotions that count them unless
    that is denied; returns how many of the episodes were there.
    """
    wanted = set(episodes)
    also = {row[0] for row in among(conn, _PROMOTIONS, wanted)} if promotions else set()
    rows = list(among(conn, _THERE, wanted | also))
    pairs = {(end, row[0]) for row in rows for end in row[3:]}
    gone = [(row[0],) for row in rows]
    counted = [(row[0],) for row in among(conn, _EVIDENCE, [row[0] for row in rows])]
    conn.executemany("DELETE FROM graph_episodes WHERE fact = ? AND hash = ?", _ids(rows))
    conn.executemany("DELETE FROM graph_mentions WHERE concept = ? AND episode = ?", pairs)
    conn.executemany("DELETE FROM graph_aliases WHERE concept = ? AND episode = ?", pairs)
    conn.executemany("DELETE FROM graph_promoted WHERE promotion = ?", gone)
    conn.executemany(_MARK, counted)
    conn.executemany(_DROP_FACT, {(row[1],) for row in rows})
    conn.executemany(_DROP_CONTEXT, {(row[2],) for row in rows})
    touched = {(concept,) for concept, _ in pairs}
    conn.executemany(_DROP_CONCEPT, touched)
    conn.executemany(_TELL_AGAIN, touched)
    return sum(row[0] in wanted for row in rows)


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


def _insert_concepts(conn: sqlite3.Connection, batch: Sequence[Record]) -> int:
    mentioned = [(concept, episode) for record in batch for concept, episode in mentions(record)]
    mentioned.sort(key=_place)
    rows = [mention_row(concept, episode) for concept, episode in mentioned]
    named = (
        (row[0], concept.label, *row[2:]) for row, (concept, _) in zip(rows, mentioned, strict=True)
    )
    added = conn.executemany(_CONCEPT, named).rowcount
    conn.executemany(_STRENGTHEN, ((row[0], *row[2:]) for row in rows))
    conn.executemany(_MENTION, rows)
    aliases = (
        (concept.hash.value, episode, alias, alias.casefold())
        for concept, episode in mentioned
        for alias in concept.aliases
    )
    conn.executemany(_ALIAS, aliases)
    return added


def _insert_relations(conn: sqlite3.Connection, batch: Sequence[Record]) -> tuple[int, int]:
    """How many facts and how many episodes are new."""
    said: list[tuple[Relation, Context]] = []
    for record in batch:
        contexts = {context.hash: context for context in record.contexts}
        said += [(relation, contexts[relation.context]) for relation in record.relations]
    conn.executemany(_CONTEXT, sorted(context_row(context) for _, context in said))
    facts = ((r.fact.value, r.subject.value, r.predicate, r.object.value) for r, _ in said)
    new_facts = conn.executemany(_FACT, sorted(facts)).rowcount
    said.sort(key=_first)
    rows = (episode_row(relation, context) for relation, context in said)
    new_episodes = conn.executemany(_EPISODE, rows).rowcount
    promoted = [row for relation, context in said for row in promoted_rows(relation, context)]
    conn.executemany(_PROMOTED, promoted)
    conn.executemany(_MARK, [(episode,) for episode, _ in promoted])
    return new_facts, new_episodes


def _place(mentioned: tuple[Concept, bytes]) -> tuple[bytes, bytes]:
    return mentioned[0].hash.value, mentioned[1]


def _first(said: tuple[Relation, Context]) -> tuple[bytes, bytes]:
    return said[0].fact.value, said[0].episode.value


def _ids(rows: Iterable[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    return [(row[1], row[0]) for row in rows]
