"""What is known about the user: where it is kept, how it is found, and what forgets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agentd.domain.erasure import Needles
from agentd.domain.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Fact,
    FactHit,
    Learned,
    Matches,
    Neighbour,
    Sighting,
    Statement,
)
from agentd.domain.turn import SessionKey
from agentd.statements.explicit import Request


class FactStore(Protocol):
    """The rows of facts. `memory/facts.md` is their home: they can be made from it again."""

    async def facts(self) -> tuple[Fact, ...]:
        """All of them, superseded and forgotten ones too, the oldest first."""

    async def save(
        self,
        facts: Sequence[Fact],
        *,
        marks: Mapping[SessionKey, int] | None = None,
        sightings: Sequence[Sighting] = (),
    ) -> None:
        """Add facts or replace those of the same id, move high-water marks, count sightings: all in
        one transaction.
        """

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        """Make these all there are; marks, sightings and tombstones stay."""

    async def marks(self) -> Mapping[SessionKey, int]:
        """The last row of each session that facts were read from."""

    async def sightings(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Sighting]]:
        """When each of these was said, the oldest first."""

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        """Blank the facts, mark them forgotten, and keep keyed hashes of what they said."""

    async def buried(self) -> frozenset[bytes]:
        """The keyed hashes of all that was forgotten."""

    async def unbury(self, digests: Sequence[bytes]) -> None:
        """Take hashes back: the user said it again on purpose."""

    async def park(self, fact_ids: Sequence[str]) -> None:
        """Remember that the lines of exactly these facts are gone from the file, unanswered yet."""

    async def parked(self) -> tuple[str, ...]:
        """Their ids."""

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        """Remember what the user said to the proposal of a fact; his last word counts."""

    async def answered(self) -> Mapping[str, bool]:
        """Whether he accepted, for each fact that he has answered about."""

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        """The stored vectors of that model by fact id."""

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors of facts that are still there and not forgotten."""

    async def begin_erasure(self, needles: Needles) -> int:
        """Remember durably that these words are to be erased everywhere; returns a number."""

    async def erasures(self) -> Mapping[int, Needles]:
        """What is still to be erased."""

    async def end_erasure(self, number: int) -> None:
        """It is done: not a byte of the words stays in the store's files."""


class FactIndex(Protocol):
    """Finds facts."""

    @property
    def model(self) -> str:
        """The model whose cosines `near` gives; "" while that is not known."""

    async def put(self, facts: Sequence[Fact]) -> None:
        """Make these findable in their present form; what is not active is taken out."""

    async def remove(self, fact_ids: Sequence[str]) -> None:
        """Take facts out, and everything that was computed of them, jobs that still run included."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """The best active facts for any text, best first; without an embedder by keywords alone."""

    async def near(self, text: str, floor: float, limit: int) -> Sequence[Neighbour]:
        """Active facts whose cosine with `text` is at least `floor`, the nearest first; none while
        there is no embedder.
        """


class Facts(Protocol):
    """What is known about the user, as tools and commands use it."""

    async def learn(
        self,
        statements: Sequence[Statement],
        *,
        marks: Mapping[SessionKey, int] | None = None,
    ) -> tuple[Learned, ...]:
        """Take statements in, in order: duplicates are counted, contradictions supersede."""

    async def all(self) -> tuple[Fact, ...]:
        """Every fact, forgotten ones as ids."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """The best active facts."""

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """The fact with all it replaced and was replaced by, the oldest first. Raises NotFound."""

    async def forget(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Erase facts and what they say everywhere agentd wrote it. Raises NotFound."""


class Eraser(Protocol):
    """A place where words may stand."""

    @property
    def name(self) -> str:
        """The place in an ErasureReport."""

    async def erase(self, needles: Needles) -> int:
        """Mask them; returns how many places had them. When this returns, no byte of what was masked
        is left in the files of this place. Repeating it is harmless.
        """


class FactDesk(Protocol):
    """What the owner asks of his facts, in his own words."""

    async def remember(
        self, text: str, *, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> Learned:
        """Keep what he asked to be remembered; a sentence about "me" becomes one about the user."""

    async def matching(self, query: str) -> Matches:
        """The active facts that he may mean. `query` may be an id. Raises Busy if none is known, but
        something that he has said of it could not be read yet.
        """

    async def forget(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Erase facts, everywhere. Raises NotFound."""

    async def was_said(self, text: str, session: SessionKey) -> bool:
        """Whether his own last words in the session say this."""

    async def asked_last(self, session: SessionKey) -> Request | None:
        """What his last message in the session asks to be remembered or forgotten, in his words; None
        if it does not begin with such a request.
        """

    async def was_asked_to_forget(self, session: SessionKey, fact: Fact | None = None) -> bool:
        """Whether his last message in the session asks for something to be forgotten, or names this
        fact in answer to the question which one the message before meant.
        """
