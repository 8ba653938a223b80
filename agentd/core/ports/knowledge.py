"""What is known about the user, how it hangs together, and where words of it stand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Generator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from agentd.core.erasure import Erasure, Written
from agentd.core.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Evidence,
    Fact,
    FactChange,
    FactHit,
    FactOperation,
    FactWrite,
    Learned,
    Matches,
)
from agentd.core.graph import (
    Around,
    Concept,
    ConceptContext,
    ConceptHash,
    Consolidated,
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
    Trace,
)
from agentd.core.turn import SessionKey

# What is known about the user: where it is kept, how it is found, and what forgets it.


class FactStore(Protocol):
    """The rows of facts, their evidence and their changes. `memory/facts.md` is the facts' home: their
    rows can be made from it again.
    """

    async def facts(self) -> tuple[Fact, ...]:
        """All of them, in every status, the oldest first."""

    async def write(self, write: FactWrite) -> tuple[FactChange, ...]:
        """Do all of it in one transaction; gives the changes with their ids. Marks never go back, and
        the same evidence counts once.
        """

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        """Make these all there are; marks, evidence, changes and tombstones stay."""

    async def evidence(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        """The words that say each of these, the oldest first."""

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """The newest changes first."""

    async def marks(self) -> Mapping[SessionKey, int]:
        """The last row of each session that facts were read from."""

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        """Blank the facts, mark them forgotten, drop their evidence, and keep keyed hashes of what they
        said.
        """

    async def buried(self) -> Mapping[bytes, datetime]:
        """The keyed hashes of all that was forgotten, each with when that was."""

    async def parked(self) -> tuple[str, ...]:
        """Facts whose lines are gone from the page, unanswered yet."""


class FactVectorStore(Protocol):
    """Vectors of facts."""

    async def facts(self) -> tuple[Fact, ...]:
        """See FactStore."""

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        """The stored vectors of that model by fact id."""

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors of facts that are still there and not forgotten."""


class ProposalStore(Protocol):
    """What the user has answered to proposed lines of his files."""

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        """Remember what the user said to the proposal of a fact; his last word counts."""

    async def answered(self) -> Mapping[str, bool]:
        """Whether he accepted, for each fact that he has answered about."""


class ErasureStore(Protocol):
    """What is being erased. The words go last, with everything else of it."""

    async def begin(self, erasure: Erasure) -> int:
        """Remember durably that this is to be erased everywhere; gives its number."""

    async def update(self, number: int, erasure: Erasure) -> None:
        """It has come this far."""

    async def open(self) -> Mapping[int, Erasure]:
        """What is still to be erased, by number."""

    async def end(self, number: int) -> None:
        """It is done: not a byte of the words stays in the store's files."""


class FactIndex(Protocol):
    """Finds facts."""

    async def put(self, facts: Sequence[Fact]) -> None:
        """Make these findable in their present form; what is not active is taken out."""

    async def remove(self, fact_ids: Sequence[str]) -> None:
        """Take facts out, and everything that was computed of them, jobs that still run included."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """The best active facts for any text, best first; without an embedder by keywords alone."""

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """The active facts nearest to a text by words and by meaning in turn, however far they are."""

    async def cosines(self, query: str, fact_ids: Sequence[str]) -> Mapping[str, float]:
        """How near each of these facts is in meaning to what is looked for, -1..1; without those that
        have no vector, and empty while no embedder answers in time.
        """


class Facts(Protocol):
    """What is known about the user."""

    async def learn(
        self,
        operations: Sequence[FactOperation],
        *,
        session: SessionKey = NO_SESSION,
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[Learned, ...]:
        """Do the operations in order; a bad one costs itself alone. `session` is where the changes are
        told. With `marks` the rows up to there are read, in the same transaction. Raises WorkspaceError,
        StorageError; then nothing was learnt.
        """

    async def all(self) -> tuple[Fact, ...]:
        """Every fact, forgotten ones as ids."""

    async def active(self) -> tuple[Fact, ...]:
        """Those that hold, the oldest first."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """The best active facts."""

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """See FactIndex."""

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """The fact with all it replaced and was replaced by, the oldest first. Raises NotFound."""

    async def forget(self, fact_ids: Sequence[str], also: Sequence[int] = ()) -> ErasureReport:
        """Erase facts and what says them, with those mentions of the preview that are named by number.
        Raises NotFound.
        """

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """What `forget` would do; nothing is done. Raises NotFound."""


class FactService(Protocol):
    """What the owner asks of his facts, himself or through a model."""

    async def remember(
        self, text: str, session: SessionKey, quote: str = "", replaces: Sequence[str] = ()
    ) -> tuple[Learned, ...]:
        """What the owner's message that holds `quote` (without one, his last message) says, read in a
        clean prompt. Empty where nothing was read out of it: then `text` is to be asked.
        """

    async def own_sentence(self, session: SessionKey, quote: str) -> str:
        """The whole sentence of the owner's own words around the quote, "" if he did not say it."""

    async def keep(
        self, text: str, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> tuple[Learned, ...]:
        """Keep words that are the owner's own: what is read out of them, or as they are."""

    async def keep_verbatim(self, sentence: str, session: SessionKey) -> tuple[Learned, ...]:
        """Keep a sentence byte for byte: one that he has said, or has said yes to."""

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        """The facts that he may mean, once all that he said is read: those that hold no more only where
        none that holds is meant, or by their ids. `every`: all facts that say the words.
        """

    async def forget(self, fact_ids: Sequence[str], also: Sequence[int] = ()) -> ErasureReport:
        """See Facts."""


class Eraser(Protocol):
    """A place where words may stand."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    async def erase(self, erasure: Erasure) -> int:
        """Mask them; returns how many places had them. When this returns, no byte of what was masked
        is left in the files of this place. Repeating it is harmless.
        """


# The concept graph: where it is kept.

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

    async def said_between(self, begins: datetime, ends: datetime) -> Sequence[Relation]:
        """The episodes said from the one time to before the other, in the order of their hashes."""

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


# What agentd keeps, as text that may have to be erased.


class Wanted(Protocol):
    """Who looks through texts, of which he has to be given few. Methods may be called in threads."""

    def may_be(self, text: str, where: str) -> bool:
        """Whether it is to be given a text that is kept there, or any part of a file with this text. The text
        may stand there as JSON.
        """

    def among(self, texts: Sequence[str]) -> Sequence[int]:
        """The numbers of those of the texts, from 0 on, of which `may_be` is true wherever they are kept:
        quicker than one by one.
        """

    @property
    def places(self) -> Collection[str]:
        """Where texts are kept that it is to be given whatever they say."""

    def expect(self, count: int) -> None:
        """So many texts, about, are there to be looked through."""

    def pass_over(self, count: int) -> None:
        """So many texts, about, were there that did not have to be."""


class Writings(Protocol):
    """A place whose texts can be looked through."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """Its texts, as far as they are wanted, else all of them; portion by portion, those of one file or
        table in their order.
        """
