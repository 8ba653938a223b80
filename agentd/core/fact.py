"""What agentd knows about its user, one sentence at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Self

from agentd.core.turn import SessionKey

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
    """How a fact came to be known. Whoever kept it, the later word of the user's holds."""

    EXPLICIT = "explicit"  # the user asked for it to be remembered
    FILE = "file"  # the user wrote or changed its line by hand
    EXTRACTED = "extracted"  # it was read out of a conversation

    @property
    def confidence(self) -> float:
        """How sure a new fact of this source is, 0..1."""
        return 0.6 if self is FactSource.EXTRACTED else 0.9


class FactStatus(StrEnum):
    """Whether a fact still holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"  # a newer one says otherwise
    ENDED = "ended"  # it held once, and nothing came in its place
    PROPOSED = "proposed"  # no words of the user prove it: he decides
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
class Evidence:
    """Words of the user that say a fact: characters `start` to `end` of a row's text. Without a session
    they stand in no transcript; `start == end` where only the row is known. Context evidence is the
    agent's question that a short answer belongs to.
    """

    at: datetime  # when it was said
    session: SessionKey = NO_SESSION
    seq: int = 0
    start: int = 0
    end: int = 0
    is_context: bool = False
    fact_id: str = ""  # "" until the fact has its id

    @property
    def origin(self) -> Provenance:
        """The row."""
        return Provenance(self.session, self.seq)


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Words of the user that ask for facts to be forgotten, which may say them: a row of a conversation, or
    what he typed where no row keeps it.
    """

    at: datetime
    text: str
    session: SessionKey = NO_SESSION
    seq: int = 0  # 0: no row


class Op(StrEnum):
    """What words of the user do to what is known."""

    ADD = "add"
    REPLACE = "replace"  # the new fact takes the place of others
    END = "end"  # others hold no longer, and nothing takes their place
    SAME = "same"  # others were said once more


@dataclass(frozen=True, slots=True)
class FactOperation:
    """One change of what is known, as it was read from the user's words. `text` is one sentence; `ids`
    are the facts that are replaced, ended or repeated. What an operation brings can be meant by later
    ones of the same batch under its `name`.
    """

    op: Op
    at: datetime  # when the words were said
    source: FactSource
    text: str = ""
    category: Category = Category.PERSONAL
    triple: Triple | None = None
    ids: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    is_proven: bool = True  # False: no words of the user were found that say it
    valid_from: datetime | None = None  # None: since it was said
    valid_to: datetime | None = None
    confidence: float | None = None  # None: what its source is worth
    is_carried: bool = False  # out of an export: what was forgotten since stays forgotten
    is_over: bool = False  # of what is carried: it held until `valid_to`, and holds no longer
    by: str = ""  # what came for that: the name of an operation before it, or an id
    name: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. `text` is "" once forgotten. `noted_at` is when it was said or written, `valid_from`
    since when it holds. `valid_to` is set when that has an end, `superseded_by` when another took its
    place.
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
    replaces: tuple[str, ...] = ()  # of a proposed fact: what a yes to it puts aside

    @classmethod
    def tombstone(cls, fact_id: str, at: datetime) -> Self:
        """What is left of a fact that was forgotten then."""
        file, personal = FactSource.FILE, Category.PERSONAL
        return cls(fact_id, "", personal, file, 0.0, at, at, FactStatus.FORGOTTEN, valid_to=at)

    @property
    def is_active(self) -> bool:
        """Whether it holds now."""
        return self.status is FactStatus.ACTIVE

    @property
    def is_alive(self) -> bool:
        """Whether its words are still there."""
        return self.status is not FactStatus.FORGOTTEN

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
class FactHit:
    """A fact that was found, with every partial score."""

    fact: Fact
    score: float
    scores: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        return {**self.fact.as_json(), "score": self.score, "scores": dict(self.scores)}


class Refusal(StrEnum):
    """Why an operation changed nothing."""

    CREDENTIAL = "secret"  # it looks like a key or tells a password
    EMPTY = "empty"
    FORGOTTEN = "forgotten"  # the user had it erased or took it back, and has not said it since
    TOO_LONG = "too_long"
    UNKNOWN_ID = "unknown_id"  # it names no fact that holds
    UNPROVEN = "unproven"  # no words of the user say so, and nothing can wait for his yes


