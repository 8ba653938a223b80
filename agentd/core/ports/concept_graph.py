"""The concept graph: where it is kept."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol, TypeAlias, TypeVar

from agentd.core.evidence import Consolidated, Trace
from agentd.core.graph import (
    Around,
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Edge,
    EpisodeHash,
    FactHash,
    GraphCounts,
    Held,
    Inserted,
    KeptEpisode,
    Record,
    Relation,
    Share,
)

T = TypeVar("T")

# Yields what it wants to see next, is sent these facts, and returns its outcome.
Walk: TypeAlias = Generator[Around, Sequence[Edge], T]


class GraphWriter(Protocol):
    """Records put in and taken out, and what consolidation did with them."""

    async def insert(self, records: Sequence[Record]) -> Inserted:
        """Add records in one transaction. An episode that is there already changes nothing; a concept
        that is there gets the union of the aliases, the higher confidence and the later time.

        Raises GraphError, with nothing added, for a time without a zone, a confidence outside [0, 1],
        a relation to what is not in its record, and a promotion of what is no episode.
        """

    async def remove(self, episodes: Sequence[EpisodeHash], *, traceless: bool = False) -> int:
        """Take episodes out, with the facts, concepts and contexts that nothing else needs, and with
        every promotion that counts one of them: what else it rests on counts by itself again. Returns
        how many of these were there. `traceless`: when this returns, no byte of what was ever taken out
        is left in the store's files.
        """

    async def counts(self) -> GraphCounts:
        """How much there is."""

    async def touch(self, episodes: Sequence[EpisodeHash], at: datetime) -> int:
        """Let episodes fade from `at` on, as if they had been said then; never from an earlier time
        than before. Returns how many of them were there and fade.
        """

    async def promotable(self, now: datetime) -> Sequence[Trace]:
        """The episodes that fade or come from facts, are worth more than 0.1 at `now` and were not
        promoted yet, where at least three of them say the same fact in the same scope, or deny it; in
        the order of their hashes.
        """

    async def sweep(self, now: datetime) -> Sequence[Relation]:
        """Take out the episodes that have faded below 0.01, as `remove` does, but for the promotions:
        these stay, and know what they count. Returns what went, in the order of the hashes. It is done
        some at a time: what cuts it short leaves the rest for the next time, and confidence and times
        of concepts as they were.
        """

    async def note(self, consolidated: Consolidated) -> None:
        """Remember that a consolidation was done."""

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """Those last noted, the last one first."""


class GraphReader(Protocol):
    """Concepts, and the way from one to another."""

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        """Those that are there."""

    async def labels(self, hashes: Collection[ConceptHash]) -> Mapping[ConceptHash, str]:
        """The labels of those that are there: all that an answer shows of them, and read at once."""

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        """The concepts with one of these normal labels or aliases, in the order of their hashes."""

    async def edges(
        self,
        concepts: Sequence[ConceptHash],
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
        most: int | None = None,
        about: Collection[str] = (),
    ) -> Sequence[Edge]:
        """The facts with one of these as subject or object, each once, in the order of their hashes.

        With `most`, a concept with thousands of facts costs little: of each concept there are at least
        its `most` surest and newest facts, and as many with a predicate of `about`; others may be left
        out. Who is the surest is told as if all audiences counted and no denial had faded.
        """

    async def walk(self, walk: Walk[T]) -> T:
        """The outcome of a walk, which yields what it wants to see next and is sent these facts. All of it
        sees one state of the graph, and none of it takes the event loop's time.
        """

    async def stating(
        self,
        predicate: str,
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        """The facts with this predicate, the surest first, of those the newest, at most `limit`. Where
        there are more, they are chosen as if all audiences counted and no denial had faded.
        """

    async def predicates(self) -> Sequence[str]:
        """The names of all predicates, sorted."""


class EpisodeReader(Protocol):
    """What was said, when, and in which context."""

    async def held(self) -> Mapping[EpisodeHash, Held]:
        """All episodes, each with what tells whether it still says what it should."""

    async def said_on(self, day: date) -> Sequence[Relation]:
        """The episodes said on a day (UTC), in the order of their hashes."""

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, ConceptContext]:
        """Those that are there."""

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        """The episodes about these concepts, or all, in the order of their hashes."""

    async def traces(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Trace]:
        """The episodes of these facts with what they are worth, in the order of their hashes."""


class GraphStore(GraphWriter, GraphReader, EpisodeReader, Protocol):
    """The derived tables of the graph: they can be made again from the facts and from GraphRecords.

    `scopes` names the audiences whose facts are seen; None sees all. `now` is the time as of which
    episodes have faded; None takes each as it was said. Of facts, of promotions and of other
    agents the episodes do not fade (agentd/core/graph.py), and what one of those agents says counts
    once, however often and in whichever spaces it does.
    """


class GraphRecords(Protocol):
    """What cannot be derived from facts: what other agents said, and promotions."""

    async def kept(self) -> Sequence[KeptEpisode]:
        """All of them, in the order in which they came."""

    async def keep(self, episodes: Sequence[KeptEpisode]) -> None:
        """Add these in one transaction; one that is there stays as it is."""

    async def drop(
        self,
        episodes: Collection[EpisodeHash],
        withdrawn: Collection[str] = (),
        *,
        traceless: bool = False,
    ) -> None:
        """Take these out, and remember that what others sent under the names `withdrawn` is not to come
        in again. `traceless`: when this returns, no byte of them is left in the store's files.
        """

    async def withdrawn(self) -> frozenset[str]:
        """The names of what is not to come in again."""

    async def has_earlier(self) -> bool:
        """Whether the text that earlier releases kept the graph in was taken in."""

    async def take_earlier(
        self,
        episodes: Sequence[KeptEpisode],
        withdrawn: Sequence[str],
        shares: Sequence[Share],
        at: datetime,
    ) -> None:
        """Take in what that text said, and remember that it was done, in one transaction."""


class ShareStore(Protocol):
    """Which facts are shared with other agents."""

    async def shares(self) -> Sequence[Share]:
        """All of them, in the order in which they were put."""

    async def put_shares(self, shares: Sequence[Share], *, traceless: bool = False) -> None:
        """Make these all there are. `traceless`: when this returns, no byte of what was there before is
        left in the store's files.
        """


class ProgramStates(Protocol):
    """What programs of the `.0` language keep between their runs."""

    async def program_state(self, name: str) -> str:
        """The text kept under the name, "" if there is none."""

    async def keep_program_state(self, name: str, state: str, at: datetime) -> None:
        """Keep a text under the name; "" takes it away."""
