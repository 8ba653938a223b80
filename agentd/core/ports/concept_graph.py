"""Ports of the concept graph: its derived tables, its records, shares and program states."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol, TypeAlias, TypeVar

from agentd.core.evidence import Consolidated, Trace
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
    KeptEpisode,
    NeighbourQuery,
    Record,
    Relation,
    Share,
    StoredEpisode,
)

T = TypeVar("T")

# A walk yields the concepts whose facts it wants next, is sent those facts as edges, and returns
# its outcome.
Walk: TypeAlias = Generator[NeighbourQuery, Sequence[Edge], T]


class GraphWriter(Protocol):
    """Adds and removes graph records, and records what consolidation did."""

    async def insert(self, records: Sequence[Record]) -> InsertCounts:
        """Add records in one transaction. A known episode changes nothing; a known concept gets the
        union of the aliases, the higher confidence and the later time.

        Raises GraphError, with nothing added, for a time without a zone, a confidence outside [0,
        1], a relation to something its record does not hold, or a promotion that counts something
        other than an episode.
        """

    async def remove(self, episodes: Sequence[EpisodeHash]) -> int:
        """Delete episodes, the facts, concepts and contexts that nothing else needs, and every
        promotion that counts one of them; the promotion's remaining episodes count by themselves
        again. Returns how many of the given episodes existed. Deleted bytes stay in the file until
        the search index, which is in the same file, is erased.
        """

    async def counts(self) -> GraphCounts:
        """Return how many records of each kind the graph holds."""

    async def touch(self, episodes: Sequence[EpisodeHash], at: datetime) -> int:
        """Restart the fading of episodes at `at`, as if they had been said then; an episode's start
        of fading never moves back. Returns how many of them exist and fade.
        """

    async def promotable(self, now: datetime) -> Sequence[Trace]:
        """Return the unpromoted episodes that fade or come from facts and are worth more than 0.1
        at `now`, in groups of at least three that state (or deny) the same fact in the same scope;
        in the order of their hashes.
        """

    async def sweep(self, now: datetime) -> Sequence[Relation]:
        """Delete the episodes that have faded below 0.01, as `remove` does, except that promotions
        stay and still know what they count. Returns the deleted episodes in the order of their
        hashes.

        The work is done in portions: an interruption leaves the rest for the next sweep, and leaves
        the confidence and times of concepts unchanged.
        """

    async def note(self, consolidated: Consolidated) -> None:
        """Record that a consolidation was done."""

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """Return the last `limit` recorded consolidations, newest first."""


class GraphReader(Protocol):
    """Reads concepts and the facts between them."""

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        """Return the concepts that exist, by hash."""

    async def labels(self, hashes: Collection[ConceptHash]) -> Mapping[ConceptHash, str]:
        """Return the labels of the concepts that exist, by hash, in one read; cheaper than
        `concepts`.
        """

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        """Return the concepts with one of these normalised labels or aliases, in the order of their
        hashes.
        """

    async def edges(
        self,
        concepts: Sequence[ConceptHash],
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
        most: int | None = None,
        about: Collection[str] = (),
    ) -> Sequence[Edge]:
        """Return the facts with one of these concepts as subject or object, each once, in the order
        of their hashes.

        `most` bounds the cost for a concept with thousands of facts: for each concept the result
        has at least its `most` surest and newest facts, and as many with a predicate of `about`;
        others may be left out. That choice ignores audiences and the fading of denials.
        """

    async def walk(self, walk: Walk[T]) -> T:
        """Run a walk and return its outcome: send it the facts of each set of concepts it yields.
        The whole walk sees one state of the graph, and runs off the event loop.
        """

    async def stating(
        self,
        predicate: str,
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        """Return at most `limit` facts with this predicate, the surest first, then the newest. If
        there are more, that choice ignores audiences and the fading of denials.
        """

    async def predicates(self) -> Sequence[str]:
        """Return the names of all predicates, sorted."""


class EpisodeReader(Protocol):
    """Reads episodes: what was said, when, and in which context."""

    async def stored_episodes(self) -> Mapping[EpisodeHash, StoredEpisode]:
        """Return all episodes by hash, each with what tells whether it is still up to date."""

    async def said_on(self, day: date) -> Sequence[Relation]:
        """Return the episodes said on a day (UTC), in the order of their hashes."""

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, ConceptContext]:
        """Return the contexts that exist, by hash."""

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        """Return the episodes about these concepts, or all episodes, in the order of their
        hashes.
        """

    async def traces(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Trace]:
        """Return the episodes of these facts with what their weight depends on, in the order of
        their hashes.
        """


class GraphStore(GraphWriter, GraphReader, EpisodeReader, Protocol):
    """The derived tables of the graph: they can be rebuilt from the facts and from GraphRecords.

    `scopes` are the audiences whose facts are visible; None means all. `now` is the time for which
    fading is computed; None takes each episode at its original confidence. Episodes from facts,
    promotions and other agents do not fade (agentd/core/evidence.py). What one other agent says
    counts once, however often and in however many spaces it says it.
    """


class GraphRecords(Protocol):
    """The part of the graph that cannot be derived from facts: what other agents said, and
    promotions.
    """

    async def kept_episodes(self) -> Sequence[KeptEpisode]:
        """Return all kept episodes, in the order in which they came."""

    async def keep(self, episodes: Sequence[KeptEpisode]) -> None:
        """Add episodes in one transaction; one that exists stays as it is."""

    async def drop(
        self,
        episodes: Collection[EpisodeHash],
        withdrawn: Collection[str] = (),
        *,
        traceless: bool = False,
    ) -> None:
        """Delete episodes, and remember the names in `withdrawn`: what other agents send under them
        is not accepted again. With `traceless`, when this returns the store's files hold no byte of
        the deleted episodes.
        """

    async def withdrawn_names(self) -> frozenset[str]:
        """Return the names under which nothing is accepted again."""

    async def has_earlier(self) -> bool:
        """Whether the graph text of earlier releases has been imported."""

    async def take_earlier(
        self,
        episodes: Sequence[KeptEpisode],
        withdrawn: Sequence[str],
        shares: Sequence[Share],
        at: datetime,
    ) -> None:
        """Import the contents of the graph text of earlier releases, and remember that this was
        done, in one transaction.
        """


class ShareStore(Protocol):
    """Which facts are shared with other agents."""

    async def shares(self) -> Sequence[Share]:
        """Return all shares, in the order in which they were put."""

    async def put_shares(self, shares: Sequence[Share], *, traceless: bool = False) -> None:
        """Replace all shares by these. With `traceless`, when this returns the store's files hold
        no byte of the former ones.
        """


class ProgramStates(Protocol):
    """The state that `.0` programs keep between their runs."""

    async def program_state(self, name: str) -> str:
        """Return the text kept under the name; "" if there is none."""

    async def keep_program_state(self, name: str, state: str, at: datetime) -> None:
        """Keep a text under the name; "" deletes it."""
