"""Facts: what agentd knows about its user, one sentence each; their changes, and reports of
forgetting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Self

from msgspec import Struct, field

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
    """How a fact became known. Whatever the source, the user's later word wins."""

    EXPLICIT = "explicit"  # the user asked for it to be remembered
    FILE = "file"  # the user wrote or changed its line by hand
    EXTRACTED = "extracted"  # it was read out of a conversation

    @property
    def confidence(self) -> float:
        """The initial confidence of a fact of this source, 0..1."""
        return 0.6 if self is FactSource.EXTRACTED else 0.9


class FactStatus(StrEnum):
    """Whether a fact still holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"  # a newer one says otherwise
    ENDED = "ended"  # it no longer holds, and nothing replaced it
    PROPOSED = "proposed"  # no words of the user prove it: he has to decide
    FORGOTTEN = "forgotten"  # its words are erased; the id stays dead


class Triple(Struct, frozen=True):
    """A fact's subject, relation and value: ("user", "dog name", "Rex")."""

    subject: str
    relation: str
    value: str


class Provenance(Struct, frozen=True):
    """The transcript row in which a fact was said; empty for a fact written by hand."""

    session: SessionKey = NO_SESSION
    seq: int = 0


class Evidence(Struct, frozen=True):
    """Words of the user that state a fact: characters `start` to `end` of a row's text.

    Without a session the words are in no transcript; `start == end` if only the row is known. With
    `is_context` the words are the agent's question to which the user gave a short answer.
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
        """The row of the words."""
        return Provenance(self.session, self.seq)


class ForgetRequest(Struct, frozen=True):
    """The user's request to forget facts; its words may state them and are erased, too. It is a row
    of a conversation, or what he typed where no row stores it.
    """

    at: datetime
    text: str
    session: SessionKey = NO_SESSION
    seq: int = 0  # 0: no row


class OperationKind(StrEnum):
    """What an operation does to the facts."""

    ADD = "add"
    REPLACE = "replace"  # the new fact takes the place of others
    END = "end"  # other facts no longer hold, and nothing replaces them
    SAME = "same"  # other facts were repeated


class FactOperation(Struct, frozen=True):
    """One change of the facts, read from the user's words. `text` is one sentence; `ids` are the
    facts that it replaces, ends or repeats. Later operations of the same batch can refer to its
    result by `name`.
    """

    op: OperationKind
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
    confidence: float | None = None  # None: that of its source
    is_carried: bool = False  # from an import: facts forgotten since the export stay forgotten
    is_over: bool = False  # of an imported fact: it held until `valid_to` and no longer does
    by: str = ""  # what replaced it: the name of an earlier operation, or an id
    name: str = ""


class Fact(Struct, frozen=True):
    """One fact. `text` is "" once it is forgotten. `noted_at` is when it was said or written,
    `valid_from` when it began to hold, `valid_to` when it ceases or ceased to hold (None: no end is
    known), `superseded_by` the fact that replaced it.
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
    replaces: tuple[str, ...] = ()  # of a proposed fact: the facts that accepting it replaces

    @classmethod
    def tombstone(cls, fact_id: str, at: datetime) -> Self:
        """Return the tombstone of a fact forgotten at `at`."""
        file, personal = FactSource.FILE, Category.PERSONAL
        return cls(fact_id, "", personal, file, 0.0, at, at, FactStatus.FORGOTTEN, valid_to=at)

    @property
    def is_active(self) -> bool:
        """Whether the fact holds now."""
        return self.status is FactStatus.ACTIVE

    @property
    def is_alive(self) -> bool:
        """Whether the fact is not forgotten, so that its words are still stored."""
        return self.status is not FactStatus.FORGOTTEN

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `agentd facts list`; `text` is None for a forgotten fact."""
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


class FactHit(Struct, frozen=True):
    """A found fact, with its score and all partial scores."""

    fact: Fact
    score: float
    scores: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the shape in answers: the fact's own, with `score` and `scores`."""
        return {**self.fact.as_json(), "score": self.score, "scores": dict(self.scores)}


class Refusal(StrEnum):
    """Why an operation changed nothing."""

    CREDENTIAL = "secret"  # it looks like a key or reveals a password
    EMPTY = "empty"
    FORGOTTEN = "forgotten"  # the user had it erased or took it back, and has not said it since
    TOO_LONG = "too_long"
    UNKNOWN_ID = "unknown_id"  # it names no active fact
    UNPROVEN = "unproven"  # no words of the user state it, and it cannot wait for his answer


class ChangeKind(StrEnum):
    """What a change did."""

    ADD = "add"
    REPLACE = "replace"
    END = "end"
    EDIT = "edit"  # the user changed a line by hand
    MERGE = "merge"
    ACCEPT = "accept"  # the user said yes to a proposed fact
    FORGET = "forget"


class FormerState(Struct, frozen=True):
    """The earlier state of a fact that a change made inactive, without its words."""

    id: str
    status: FactStatus
    valid_to: datetime | None = None
    superseded_by: str = ""


