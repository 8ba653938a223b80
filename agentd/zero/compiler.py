"""Compiles statements of one context into a record of the graph and the equivalent `.0` text."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    EpisodeHash,
    Record,
    Relation,
)
from agentd.zero.hashes import (
    concept_hash,
    context_hash,
    episode_hash,
    fact_hash,
    utc,
    utf8,
)
from agentd.zero.naming import Aliases, normal_label, normal_predicate
from agentd.zero.record_graph import emit
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

_USUAL = Aliases()


class CompilerOutput(Struct, frozen=True):
    """A record and its `.0` text, from which `agentd.zero.decompiler` makes the record again."""

    record: Record
    graph_text: str


def compile(  # noqa: A001 - what it is called everywhere
    source: CompilerInput, aliases: Aliases = _USUAL
) -> CompilerOutput:
    """Return the record and the `.0` text of the statements. Raises what `record_of` raises."""
    record = record_of(source, aliases)
    text = emit(record, utterance=source.utterance, metadata=source.context.metadata)
    return CompilerOutput(record, text)


def record_of(source: CompilerInput, aliases: Aliases = _USUAL) -> Record:
    """Return the record of the statements: always the same for the same input.

    - A concept occurs once, with the highest confidence of its statements, and with all its other
      names, normalised, as aliases.
    - A fact occurs once, as one episode of the context: a repetition is no new evidence, and gives
      the higher confidence and the refs of both. If a fact is both affirmed and denied, the last
      one counts.
    - Without statements the record has the context alone.

    Raises GraphError for an invalid label or predicate (agentd/zero/naming.py), a confidence
    outside [0, 1], a time without a zone, and a lone surrogate.
    """
    context = _compiler_context(source.context)
    concepts: dict[ConceptHash, Concept] = {}
    relations: dict[EpisodeHash, Relation] = {}
    for statement in source.tuples:
        _check(statement)
        subject = _compiler_concept(
            statement.subject, statement.subject_aliases, statement, context, aliases
        )
        object_ = _compiler_concept(
            statement.object, statement.object_aliases, statement, context, aliases
        )
        for concept in (subject, object_):
            concepts[concept.hash] = _unite(concepts.get(concept.hash), concept)
        relation = _compiler_relation(subject, statement, object_, context)
        relations[relation.episode] = _repeat(relations.get(relation.episode), relation)
    return Record(
        concepts=tuple(sorted(concepts.values(), key=lambda concept: concept.hash)),
        contexts=(context,),
        relations=tuple(sorted(relations.values(), key=lambda relation: relation.episode)),
    )


def _compiler_context(meta: ContextMeta) -> ConceptContext:
    names = (meta.source, meta.scope, meta.agent, meta.session)
    return ConceptContext(context_hash(meta.event_time, *names), utc(meta.event_time), *names)


def _check(statement: SemanticTuple) -> None:
    if not 0 <= statement.confidence <= 1:
        raise GraphError(
            (
                f"the confidence {statement.confidence} of "
                f"{statement.subject[:40]!r} is outside 0 to 1"
            ),
            cure="give one between 0 and 1",
        )
    for ref in statement.refs:
        utf8(ref)


def _compiler_concept(
    name: str,
    others: Iterable[str],
    statement: SemanticTuple,
    context: ConceptContext,
    aliases: Aliases,
) -> Concept:
    label = aliases.resolve(name)
    names = {normal_label(other) for other in (name, *others)} - {label}
    return Concept(
        hash=concept_hash(label),
        label=label,
        confidence=float(statement.confidence),
        created=context.event_time,
        updated=context.event_time,
        aliases=tuple(sorted(names)),
    )


def _unite(old: Concept | None, new: Concept) -> Concept:
    if old is None:
        return new
    return replace(
        old,
        confidence=max(old.confidence, new.confidence),
        aliases=tuple(sorted({*old.aliases, *new.aliases})),
    )


def _compiler_relation(
    subject: Concept, statement: SemanticTuple, object_: Concept, context: ConceptContext
) -> Relation:
    predicate = normal_predicate(statement.predicate)
    fact = fact_hash(subject.label, predicate, object_.label)
    return Relation(
        fact=fact,
        episode=episode_hash(fact, context.hash),
        context=context.hash,
        subject=subject.hash,
        predicate=predicate,
        object=object_.hash,
        confidence=float(statement.confidence),
        created=context.event_time,
        denied=statement.denied,
        refs=tuple(sorted(set(statement.refs))),
    )


def _repeat(old: Relation | None, new: Relation) -> Relation:
    if old is None:
        return new
    is_same = old.denied is new.denied
    return replace(
        new,
        confidence=max(old.confidence, new.confidence) if is_same else new.confidence,
        refs=tuple(sorted({*old.refs, *new.refs})),
    )
