"""A graph written as lines, and a store that only recall needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from agentd.core.graph import Concept, ConceptHash, Edge
from agentd.testing.graph_doubles import walked
from agentd.zero.hashes import concept_hash, fact_hash

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def edge(subject, predicate, target, confidence=0.9, *, episodes=1, days=0.0) -> Edge:
    """A fact whose newest episode is so many days old."""
    return Edge(
        fact_hash(subject, predicate, target),
        concept_hash(subject),
        predicate,
        concept_hash(target),
        confidence,
        episodes,
        NOW - timedelta(days=days),
    )


class LineGraph:
    """The reading half of a GraphStore; it counts how often it is asked for what.

    A line is `subject predicate object [confidence] [@scope]`.
    """

    def __init__(self, lines: str = "", aliases: Mapping[str, Sequence[str]] | None = None) -> None:
        self.rows: list[Edge] = []
        self.scopes: dict[Edge, str] = {}
        self.asked: list[tuple[str, int]] = []
        self.concept: dict[ConceptHash, Concept] = {}
        for line in filter(None, map(str.strip, lines.splitlines())):
            text, _, scope = line.partition("@")
            subject, predicate, target, *rest = text.split()
            self.put(edge(subject, predicate, target, *map(float, rest)), subject, target)
            self.scopes[self.rows[-1]] = scope or "main"
        for label, others in (aliases or {}).items():
            self.concept[concept_hash(label)] = _concept(label, tuple(others))

    def put(self, row: Edge, subject: str, target: str) -> None:
        self.rows.append(row)
        self.scopes[row] = "main"
        for label in (subject, target):
            self.concept.setdefault(concept_hash(label), _concept(label))

    async def concepts(self, hashes):
        self.asked.append(("concepts", len(hashes)))
        return {one: self.concept[one] for one in hashes if one in self.concept}

    async def labels(self, hashes):
        self.asked.append(("labels", len(hashes)))
        return {one: self.concept[one].label for one in hashes if one in self.concept}

    async def named(self, names):
        self.asked.append(("named", len(names)))
        wanted = set(names)
        found = [c for c in self.concept.values() if wanted & {c.label, *c.aliases}]
        return sorted(found, key=lambda one: one.hash)

    async def edges(self, concepts, *, scopes=None, now=None, most=None, about=()):
        self.asked.append(("edges", len(concepts)))
        found = [e for e in self._seen(scopes) if {e.subject, e.object} & set(concepts)]
        return sorted(found, key=lambda one: one.fact)

    async def walk(self, walk):
        return await walked(walk, self)

    async def stating(self, predicate, limit, *, scopes=None, now=None):
        self.asked.append(("stating", limit))
        found = [e for e in self._seen(scopes) if e.predicate == predicate]
        return sorted(found, key=lambda one: (-one.confidence, one.fact))[:limit]

    async def predicates(self):
        self.asked.append(("predicates", 0))
        return sorted({edge.predicate for edge in self.rows})

    def label(self, one: ConceptHash) -> str:
        return self.concept[one].label

    def _seen(self, scopes):
        return [e for e in self.rows if scopes is None or self.scopes[e] in scopes]


def _concept(label: str, aliases: tuple[str, ...] = ()) -> Concept:
    return Concept(concept_hash(label), label, 0.9, NOW, NOW, tuple(sorted(aliases)))
