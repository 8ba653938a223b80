"""What the compiler is given: who said what of what, when and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SemanticTuple:
    """One statement, in any spelling.

    `confidence` lies in [0, 1]. `denied` says that it does not hold. `refs` are what it was read from,
    such as ids of facts. `aliases` are other names of the subject and of the object.
    """

    subject: str
    predicate: str
    object: str
    confidence: float = 1.0
    denied: bool = False
    refs: tuple[str, ...] = ()
    subject_aliases: tuple[str, ...] = ()
    object_aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextMeta:
    """When and where the statements were made.

    `event_time` has a zone. `source` is what they were read from, `scope` who may see them. `metadata`
    is kept in the text of the graph, and names nothing: it is no part of the context's identity.
    """

    event_time: datetime
    source: str
    scope: str
    agent: str = ""
    session: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompilerInput:
    """Statements of one context. `utterance` is the sentence they were read out of."""

    tuples: tuple[SemanticTuple, ...]
    context: ContextMeta
    utterance: str = ""