class ChangeKind(StrEnum):
    """What a change did."""

    ADD = "add"
    REPLACE = "replace"
    END = "end"
    EDIT = "edit"  # the user changed a line by hand
    MERGE = "merge"
    ACCEPT = "accept"  # the user said yes to a proposed fact
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Before:
    """What a change found of a fact that it let hold no longer, without its words."""

    id: str
    status: FactStatus
    valid_to: datetime | None = None
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One change in the list of changes. It holds ids, never words. `new` is "" where nothing came."""

    op: ChangeKind
    at: datetime
    session: SessionKey = NO_SESSION
    new: str = ""
    before: tuple[Before, ...] = ()
    id: int = 0  # 0 until it is stored
    undone: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        """The facts that it let hold no longer."""
        return tuple(one.id for one in self.before)


@dataclass(frozen=True, slots=True)
class FactWrite:
    """What one transaction does to the rows of facts."""

    facts: tuple[Fact, ...] = ()  # as they are now
    removed: tuple[str, ...] = ()  # taken back as if they had never been learnt
    evidence: tuple[Evidence, ...] = ()
    changes: tuple[FactChange, ...] = ()
    undone: tuple[int, ...] = ()  # changes by id
    marks: Mapping[SessionKey, int] = field(default_factory=dict)  # rows read up to here
    buried: Mapping[bytes, datetime] = field(
        default_factory=dict
    )  # tombstones of what is taken back
    unburied: tuple[bytes, ...] = ()  # tombstones of what was said again since
    parked: tuple[str, ...] | None = None  # lines that went from the page; None: as before


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of an operation. `fact` is the one that now says it: a new one, a proposed one, or
    the one that was there. `gone` are the facts that it let hold no longer. With a `reason` nothing
    changed.
    """

    fact: Fact | None = None
    is_new: bool = False
    gone: tuple[Fact, ...] = ()
    reason: Refusal | None = None
    change: FactChange | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """Something that is left, with the number by which the user can name it, and with it the `others`: places
    that have the same words.
    """

    n: int
    where: str  # `path:line`, or `sessions/KEY.jsonl:line`
    text: str
    others: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The place in words."""
        return place_in_words(self.where, self.others)

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        told = {"n": self.n, "where": self.where, "text": self.text}
        return {**told, "others": list(self.others)}


def place_in_words(where: str, others: Sequence[str]) -> str:
    """A place, and how many others have the same words."""
    if not others:
        return where
    return f"{where} and {'one place' if len(others) == 1 else f'{len(others)} places'} more"


_GOES_ON = (
    "It goes on by itself; an open chat is told when it is done, and `agentd status` shows it."
)
_WAITS = "That ends with the answer that is being given; an open chat is told."
_NAMED = 5  # files and conversations that are named in words, and lines of each


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What forgetting did, or would do. `places` counts masked places by where they were (`transcripts`,
    `notes`, `versions`, `log` …). `also` are lines that mention the same and stay unless the user names
    them, `more` how many such lines there are, at least, that are not listed. `pending` are places that are
    still to be erased, `waits` whether only for a turn that goes on, `backups` copies that still hold it, `besides` places where more went of the user's
    own words than what says it, since nothing could tell them apart.
    """

    places: Mapping[str, int] = field(default_factory=dict)
    also: tuple[Mention, ...] = ()
    pending: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    more: int = 0
    besides: tuple[str, ...] = ()
    waits: bool = False

    def __add__(self, other: ErasureReport) -> ErasureReport:
        """Both together; what is left is numbered anew."""
        places = {
            place: self.places.get(place, 0) + other.places.get(place, 0)
            for place in (*self.places, *other.places)
        }
        left = dict.fromkeys((m.where, m.text, m.others) for m in (*self.also, *other.also))
        return ErasureReport(
            places,
            tuple(Mention(n, *told) for n, told in enumerate(left, start=1)),
            tuple(dict.fromkeys((*self.pending, *other.pending))),
            tuple(dict.fromkeys((*self.backups, *other.backups))),
            self.more + other.more,
            tuple(dict.fromkeys((*self.besides, *other.besides))),
            any((self.waits, other.waits))
            and all(one.waits for one in (self, other) if one.pending),
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The places that `in_words` names."""
        return (*self.besides, *(one.where for one in self.also), *self.backups, *self.pending)

    def _mentioned(self) -> str:
        """Where else it is mentioned, file by file."""
        lines: dict[str, list[str]] = {}
        for path, _, line in (one.where.rpartition(":") for one in self.also):
            lines.setdefault(path, []).append(line)
        named = dict(islice(lines.items(), _NAMED))
        where = "; ".join(f"{path}:{', '.join(some[:_NAMED])}" for path, some in named.items())
        left = len(self.also) + self.more - sum(len(some[:_NAMED]) for some in named.values())
        return f"{where}, and {left} more" if left else where

    def in_words(self, count: int) -> str:
        """What became of `count` facts, without saying again what was forgotten."""
        what = "One fact is" if count == 1 else f"{count} facts are"
        said = sum(self.places.values())
        places = "one place" if said == 1 else f"{said} places"
        lines = [f"{what} forgotten, with {places} that said it."]
        if self.besides:
            besides = ", ".join(self.besides)
            lines.append(f"All that the user said beside it went, too, in {besides}.")
        if self.also:
            lines.append(f"These mention the same and stay: {self._mentioned()}.")
        if self.backups:
            lines.append(f"Copies that may still hold it: {', '.join(self.backups)}.")
        if self.pending:
            ends = _WAITS if self.waits else _GOES_ON
            lines.append(f"Still being erased: {', '.join(self.pending)}. {ends}")
        return " ".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        return {
            "places": dict(self.places),
            "also": [one.as_json() for one in self.also],
            "pending": list(self.pending),
            "backups": list(self.backups),
            "more": self.more,
            "besides": list(self.besides),
        }


@dataclass(frozen=True, slots=True)
class Matches:
    """Facts that a request may mean: those that it names for sure, or else those near it. `earlier` are
    those that the sure ones have replaced and that say the same words.
    """

    sure: tuple[Fact, ...] = ()
    maybe: tuple[Fact, ...] = ()
    earlier: tuple[Fact, ...] = ()

    @property
    def all_sure(self) -> tuple[Fact, ...]:
        """What goes when the sure ones are forgotten."""
        return (*self.sure, *self.earlier)
