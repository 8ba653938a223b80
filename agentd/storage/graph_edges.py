"""Reads facts as recall uses them (Edge) from the tables of the index database."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.storage.graph_columns import EpisodeWorth, moment, remaining_confidence, together
from agentd.storage.graph_rows import WORTHS, among

Row = tuple[Any, ...]

_SAID = (
    "f.id, f.hash, s.hash, p.name, o.hash, f.scope, f.newest, f.confidence, f.denied, f.since,"
    " f.until, f.observed"
)
_FACTS = """
FROM graph_facts f CROSS JOIN graph_concepts s ON s.id = f.subject
CROSS JOIN graph_predicates p ON p.id = f.predicate CROSS JOIN graph_concepts o ON o.id = f.object
"""
_NEAR = _FACTS.replace("FROM", "FROM json_each(:ids) near CROSS JOIN")
_OUT, _IN, _STATING = (
    f"SELECT {_SAID} {_FACTS} WHERE f.{end} IN (?)" for end in ("subject", "object", "predicate")
)
_SEEN = """(f.scope IN (SELECT value FROM json_each(:scopes)) OR f.scope IS NULL AND EXISTS (
    SELECT 1 FROM graph_episodes e
    WHERE e.fact = f.id AND e.scope IN (SELECT value FROM json_each(:scopes))
))"""
_BEST = """SELECT id FROM (
    SELECT f.id FROM graph_facts f WHERE WHAT
    ORDER BY f.rank DESC, f.newest DESC, f.hash LIMIT :most
)"""
_ABOUT = "f.predicate IN (SELECT value FROM json_each(:about))"
_NUMBERS = "SELECT id FROM graph_concepts WHERE hash IN (?)"
_PREDICATES = "SELECT id FROM graph_predicates WHERE name IN (?)"


def around(
    conn: sqlite3.Connection,
    concepts: Iterable[ConceptHash],
    scopes: Sequence[str] | None,
    now: int | None,
    most: int | None,
    about: Collection[str],
    few: int,
) -> list[Edge]:
    """See GraphStore.edges. If the concepts have fewer than `few` facts, all are read; else only
    the surest of each.
    """
    names = {concept.value: concept for concept in concepts}
    ids = [row[0] for row in among(conn, _NUMBERS, names)]
    bound = None if most is None or now is None else few
    rows = _few(conn, ids, bound)
    if bound is not None and most is not None and len(rows) == bound:
        rows = _surest_around(conn, ids, scopes, most, about)
    edges = _edges(conn, rows, scopes, now, names)
    edges.sort(key=_name)
    return edges


def stating(
    conn: sqlite3.Connection,
    predicate: str,
    limit: int,
    scopes: Sequence[str] | None,
    now: int | None,
) -> list[Edge]:
    """See GraphStore.stating."""
    known = [row[0] for row in among(conn, _PREDICATES, [predicate])]
    if now is None:
        rows = list(among(conn, _STATING, known))
    else:
        query = _surest("predicate = :predicate", is_seen=scopes is None)
        full = f"SELECT {_SAID} {_FACTS} WHERE f.id IN ({query})"
        values = {"scopes": json.dumps(scopes), "most": limit}
        rows = [row for one in known for row in _all(conn, full, {**values, "predicate": one})]
    return heapq.nsmallest(limit, _edges(conn, rows, scopes, now, {}), key=_surest_first)


def _few(conn: sqlite3.Connection, concepts: Collection[int], bound: int | None) -> list[Row]:
    """Return the facts with these concepts as subject or object, at most `bound`. This is the
    fastest way while there are few.
    """
    found = chain.from_iterable(among(conn, query, concepts) for query in (_OUT, _IN))
    return list(islice(found, bound))


def _surest_around(
    conn: sqlite3.Connection,
    concepts: Collection[int],
    scopes: Sequence[str] | None,
    most: int,
    about: Collection[str],
) -> list[Row]:
    """Return the surest facts of each concept, and its surest ones with a predicate of `about`."""
    preferred = [row[0] for row in among(conn, _PREDICATES, about)]
    wanted = ["", f" AND {_ABOUT}"] if preferred else [""]
    parts = [
        _surest(f"{end} = near.value{more}", is_seen=scopes is None)
        for end in ("subject", "object")
        for more in wanted
    ]
    query = f"SELECT {_SAID} {_NEAR} WHERE f.id IN ({' UNION ALL '.join(parts)})"
    lists = {"ids": [*concepts], "scopes": scopes, "about": preferred}
    values = {name: json.dumps(value) for name, value in lists.items()}
    return _all(conn, query, {**values, "most": most})


def _surest(where: str, *, is_seen: bool) -> str:
    """Return the query for the ids of the surest facts: of those that do not fade, and of those
    that fade. With `is_seen` every fact may be seen, else only those of the scopes.
    """
    seen = "" if is_seen else f" AND {_SEEN}"
    parts = (f"f.{where} AND f.stands = {stands}{seen}" for stands in (1, 0))
    return " UNION ALL ".join(_BEST.replace("WHAT", part) for part in parts)


def _all(conn: sqlite3.Connection, query: str, values: Mapping[str, object]) -> list[Row]:
    cursor = conn.cursor()
    cursor.row_factory = None
    return cursor.execute(query, values).fetchall()


def _edges(
    conn: sqlite3.Connection,
    rows: Iterable[Row],
    scopes: Sequence[str] | None,
    now: int | None,
    known: Mapping[bytes, ConceptHash],
) -> list[Edge]:
    """Return the facts of these rows, each once, as far as the scopes may see them. `known` are
    concepts by hash, so that their objects are reused.
    """
    facts = {row[0]: row for row in rows}.values()
    seen = None if scopes is None else frozenset(scopes)
    many = _many(conn, [row[0] for row in facts if row[7] is None], seen)
    ends = _Ends(known)
    found = []
    for row in facts:
        (
            number, fact, subject, predicate, thing, scope, newest,
            confidence, denied, since, until, episodes,
        ) = row  # fmt: skip
        if confidence is None:
            if number not in many:
                continue
            confidence, episodes, newest = together(many[number], now)
        elif seen is not None and scope not in seen:
            continue
        elif denied:
            confidence = 0.0
        elif until is not None:
            confidence = remaining_confidence(confidence, since, until, now)
        found.append(
            Edge(
                FactHash(fact), ends[subject], predicate, ends[thing], confidence, episodes,
                moment(newest),
            )
        )  # fmt: skip
    return found


class _Ends(dict[bytes, ConceptHash]):
    """Hashes of concepts by their bytes; each object is made once."""

    def __missing__(self, end: bytes) -> ConceptHash:
        made = self[end] = ConceptHash(end)
        return made


def _many(
    conn: sqlite3.Connection, facts: Sequence[int], seen: Collection[str] | None
) -> dict[int, list[EpisodeWorth]]:
    """Return the episodes of these facts, by fact id, as far as the scopes may see them."""
    found: dict[int, list[EpisodeWorth]] = {}
    for fact, *values in among(conn, WORTHS, facts):
        worth = EpisodeWorth(*values)
        if seen is None or worth.scope in seen:
            found.setdefault(fact, []).append(worth)
    return found


def _name(edge: Edge) -> bytes:
    return edge.fact.value


def _surest_first(edge: Edge) -> tuple[float, float, bytes]:
    return -edge.confidence, -edge.newest.timestamp(), edge.fact.value
