"""Episodes of the concept graph out of the tables of the index database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agentd.storage.graph_rows import among, mark, tell

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
_TELL_AGAIN = """
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


def remove(conn: sqlite3.Connection, episodes: Iterable[bytes]) -> int:
    """Take episodes out with what nothing else needs, and with the promotions that count them; returns
    how many of the episodes were there.
    """
    wanted = set(episodes)
    also = {row[0] for row in among(conn, _PROMOTIONS, wanted)}
    there = {row[0] for row in among(conn, _HASHES, wanted)}
    tell_again(conn, take_out(conn, wanted | also))
    return len(there)


def take_out(conn: sqlite3.Connection, episodes: Iterable[bytes]) -> set[int]:
    """Take just these out with what nothing else needs; returns the concepts to `tell_again`."""
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
    mark(conn, counted)
    tell(conn, {row[2] for row in rows})
    return touched


def tell_again(conn: sqlite3.Connection, concepts: Iterable[int]) -> None:
    """Let concepts say what the mentions come to that are left. For one with very many facts, that
    takes as long as taking out hundreds of episodes.
    """
    conn.executemany(_TELL_AGAIN, [(concept,) for concept in concepts])
