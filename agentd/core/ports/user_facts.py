"""What is known about the user: where it is kept, how it is found, and what forgets it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

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
    ForgetRequest,
    Learned,
    Matches,
)
from agentd.core.turn import SessionKey


class FactStore(Protocol):
    """The rows of facts, their evidence and their changes. `memory/facts.md` is where facts
    are kept: their rows can be made from it again.
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

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> ErasureReport:
        """Erase facts and what says them, with those mentions of the preview that are named by number,
        and what the requests to forget say of them. Raises NotFound.
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

    async def remember_alone(self, session: SessionKey, quote: str) -> tuple[Learned, ...]:
        """The same for a message that others may have chosen: read with nothing beside it, and where
        nothing is read out of it, the owner's whole sentence around the quote. Empty if he did not say it.
        """

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

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        session: SessionKey = NO_SESSION,
        typed: str = "",
    ) -> ErasureReport:
        """See Facts. The request is what the owner said last in the session; or what he has `typed`, where
        no session keeps it.
        """


class Eraser(Protocol):
    """A place where words may stand."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    async def erase(self, erasure: Erasure) -> int:
        """Mask them; returns how many places had them. When this returns, no byte of what was masked
        is left in the files of this place. Repeating it is harmless.
        """


class Wanted(Protocol):
    """Who looks through texts, of which he has to be given few. Methods may be called in threads."""

    def may_be(self, text: str, where: str) -> bool:
        """Whether it is to be given a text that is kept there, or any part of a file with this text.
        The text may stand there as JSON.
        """

    def among(self, texts: Sequence[str]) -> Sequence[int]:
        """The numbers of those of the texts, from 0 on, of which `may_be` is true wherever they are kept:
        quicker than one by one.
        """

    @property
    def places(self) -> Collection[str]:
        """Where texts are kept that it is to be given whatever they say."""

    def looked_for(self) -> Callable[[str], bool]:
        """Whether a text has words that every text given so far was looked through for. Of words that are
        so, each text that has them was wanted.
        """

    def expect(self, count: int) -> None:
        """So many texts, about, are there to be looked through."""

    def pass_over(self, count: int) -> None:
        """So many texts, about, were there that did not have to be."""


class Writings(Protocol):
    """A place whose texts can be looked through, since some of them may have to be erased."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """Its texts, as far as they are wanted, else all of them; portion by portion, those of one file or
        table in their order.
        """
