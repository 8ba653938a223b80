"""The values of the concept graph: concepts, what relates them, and when and where that was said.

A fact is a subject, a predicate and an object. Each time it is said is an episode of it, said in a
context. All four are named by a SHA-256 of what they are (agentd/zero/hashes.py), so that the same
thing said twice, or on another machine, has the same name. What agents tell each other stands here too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Self

SIZE = 32  # bytes of a SHA-256


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """32 bytes, shown as 64 hexadecimal digits. Hashes of different kinds are never equal."""

    value: bytes

    def __init__(self, value: bytes) -> None:  # written out: questions to the graph make thousands
        if len(value) != SIZE:
            raise ValueError(f"a hash has {SIZE} bytes, not {len(value)}")
        object.__setattr__(self, "value", value)

    def __hash__(self) -> int:
        return hash(self.value)

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """The hash written as 64 hexadecimal digits. Raises ValueError for anything else."""
        if len(text) != 2 * SIZE:
            raise ValueError(f"a hash has {2 * SIZE} hexadecimal digits, not {len(text)}")
        return cls(bytes.fromhex(text))

    @property
    def hex(self) -> str:
        """Its 64 digits."""
        return self.value.hex()

    def __str__(self) -> str:
        return self.hex


class ConceptHash(Digest):
    """Names a concept by its normal label."""

    __slots__ = ()


class FactHash(Digest):
    """Names a fact by its subject, predicate and object."""

    __slots__ = ()


class ContextHash(Digest):
    """Names a context by its time, source, scope, agent and session."""

    __slots__ = ()


class EpisodeHash(Digest):
    """Names one saying of a fact by the fact and the context."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Concept:
    """A thing that facts are about.

    `label` is in normal form (agentd/zero/naming.py); `aliases` are other spellings of it, sorted.
    `confidence` lies in [0, 1]. Times have a zone.
    """

    hash: ConceptHash
    label: str
    confidence: float
    created: datetime
    updated: datetime
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConceptContext:
    """When and where something was said.

    `source` is what it was read from ("facts", "import", a file), `scope` who may see it ("main", a
    session's key, or the name of a shared space).
    """

    hash: ContextHash
    event_time: datetime
    source: str
    scope: str
    agent: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """One saying of a fact: an episode.

    `denied` says that it was contradicted here: evidence against the fact. `confidence` lies in
    [0, 1]. `refs` are what it was read from, such as ids of facts.
    """

    fact: FactHash
    episode: EpisodeHash
    context: ContextHash
    subject: ConceptHash
    predicate: str
    object: ConceptHash
    confidence: float
    created: datetime
    denied: bool = False
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What was compiled from tuples, in the order of its hashes; every hash that a relation names is
    in the record.
    """

    concepts: tuple[Concept, ...] = ()
    contexts: tuple[ConceptContext, ...] = ()
    relations: tuple[Relation, ...] = ()


class Edge(NamedTuple):
    """A fact as recall sees it: all its episodes together. A tuple, because a question reads hundreds.

    `confidence` is what the independent episodes come to, decay and denials included; `newest` is the
    time of its last episode, `episodes` their number.
    """

    fact: FactHash
    subject: ConceptHash
    predicate: str
    object: ConceptHash
    confidence: float
    episodes: int
    newest: datetime


class Held(NamedTuple):
    """What is held of an episode: how sure it is, whether it denies, what it was read from, and when it was
    said.
    """

    confidence: float
    denied: bool
    refs: tuple[str, ...]
    said: datetime


@dataclass(frozen=True, slots=True)
class Around:
    """The facts around some concepts, as GraphStore.edges takes them."""

    concepts: Sequence[ConceptHash]
    scopes: Sequence[str] | None = None
    now: datetime | None = None
    most: int | None = None
    about: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Inserted:
    """What an insert added. Episodes that were there already are `known`, and changed nothing."""

    concepts: int = 0
    facts: int = 0
    episodes: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """How much the graph holds; `predicates` by name with the number of their facts."""

    concepts: int = 0
    facts: int = 0
    episodes: int = 0
    contexts: int = 0
    predicates: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptEpisode:
    """An episode that no fact says, as it is kept. `said` is its record as `.0c` text, `teller` who
    says it, "" for a promotion; `receipt` names its entry in the chain of the graph, "" where none is
    kept.
    """

    episode: EpisodeHash
    teller: str
    at: datetime  # when it came in
    said: str
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A fact that is shared in a space, as this episode. `is_sent`: a message said it. Without `fact`
    it is taken back. The salt is a part of what others are told: once it is gone, the name of the
    episode says nothing.
    """

    space: str
    episode: EpisodeHash
    fact: str = ""
    salt: str = ""
    is_sent: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it is taken back."""
        return not self.fact

    def ended(self) -> Share:
        """It, taken back; no message has said so yet."""
        return Share(self.space, self.episode)
