"""Ports of facts about the user: their store, their index, what the owner asks of them, and
erasure.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agentd.core.erasure import Erasure, StoredText
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
    Matches,
    OperationResult,
)
from agentd.core.turn import SessionKey


class FactStore(Protocol):
    """The rows of facts, their evidence and their changes. `memory/facts.md` is authoritative: the
    rows can be rebuilt from it.
    """

    async def facts(self) -> tuple[Fact, ...]:
        """Return all facts, in every status, oldest first."""

    async def write(self, write: FactWrite) -> tuple[FactChange, ...]:
        """Apply the whole write in one transaction; return its changes with their ids. Marks never
        move back, and equal evidence is stored once.
        """

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        """Replace all fact rows by these; marks, evidence, changes and tombstones stay."""

    async def evidence(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        """Return the evidence of each of these facts, oldest first."""

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """Return the newest `limit` changes, newest first."""

    async def marks(self) -> Mapping[SessionKey, int]:
        """Return for each session the number of the last row that facts were read from."""

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        """Blank the facts, mark them forgotten, delete their evidence, and store `digests`, the
        keyed hashes of what they said.
        """

    async def tombstones(self) -> Mapping[bytes, datetime]:
        """Return the keyed hash of everything forgotten, with the time it was forgotten."""

    async def parked_ids(self) -> tuple[str, ...]:
        """Return the ids of facts whose lines are gone from the page and about which the user has
        not answered.
        """


class FactVectorStore(Protocol):
    """Stored vectors of facts."""

    async def facts(self) -> tuple[Fact, ...]:
        """See FactStore."""

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        """Return the stored vectors of that model, by fact id."""

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors of those facts that still exist and are not forgotten."""


class ProposalStore(Protocol):
    """The user's answers to proposed lines of his files."""

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        """Store the user's answer to the proposal of a fact; a later answer replaces an earlier
        one.
        """

    async def answers(self) -> Mapping[str, bool]:
        """Return for each fact the user has answered about whether he accepted."""


class ErasureStore(Protocol):
    """The erasures that are under way. An erasure holds the words to erase, which are deleted with
    it last.
    """

    async def begin(self, erasure: Erasure) -> int:
        """Store durably what is to be erased everywhere; return the erasure's number."""

    async def update(self, number: int, erasure: Erasure) -> None:
        """Store how far the erasure has come."""

    async def open(self) -> Mapping[int, Erasure]:
        """Return the unfinished erasures, by number."""

    async def end(self, numbers: Collection[int]) -> None:
        """Delete finished erasures: no byte of their words stays in the store's files."""


class FactIndex(Protocol):
    """Searches facts by words and by meaning."""

    async def put(self, facts: Sequence[Fact]) -> None:
        """Index these facts in their present form; those that are not active are removed."""

    async def remove(self, fact_ids: Sequence[str]) -> None:
        """Remove facts and everything computed from them, jobs that still run included."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """Return the best active facts for any text, best first; without an embedder by keywords
        alone.
        """

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """Return the active facts nearest to the text, alternately by words and by meaning, however
        distant.
        """

    async def cosines(self, query: str, fact_ids: Sequence[str]) -> Mapping[str, float]:
        """Return the cosine similarity (-1..1) of each of these facts to the query. Facts without a
        vector are missing; empty if no embedder answers in time.
        """


class Facts(Protocol):
    """The facts about the user: learning, finding and forgetting them."""

    async def learn(
        self,
        operations: Sequence[FactOperation],
        *,
        session: SessionKey = NO_SESSION,
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[OperationResult, ...]:
        """Apply the operations in order; a bad operation fails alone. `session` is where the
        changes are reported. `marks` record in the same transaction up to which row each session
        has been read.

        Raises WorkspaceError, StorageError; then nothing was learnt.
        """

    async def all(self) -> tuple[Fact, ...]:
        """Return every fact; a forgotten one has only its id."""

    async def active(self) -> tuple[Fact, ...]:
        """Return the facts that hold, oldest first."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """Return the best active facts for the query, best first."""

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """See FactIndex."""

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Return the fact with all that it replaced and all that replaced it, oldest first. Raises
        NotFound.
        """

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        asked: Sequence[ForgetRequest] = (),
    ) -> ErasureReport:
        """Erase facts and the words that say them. Erase also the mentions of the preview whose
        numbers are in `also`, and what the requests in `asked` say of the facts. Raises NotFound.
        """

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Return what `forget` would do, without doing it. Raises NotFound."""


class FactService(Protocol):
    """What the owner asks of his facts, by a command or through a model's tool."""

    async def remember(
        self, text: str, session: SessionKey, quote: str = "", replaces: Sequence[str] = ()
    ) -> tuple[OperationResult, ...]:
        """Read facts, in a clean prompt, from the owner's message that contains `quote` (without a
        quote, from his last message) and keep them. Empty if nothing was read from it: then the
        owner is to be asked about `text`.
        """

    async def remember_alone(self, session: SessionKey, quote: str) -> tuple[OperationResult, ...]:
        """Do the same for a message whose choice others may have influenced: it is read with
        nothing beside it, and if nothing is read, the owner's whole sentence around the quote is
        kept. Empty if he did not say it.
        """

    async def keep(
        self, text: str, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> tuple[OperationResult, ...]:
        """Keep the owner's own words: the facts read from them, or if none are, the words as they
        are.
        """

    async def keep_verbatim(
        self, sentence: str, session: SessionKey
    ) -> tuple[OperationResult, ...]:
        """Keep, byte for byte, a sentence that the owner has said or has agreed to."""

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        """Return the facts that the query may mean, after reading all that the owner said. Facts
        that no longer hold are considered only when no current fact matches, or when named by id.
        With `every`, return all facts that contain the words.
        """

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        session: SessionKey = NO_SESSION,
        typed: str = "",
    ) -> ErasureReport:
        """Forget facts, see Facts. The request that is erased with them is the owner's last message
        in the session, or what he has `typed` where no session stores it.
        """


class Eraser(Protocol):
    """A place (transcripts, notes, log …) from which words can be erased."""

    @property
    def name(self) -> str:
        """The name of the place in an ErasureReport."""

    async def erase(self, erasure: Erasure) -> int:
        """Mask the words; return how many places had them. When this returns, the files of this
        place hold no byte of what was masked. Repeating it is harmless.
        """


class TextFilter(Protocol):
    """Selects the texts that an erasure must look through, so that few have to be read. Its methods
    may be called from threads.
    """

    def may_be(self, text: str, where: str) -> bool:
        """Whether a text kept at `where`, or some part of a file with this text, must be looked
        through. The text may be in JSON form.
        """

    def among(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the indices (from 0) of the texts for which `may_be` is true wherever they are
        kept; faster than one call per text.
        """

    @property
    def places(self) -> Collection[str]:
        """The places whose texts must be looked through whatever they say."""

    def looked_for(self) -> Callable[[str], bool]:
        """Return a predicate: whether a text contains words that every text handed over so far was
        checked for. Every text that contains such words was wanted.
        """

    def expect(self, count: int) -> None:
        """Announce that about `count` texts are to be looked through."""

    def pass_over(self, count: int) -> None:
        """Report that about `count` texts existed that did not have to be looked through."""


class SearchableTexts(Protocol):
    """A place whose texts can be looked through because an erasure may concern them."""

    @property
    def name(self) -> str:
        """The name of the place in an ErasureReport."""

    def texts(self, wanted: TextFilter | None = None) -> AsyncIterator[Sequence[StoredText]]:
        """Yield the wanted texts (all if `wanted` is None) in portions, those of one file or table
        in order.
        """
