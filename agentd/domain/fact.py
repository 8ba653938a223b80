"""What agentd knows about its user, one sentence at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from agentd.domain.turn import SessionKey

NO_SESSION = SessionKey("")


class Category(StrEnum):
    """What a fact is about."""

    PERSONAL = "personal"
    PREFERENCE = "preference"
    PROJECT = "project"
    DECISION = "decision"
    INSTRUCTION = "instruction"
    OUTCOME = "outcome"


class FactSource(StrEnum):
    """How a fact came to be known."""

    EXPLICIT = "explicit"  # the user asked for it to be remembered
    FILE = "file"  # the user wrote or changed its line by hand
    EXTRACTED = "extracted"  # it was read out of a conversation

    @property
    def authority(self) -> int:
        """A fact of lower authority never replaces one of a higher."""
        return 1 if self is FactSource.EXTRACTED else 2

    @property
    def confidence(self) -> float:
        """How sure a new fact of this source is, 0..1."""
        return 0.6 if self is FactSource.EXTRACTED else 0.9


class FactStatus(StrEnum):
    """Whether a fact still holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"  # a newer one says otherwise
    FORGOTTEN = "forgotten"  # its words are erased; the id stays dead


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact's subject, relation and value: ("user", "dog name", "Rex")."""

    subject: str
    relation: str
    value: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The row of a transcript that a fact was said in; none for what was written by hand."""

    session: SessionKey = NO_SESSION
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that may become a fact. `text` is one sentence in the third person."""

    text: str
    category: Category
    source: FactSource
    at: datetime  # when it was said: it holds from then on
    origin: Provenance = Provenance()
    triple: Triple | None = None
    confidence: float | None = None  # None: what its source is worth
    is_carried: bool = False  # out of an export: what was forgotten since stays forgotten


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. `text` is "" once forgotten. `valid_to` and `superseded_by` are set when it is no
    longer so; a fact that upkeep put aside has no successor.
    """

    id: str
    text: str
    category: Category
    source: FactSource
    confidence: float
    valid_from: datetime
    noted_at: datetime
    status: FactStatus = FactStatus.ACTIVE
    valid_to: datetime | None = None
    superseded_by: str = ""
    origin: Provenance = Provenance()
    triple: Triple | None = None

    @classmethod
    def grave(cls, fact_id: str, at: datetime) -> Self:
        """What is left of a fact that was forgotten then."""
        file, personal = FactSource.FILE, Category.PERSONAL
        return cls(fact_id, "", personal, file, 0.0, at, at, FactStatus.FORGOTTEN, valid_to=at)

    @property
    def is_active(self) -> bool:
        """Whether it holds now."""
        return self.status is FactStatus.ACTIVE

    def as_json(self) -> dict[str, Any]:
        """The shape in `agentd facts list`."""
        triple = self.triple
        return {
            "id": self.id,
            "text": None if self.status is FactStatus.FORGOTTEN else self.text,
            "status": str(self.status),
            "category": str(self.category),
            "confidence": self.confidence,
            "source": str(self.source),
            "valid_from": self.valid_from.isoformat(),
            "valid_to": self.valid_to.isoformat() if self.valid_to else None,
            "noted_at": self.noted_at.isoformat(),
            "superseded_by": self.superseded_by or None,
            "session": self.origin.session or None,
            "seq": self.origin.seq or None,
            "triple": [triple.subject, triple.relation, triple.value] if triple else None,
        }


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A fact that is near a text in meaning. `cosine` is -1..1."""

    fact: Fact
    cosine: float


@dataclass(frozen=True, slots=True)
class FactHit:
    """A fact that was found, with every partial score."""

    fact: Fact
    score: float
    scores: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        return {**self.fact.as_json(), "score": self.score, "scores": dict(self.scores)}


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fact was said once more: the evidence that it matters."""

    fact_id: str
    at: datetime
    origin: Provenance


class Refusal(StrEnum):
    """Why a statement did not become a fact."""

    AUTHORITY = "authority"  # the user himself said otherwise
    CREDENTIAL = "secret"  # it looks like a key or tells a password
    EMPTY = "empty"
    FORGOTTEN = "forgotten"  # the user had it erased
    SUSPICIOUS = "suspicious"  # it reads like orders to the agent
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of a statement. `fact` is the one that now says it: a new one, or for a duplicate
    the one that was there. It is None when the statement was refused, and only then there is a `reason`.
    `before` are facts that the same words asked to keep, in the order they were said.
    """

    fact: Fact | None
    is_new: bool = False
    superseded: tuple[Fact, ...] = ()
    reason: Refusal | None = None
    before: tuple[Fact, ...] = ()

    @property
    def text(self) -> str:
        """What is known now, one sentence for each fact; "" where nothing was kept."""
        facts = (*self.before, self.fact) if self.fact else self.before
        return " ".join(fact.text for fact in facts)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What forgetting did. `places` counts masked places by where they were (`transcripts`, `notes`,
    `versions`, `log` …); `kept` are the user's own lines that still say it, as `path:line`;
    `backups` are copies that still hold it.
    """

    places: dict[str, int]
    kept: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()  # places that could not be reached yet; tried again

    def __add__(self, other: ErasureReport) -> ErasureReport:
        """Both together."""
        places = {
            place: self.places.get(place, 0) + other.places.get(place, 0)
            for place in (*self.places, *other.places)
        }
        return ErasureReport(
            places,
            *(
                tuple(dict.fromkeys((*mine, *theirs)))
                for mine, theirs in (
                    (self.kept, other.kept),
                    (self.backups, other.backups),
                    (self.pending, other.pending),
                )
            ),
        )

    def in_words(self, count: int) -> str:
        """What became of `count` facts, without saying again what was forgotten."""
        what = "One fact is" if count == 1 else f"{count} facts are"
        said = sum(self.places.values())
        places = "one place" if said == 1 else f"{said} places"
        lines = [f"{what} forgotten, with {places} that said it."]
        if self.kept:
            lines.append(f"The user wrote it himself here, where it stays: {', '.join(self.kept)}.")
        if self.backups:
            lines.append(f"Copies that may still hold it: {', '.join(self.backups)}.")
        if self.pending:
            lines.append(f"Still being erased: {', '.join(self.pending)}.")
        return " ".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        return {
            "places": dict(self.places),
            "kept": list(self.kept),
            "backups": list(self.backups),
            "pending": list(self.pending),
        }


@dataclass(frozen=True, slots=True)
class Matches:
    """Facts that a request may mean: those that say its words, or else those near it in meaning."""

    sure: tuple[Fact, ...] = ()
    maybe: tuple[Fact, ...] = ()
