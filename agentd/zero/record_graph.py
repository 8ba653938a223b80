"""A record as a graph of the `.0` language, with a proof that contains the hashes it computes.

Executing the graph computes every hash of the record from the words it names, and yields one Map:
`concepts`, `context` (there may be several) and `relations` by name with the fields of schema.0,
and `record_hash`, `trace_hash` and `proof`.

Only Constant nodes and the operations CreateMap, SetField, Hash and MergeMap are used, and the
inputs of MergeMap are always Maps. A concept takes four nodes, since its label is hashed in the
graph, beside the fields that are not part of the hash (aliases, confidence, times). A relation
takes nine, since its fact and episode are hashed and its ends refer to hashes in the graph. A
context takes four.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Record,
    Relation,
)
from agentd.zero import Graph, Map, Node, constant, operation, value_of, write
from agentd.zero.hashes import (
    canonical,
    context_text,
    stamp,
)
from agentd.zero.values import encode

COMPILER = "agentd"


_EMPTY = "empty_map"


_FIELDS = {"concept": "concepts", "context": "context", "relation": "relations"}


_NOTHING = "nothing"  # the node that is hashed as the trace of a record without hashes


def emit(record: Record, *, utterance: str = "", metadata: Mapping[str, str] | None = None) -> str:
    """Return the `.0` text of a record. The utterance and the metadata are kept in the graph's
    metadata, which no hash covers.
    """
    return write(graph_of(record, utterance=utterance, metadata=metadata or {}))


def graph_of(record: Record, *, utterance: str, metadata: Mapping[str, str]) -> Graph:
    """Build the graph of a record."""
    digest = record_hash(record).hex()
    kept = {"utterance": utterance, "metadata": dict(metadata)}
    return Graph(
        name=f"memory_{digest[:16]}",
        nodes=tuple(_nodes(record, digest)),
        outputs=("output",),
        entry_point="concept_data_0" if record.concepts else _EMPTY,
        metadata=Map({name: value_of(value) for name, value in kept.items() if value}),
    )


def record_hash(record: Record) -> bytes:
    """Return the hash of a record's Map, with all words, confidences and times: 32 bytes."""
    labels = {concept.hash: concept.label for concept in record.concepts}
    concepts = [_as_data(concept) | {"concept_hash": concept.hash} for concept in record.concepts]
    contexts = [_when(context) | {"context_hash": context.hash} for context in record.contexts]
    relations = [
        _relation_node(relation, labels) | _ends(relation) for relation in record.relations
    ]
    whole = value_of(
        {
            "concepts": {f"concept_{at}": row for at, row in enumerate(concepts)},
            "context": {f"context_{at}": row for at, row in enumerate(contexts)},
            "relations": {f"relation_{at}": row for at, row in enumerate(relations)},
        }
    )
    return sha256(encode(whole)).digest()


def trace_hash(record: Record) -> bytes:
    """Return the hash of all hashes that the record's graph computes, in the order of its nodes: 32
    bytes.
    """
    trace = sha256()
    for concept in record.concepts:
        trace.update(concept.hash.value)
    for context in record.contexts:
        trace.update(context.hash.value)
    for relation in record.relations:
        trace.update(relation.fact.value + relation.episode.value)
    return trace.digest()


def _nodes(record: Record, digest: str) -> Iterator[Node]:
    concepts = {concept.hash: at for at, concept in enumerate(record.concepts)}
    contexts = {context.hash: at for at, context in enumerate(record.contexts)}
    labels = {concept.hash: concept.label for concept in record.concepts}
    yield operation(_EMPTY, "CreateMap")
    for at, concept in enumerate(record.concepts):
        yield from _concept(at, concept)
    for at, context in enumerate(record.contexts):
        yield from _context(at, context)
    for at, relation in enumerate(record.relations):
        yield constant(f"relation_data_{at}", _relation_node(relation, labels))
        yield from _relation(at, relation, concepts, contexts)
    for kind, rows in _sections(record):
        entries = [f"{kind}_entry_{at}" for at in range(rows)] or [_EMPTY]
        yield operation(f"all_{kind}s", "MergeMap", *entries)
        yield _set(f"{kind}s", _EMPTY, f"all_{kind}s", _FIELDS[kind])
    yield from _proof(record, digest)


def _sections(record: Record) -> tuple[tuple[str, int], ...]:
    return (
        ("concept", len(record.concepts)),
        ("context", len(record.contexts)),
        ("relation", len(record.relations)),
    )


