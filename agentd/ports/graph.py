"""The concept graph: where it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentd.domain.concept import (
    Concept,
    ConceptHash,
    Context,
    ContextHash,
    Edge,
    EpisodeHash,
    GraphCounts,
    Inserted,
    Record,
    Relation,
)


class GraphStore(Protocol):
    """The derived tables of the graph. The text under `memory/graph/` is its home: they can be made
    from it again.

    `scopes` names the audiences whose facts are seen; None sees all.
    """

    async def insert(self, records: Sequence[Record]) -> Inserted:
        """Add records in one transaction. An episode that is there already changes nothing; a concept
        that is there gets the union of the aliases, the higher confidence and the later time.
        """

    async def rebuild(self, records: Sequence[Record]) -> Inserted:
        """Make these all there is, in one transaction."""

    async def remove(self, episodes: Sequence[EpisodeHash]) -> int:
        """Take episodes out, with the facts, concepts and contexts that nothing else needs. Returns how
        many were there.
        """

    async def counts(self) -> GraphCounts:
        """How much there is."""

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        """Those that are there."""

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, Context]:
        """Those that are there."""

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        """The concepts with one of these normal labels or aliases, in the order of their hashes."""

    async def edges(
        self, concepts: Sequence[ConceptHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Edge]:
        """The facts with one of these as subject or object, each once, in the order of their hashes."""

    async def stating(
        self, predicate: str, limit: int, *, scopes: Sequence[str] | None = None
    ) -> Sequence[Edge]:
        """The facts with this predicate, the surest first, at most `limit`."""

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        """The episodes about these concepts, or all, in the order of their hashes."""
