"""Records of the formats: their values, and the digests that prove them whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

from agentd.core.errors import GraphError
from agentd.core.graph import SIZE, Concept, ConceptContext, ConceptHash, Digest, Record, Relation
from agentd.zero.formats.cursor import CURE, Cursor, Word
from agentd.zero.naming import concept_hash, context_hash, episode_hash, fact_hash, stamp

# Confidences, times and hashes as the words of a line, and back; short names of hashes that are unique
# within one text.

_NUMBER = re.compile(r"[0-9](?:\.[0-9]{1,24})?(?:e-[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_WHOLE = re.compile(rf"[0-9a-f]{{{2 * SIZE}}}")
_Kind = TypeVar("_Kind", bound=Digest)

LEAST_DIGITS = 8  # of a short name


def confidence_word(confidence: float) -> str:
    """The shortest number that reads as the same: `0.98`, `1`. Raises GraphError outside [0, 1]."""
    if not 0 <= confidence <= 1:
        raise GraphError(f"the confidence {confidence} is not between 0 and 1", cure=CURE)
    return repr(abs(float(confidence))).removesuffix(".0")


def read_confidence(word: Word, cursor: Cursor) -> float:
    """The number. Raises GraphError for anything but one in [0, 1]."""
    if _NUMBER.fullmatch(word.text) and (value := float(word.text)) <= 1:
        return value
    raise cursor.fault(f"{word.text[:20]!r} is no confidence between 0 and 1", word.column)


def time_word(at: datetime) -> str:
    """The time in UTC. Raises GraphError for a time without a zone, and for one without a year in UTC."""
    try:
        return stamp(at)
    except OverflowError:
        raise GraphError(f"the time {at.isoformat()} is none in UTC", cure=CURE) from None


def read_time(word: Word, cursor: Cursor) -> datetime:
    """The time, in UTC. Raises GraphError for anything but `time_word` writes."""
    if _TIME.fullmatch(word.text):
        try:
            return datetime.fromisoformat(word.text.removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            pass
    raise cursor.fault(f"{word.text[:40]!r} is no time such as 2026-02-18T09:30:00Z", word.column)


def read_whole(word: Word, kind: type[_Kind], cursor: Cursor) -> _Kind:
    """The hash with all its digits. Raises GraphError for anything else."""
    if not _WHOLE.fullmatch(word.text):
        raise cursor.fault(
            f"{word.text[:20]!r} is no hash of {2 * SIZE} hexadecimal digits", word.column
        )
    return kind.from_hex(word.text)


def names(hashes: Sequence[_Kind]) -> Mapping[_Kind, str]:
    """A name for each, in their order: as many of its hexadecimal digits as no other of these begins with,
    at least eight.
    """
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}


# Whether records are what their hashes say, and their one order.

_CURE = "compile it again from its statements"
_Thing = TypeVar("_Thing")


def canonical(record: Record) -> Record:
    """The record with everything in the order of its hashes, each thing once. Raises GraphError when
    two things that differ have one hash.
    """
    return Record(
        _once((concept.hash, concept) for concept in record.concepts),
        _once((context.hash, context) for context in record.contexts),
        _once((relation.episode, relation) for relation in record.relations),
    )


def verify(record: Record) -> None:
    """Raises GraphError, naming the first, when something is not what its hash says, names what is not
    in the record, or has a confidence or a time that none can have.
    """
    labels = {concept.hash: concept.label for concept in record.concepts}
    contexts = {context.hash for context in record.contexts}
    for concept in record.concepts:
        _same(concept.hash, concept_hash(concept.label), f"the concept {concept.label[:40]!r}")
        confidence_word(concept.confidence)
        time_word(concept.created)
        time_word(concept.updated)
    for context in record.contexts:
        time_word(context.event_time)
        _same(context.hash, hash_of(context), f"the context of {context.event_time.isoformat()}")
    for relation in record.relations:
        if relation.context not in contexts:
            raise _missing(relation, "context", relation.context)
        _verify_fact(relation, labels)
        confidence_word(relation.confidence)
        time_word(relation.created)


def strongest_saying(relations: Iterable[Relation]) -> Mapping[ConceptHash, float]:
    """The highest confidence with which each concept is spoken of."""
    strongest: dict[ConceptHash, float] = {}
    for relation in relations:
        for end in (relation.subject, relation.object):
            strongest[end] = max(strongest.get(end, 0.0), relation.confidence)
    return strongest


def told_by(
    concepts: Mapping[ConceptHash, Concept], relations: Iterable[Relation]
) -> tuple[Concept, ...]:
    """What these episodes tell of their concepts: times and confidence are theirs, and of other names
    nobody knows who said them.
    """
    said: dict[ConceptHash, list[Relation]] = {}
    for relation in relations:
        for end in {relation.subject, relation.object}:
            said.setdefault(end, []).append(relation)
    return tuple(
        Concept(
            name,
            concepts[name].label,
            max(one.confidence for one in some),
            min(one.created for one in some),
            max(one.created for one in some),
        )
        for name, some in said.items()
    )


def hash_of(context: ConceptContext) -> Digest:
    """The hash of what it says."""
    return context_hash(
        context.event_time, context.source, context.scope, context.agent, context.session
    )


def _once(named: Iterable[tuple[Digest, _Thing]]) -> tuple[_Thing, ...]:
    found: dict[Digest, _Thing] = {}
    for digest, thing in named:
        if found.setdefault(digest, thing) != thing:
            raise GraphError(f"two things that differ have the hash {digest.hex}", cure=_CURE)
    return tuple(found[digest] for digest in sorted(found, key=lambda one: one.value))


def _verify_fact(relation: Relation, labels: dict[ConceptHash, str]) -> None:
    for end in (relation.subject, relation.object):
        if end not in labels:
            raise _missing(relation, "concept", end)
    subject, object_ = labels[relation.subject], labels[relation.object]
    what = f"the fact {subject[:40]!r} {relation.predicate[:40]!r} {object_[:40]!r}"
    _same(relation.fact, fact_hash(subject, relation.predicate, object_), what)
    _same(relation.episode, episode_hash(relation.fact, relation.context), f"an episode of {what}")


def _same(given: Digest, right: Digest, what: str) -> None:
    if given != right:
        raise GraphError(f"{what} has the hash {given.hex}, but its own is {right.hex}", cure=_CURE)


def _missing(relation: Relation, what: str, digest: Digest) -> GraphError:
    return GraphError(
        f"a fact with {relation.predicate[:40]!r} names the {what} {digest.hex}, which is not there",
        cure=_CURE,
    )