def _concept(at: int, concept: Concept) -> Iterator[Node]:
    yield constant(f"concept_data_{at}", _as_data(concept))
    yield operation(f"concept_hash_{at}", "Hash", f"concept_data_{at}.label")
    yield _set(f"concept_{at}", f"concept_data_{at}", f"concept_hash_{at}", "concept_hash")
    yield _set(f"concept_entry_{at}", _EMPTY, f"concept_{at}", f"concept_{at}")


def _context(at: int, context: ConceptContext) -> Iterator[Node]:
    yield constant(f"context_data_{at}", _when(context))
    yield operation(f"context_hash_{at}", "Hash", f"context_data_{at}.name")
    yield _set(f"context_{at}", f"context_data_{at}", f"context_hash_{at}", "context_hash")
    yield _set(f"context_entry_{at}", _EMPTY, f"context_{at}", f"context_{at}")


def _relation(
    at: int,
    relation: Relation,
    concepts: Mapping[ConceptHash, int],
    contexts: Mapping[ContextHash, int],
) -> Iterator[Node]:
    fact, episode = f"fact_hash_{at}", f"episode_hash_{at}"
    context = f"context_hash_{contexts[relation.context]}"
    yield operation(fact, "Hash", f"relation_data_{at}.fact")
    yield operation(episode, "Hash", fact, context)
    base = f"relation_data_{at}"
    fields = {
        "subject_hash": f"concept_hash_{concepts[relation.subject]}",
        "object_hash": f"concept_hash_{concepts[relation.object]}",
        "context_hash": context,
        "fact_hash": fact,
        "episode_hash": episode,
    }
    for step, (name, value) in enumerate(fields.items(), start=1):
        made = f"relation_{at}" if step == len(fields) else f"relation_step_{at}_{step}"
        yield _set(made, base, value, name)
        base = made
    yield _set(f"relation_entry_{at}", _EMPTY, f"relation_{at}", f"relation_{at}")


def _proof(record: Record, digest: str) -> Iterator[Node]:
    hashes = [f"{kind}_hash_{at}" for kind, rows in _sections(record)[:2] for at in range(rows)]
    for at in range(len(record.relations)):
        hashes += (f"fact_hash_{at}", f"episode_hash_{at}")
    yield operation("record", "MergeMap", "concepts", "contexts", "relations")
    yield operation("record_hash", "Hash", "record")
    if not hashes:
        yield constant(_NOTHING, "")
    yield operation("trace_hash", "Hash", *(hashes or [_NOTHING]))
    claims = {"record_hash": digest, "trace_hash": trace_hash(record).hex(), "compiler": COMPILER}
    yield constant("proof", claims)
    parts = ("record_hash", "trace_hash", "proof")
    for name in parts:
        yield _set(f"{name}_entry", _EMPTY, name, name)
    yield operation("output", "MergeMap", "record", *(f"{name}_entry" for name in parts))


def _set(node: str, base: str, value: str, field: str) -> Node:
    return operation(node, "SetField", base, value, field=field)


def _as_data(concept: Concept) -> dict[str, object]:
    return {
        "label": concept.label,
        "aliases": list(concept.aliases),
        "confidence": float(concept.confidence),
        "created_at": stamp(concept.created),
        "updated_at": stamp(concept.updated),
    }


def _when(context: ConceptContext) -> dict[str, object]:
    names = (context.source, context.scope, context.agent, context.session)
    told: dict[str, object] = {
        "name": context_text(context.event_time, *names),
        "event_time": stamp(context.event_time),
        "source": context.source,
        "scope": context.scope,
    }
    optional = {"agent_id": context.agent, "session_id": context.session}
    return told | {name: value for name, value in optional.items() if value}


def _relation_node(relation: Relation, labels: Mapping[ConceptHash, str]) -> dict[str, object]:
    subject, object_ = labels[relation.subject], labels[relation.object]
    told: dict[str, object] = {
        "fact": canonical(subject, relation.predicate, object_),
        "predicate": relation.predicate,
        "confidence": float(relation.confidence),
        "created_at": stamp(relation.created),
    }
    optional = {"denied": relation.denied, "source_refs": list(relation.refs)}
    return told | {name: value for name, value in optional.items() if value}


def _ends(relation: Relation) -> dict[str, object]:
    return {
        "subject_hash": relation.subject,
        "object_hash": relation.object,
        "context_hash": relation.context,
        "fact_hash": relation.fact,
        "episode_hash": relation.episode,
    }