class FactChange(Struct, frozen=True):
    """One entry in the list of changes. It holds ids, never words. `new` is "" if the change
    brought no fact.
    """

    op: ChangeKind
    at: datetime
    session: SessionKey = NO_SESSION
    new: str = ""
    before: tuple[FormerState, ...] = ()
    id: int = 0  # 0 until it is stored
    undone: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        """The ids of the facts that the change made inactive."""
        return tuple(one.id for one in self.before)


class FactWrite(Struct, frozen=True):
    """All that one transaction writes to the fact tables."""

    facts: tuple[Fact, ...] = ()  # facts in their new state
    removed: tuple[str, ...] = ()  # deleted as if they had never been learnt
    evidence: tuple[Evidence, ...] = ()
    changes: tuple[FactChange, ...] = ()
    undone: tuple[int, ...] = ()  # ids of undone changes
    marks: Mapping[SessionKey, int] = field(default_factory=dict)  # last row read, by session
    # Tombstones of facts that are taken back.
    buried: Mapping[bytes, datetime] = field(default_factory=dict)
    unburied: tuple[bytes, ...] = ()  # tombstones to delete: the user has said these again
    parked: tuple[str, ...] | None = None  # ids whose lines are gone from the page; None: unchanged


class OperationResult(Struct, frozen=True):
    """The result of an operation. `fact` is the fact that now states it: new, proposed, or
    existing. `gone` are the facts it made inactive. If there is a `reason`, nothing changed.
    """

    fact: Fact | None = None
    is_new: bool = False
    gone: tuple[Fact, ...] = ()
    reason: Refusal | None = None
    change: FactChange | None = None


class Mention(Struct, frozen=True):
    """A text that mentions forgotten words and stays. The user can name it by its number `n`, and
    with it `others`, the places that contain the same words.
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
        """Return the shape in answers."""
        told = {"n": self.n, "where": self.where, "text": self.text}
        return {**told, "others": list(self.others)}


def place_in_words(where: str, others: Sequence[str]) -> str:
    """Return a place and how many other places contain the same words, in words."""
    if not others:
        return where
    return f"{where} and {'one place' if len(others) == 1 else f'{len(others)} places'} more"


_GOES_ON = (
    "Erasing goes on by itself; an open chat is told when it is done, and `agentd status` shows it."
)
_WAITS = "It is erased there once this answer has ended; an open chat is told."
_NAMED = 5  # files and conversations that are named in words, and lines of each


class ErasureReport(Struct, frozen=True):
    """What forgetting did, or would do.

    `places` counts masked places by kind (`transcripts`, `notes`, `versions`, `log` …). `also` are
    lines that mention the same and stay unless the user names them; `more` counts (at least) those
    that are not listed. `pending` are places still to be erased; `waits` means that they only wait
    for a running turn to end. `backups` are copies that may still contain it. `besides` are places
    where more of the user's own words than the fact were erased because they could not be told
    apart. `goes` are sentences that would be erased, listed by the preview of a text alone; then
    `more` counts those that are not listed.
    """

    places: Mapping[str, int] = field(default_factory=dict)
    also: tuple[Mention, ...] = ()
    pending: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    more: int = 0
    besides: tuple[str, ...] = ()
    waits: bool = False
    goes: tuple[Mention, ...] = ()

    def __add__(self, other: ErasureReport) -> ErasureReport:
        """Combine two reports; the mentions are numbered anew."""
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
            (*self.goes, *other.goes),
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The places that `in_words` may name."""
        return (*self.besides, *(one.where for one in self.also), *self.backups, *self.pending)

    def _mentioned(self) -> str:
        """Return the remaining mentions in words, file by file."""
        lines: dict[str, list[str]] = {}
        for path, _, line in (one.where.rpartition(":") for one in self.also):
            lines.setdefault(path, []).append(line)
        named = dict(islice(lines.items(), _NAMED))
        where = "; ".join(f"{path}:{', '.join(some[:_NAMED])}" for path, some in named.items())
        left = len(self.also) + self.more - sum(len(some[:_NAMED]) for some in named.values())
        return f"{where}, and {left} more" if left else where

    def in_words(self, count: int) -> str:
        """Describe what became of `count` facts, without repeating the forgotten words."""
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
            lines.append(f"It still stands in: {', '.join(self.pending)}. {ends}")
        return " ".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the shape in answers."""
        return {
            "places": dict(self.places),
            "also": [one.as_json() for one in self.also],
            "pending": list(self.pending),
            "backups": list(self.backups),
            "more": self.more,
            "besides": list(self.besides),
        }


class Matches(Struct, frozen=True):
    """The facts that a request may mean: `sure` if it clearly names them, else `maybe`, the nearest
    ones. `earlier` are facts that the sure ones replaced and that contain the same words.
    """

    sure: tuple[Fact, ...] = ()
    maybe: tuple[Fact, ...] = ()
    earlier: tuple[Fact, ...] = ()

    @property
    def all_sure(self) -> tuple[Fact, ...]:
        """All facts that are erased when the sure ones are forgotten."""
        return (*self.sure, *self.earlier)
