"""The values of the concept graph: concepts, facts that relate them, episodes and contexts.

A fact is a subject, a predicate and an object. Each time it is said is an episode, said in a
context. Each of the four is identified by the SHA-256 of its content (agentd/zero/hashes.py), so
the same thing said twice, or on another machine, has the same hash. The values that agents exchange
are here, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple, Self

from msgspec import Struct, field

SIZE = 32  # bytes of a SHA-256


class Digest(Struct, frozen=True, order=True):
    """32 bytes, shown as 64 hexadecimal digits. Hashes of different kinds are never equal."""

    value: bytes

    def __post_init__(self) -> None:
        if len(self.value) != SIZE:
            raise ValueError(f"a hash has {SIZE} bytes, not {len(self.value)}")

    def __hash__(self) -> int:
        return hash(self.value)

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Parse 64 hexadecimal digits. Raises ValueError for anything else."""
        if len(text) != 2 * SIZE:
            raise ValueError(f"a hash has {2 * SIZE} hexadecimal digits, not {len(text)}")
        return cls(bytes.fromhex(text))

    @property
    def hex(self) -> str:
        """The hash as 64 hexadecimal digits."""
        return self.value.hex()

    def __str__(self) -> str:
        return self.hex


class ConceptHash(Digest, frozen=True):
    """Identifies a concept by its normalised label."""


class FactHash(Digest, frozen=True):
    """Identifies a fact by its subject, predicate and object."""


class ContextHash(Digest, frozen=True):
    """Identifies a context by its time, source, scope, agent and session."""


class EpisodeHash(Digest, frozen=True):
    """Identifies an episode by its fact and its context."""


class Concept(Struct, frozen=True):
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


class ConceptContext(Struct, frozen=True):
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


class Relation(Struct, frozen=True):
    """An episode: one saying of a fact.

    `denied` means that the fact was contradicted: evidence against it. `confidence` is in [0, 1].
    `refs` name what it was read from, such as ids of facts.
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


class Record(Struct, frozen=True):
    """Concepts, contexts and relations compiled from tuples, each in the order of their hashes.
    Every hash that a relation names is in the record.
    """

    concepts: tuple[Concept, ...] = ()
    contexts: tuple[ConceptContext, ...] = ()
    relations: tuple[Relation, ...] = ()


class Edge(NamedTuple):
    """A fact with all its episodes taken together, as recall uses it. A NamedTuple, because a query
    reads hundreds.

    `confidence` combines the independent episodes, with fading and denials; `newest` is the time of
    the last episode, `episodes` their number.
    """

    fact: FactHash
    subject: ConceptHash
    predicate: str
    object: ConceptHash
    confidence: float
    episodes: int
    newest: datetime


class StoredEpisode(NamedTuple):
    """What is stored of an episode: its confidence, whether it denies the fact, what it was read
    from, and when it was said.
    """

    confidence: float
    denied: bool
    refs: tuple[str, ...]
    said: datetime


class NeighbourQuery(Struct, frozen=True):
    """A request for the facts around some concepts; the fields are the arguments of
    GraphReader.edges.
    """

    concepts: Sequence[ConceptHash]
    scopes: Sequence[str] | None = None
    now: datetime | None = None
    most: int | None = None
    about: Collection[str] = ()


class InsertCounts(Struct, frozen=True):
    """How many new records an insert added. `known` counts the episodes that existed already and
    changed nothing.
    """

    concepts: int = 0
    facts: int = 0
    episodes: int = 0
    known: int = 0


class GraphCounts(Struct, frozen=True):
    """How many records the graph holds; `predicates` is the number of facts by predicate."""

    concepts: int = 0
    facts: int = 0
    episodes: int = 0
    contexts: int = 0
    predicates: dict[str, int] = field(default_factory=dict)


class KeptEpisode(Struct, frozen=True):
    """A stored episode that does not come from a fact. `said` is its record as `.0c` text; `teller`
    is the agent that says it, "" for a promotion; `receipt` identifies its entry in the graph's
    chain, "" if there is none.
    """

    episode: EpisodeHash
    teller: str
    at: datetime  # when it came in
    said: str
    receipt: str = ""


class Share(Struct, frozen=True):
    """A fact shared in a space, in the form of this episode. `is_sent`: a message has announced it.
    An empty `fact` means that the share is taken back.

    The salt is part of what other agents are sent: once it is deleted, the episode's hash reveals
    nothing.
    """

    space: str
    episode: EpisodeHash
    fact: str = ""
    salt: str = ""
    is_sent: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether the share is taken back."""
        return not self.fact

    def ended(self) -> Share:
        """Return this share, taken back; no message has announced that yet."""
        return Share(self.space, self.episode)
