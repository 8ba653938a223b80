"""The SHA-256 hashes of concepts, facts, contexts and episodes, and the text they are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

from agentd.core.errors import GraphError
from agentd.core.graph import ConceptHash, ContextHash, EpisodeHash, FactHash


def concept_hash(label: str) -> ConceptHash:
    """Return the hash of a concept: sha256 of its normal label in UTF-8. Raises GraphError for a
    lone surrogate.
    """
    return ConceptHash(_digest(label))


def fact_hash(subject_label: str, predicate: str, object_label: str) -> FactHash:
    """Return the hash of a fact: sha256 of `canonical` of the three, which is `s|p|o` unless one of
    them has a `|` or a backslash. All three are in normal form. Raises GraphError as `concept_hash`
    does.
    """
    return FactHash(_digest(canonical(subject_label, predicate, object_label)))


def context_hash(
    event_time: datetime, source: str, scope: str, agent: str = "", session: str = ""
) -> ContextHash:
    """Return the hash of a context: sha256 of `context_text`. Raises GraphError as that does."""
    return ContextHash(_digest(context_text(event_time, source, scope, agent, session)))


def episode_hash(fact: FactHash, context: ContextHash) -> EpisodeHash:
    """Return the hash of an episode: sha256 of the fact's 32 bytes followed by the context's 32."""
    return EpisodeHash(sha256(fact.value + context.value).digest())


def context_text(
    event_time: datetime, source: str, scope: str, agent: str = "", session: str = ""
) -> str:
    """Return the text that identifies a context: `time|source|scope`, followed by `|agent|session`
    unless both are empty.

    The time is `stamp`. The two forms are never equal: one has two separators, the other four.
    Raises what `utc` raises.
    """
    fields = (stamp(event_time), source, scope)
    return canonical(*fields, agent, session) if agent or session else canonical(*fields)


def canonical(*parts: str) -> str:
    r"""Join the parts with `|`; in a part, a backslash becomes `\\` and a `|` becomes `\|`.

    Different lists of parts never give the same text: every `|` after an even number of backslashes
    is a separator, so the parts can be read back.
    """
    return "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)


def stamp(at: datetime) -> str:
    """Return the time in UTC as ISO 8601 with `Z`, without a fraction where that is zero:
    `2026-02-09T12:00:00Z`. Raises what `utc` raises.
    """
    return utc(at).replace(tzinfo=None).isoformat() + "Z"


def utc(at: datetime) -> datetime:
    """Return the same moment in UTC. Raises GraphError for a time without a zone, or outside the
    years 1 to 9999 in UTC.
    """
    if at.tzinfo is None:
        raise GraphError(f"the time {at.isoformat()} has no zone", cure="give it one, such as UTC")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise GraphError(
            f"the time {at.isoformat()} is before the year 1 or after 9999", cure="correct it"
        ) from None


def utf8(text: str) -> bytes:
    """Encode the text. Raises GraphError for a lone surrogate, which no file can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise GraphError(
            f"the text {text[:40]!r} is damaged: its character {error.start + 1} is half of one",
            cure="write the text again",
        ) from None


def _digest(text: str) -> bytes:
    return sha256(utf8(text)).digest()
