"""Reads a record back from compiled `.0` text, checked against every hash and the proof in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from agentd.core.errors import GraphError
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    FactHash,
    Record,
    Relation,
)
from agentd.zero import (
    Array,
    Constant,
    Graph,
    Hash32,
    Map,
    Operation,
    ProgramLimits,
    Value,
    execute,
)
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash, utc
from agentd.zero.record_graph import record_hash, trace_hash
from agentd.zero.values import EMPTY, kind_of

_OPERATIONS = frozenset({"CreateMap", "SetField", "Hash", "MergeMap"})
_CURE = "restore the text from a copy, or take its graph out"


class Decompiled(Struct, frozen=True):
    """The contents of a compiled text: the record, and the utterance and metadata kept with it."""

    record: Record
    utterance: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def decompile(graph: Graph) -> Decompiled:
    """Return the record of a graph whose text `agentd.zero.compiler` wrote, with utterance and
    metadata.

    The graph is executed, and its output is accepted only if each hash in it is that of the words
    it names, and the proof has the hashes of the record. Raises GraphError for a graph that was
    changed or is no compiled memory, and its subclass ZeroError for one that cannot be executed.
    """
    _check_nodes(graph)
    output = execute(graph, limits=ProgramLimits(steps=len(graph.nodes))).outputs[graph.outputs[0]]
    whole = _Row("the output", output)
    contexts = tuple(_context(row) for row in whole.rows("context"))
    concepts = tuple(_concept(row) for row in whole.rows("concepts"))
    labels = {concept.hash: concept.label for concept in concepts}
    known = {context.hash for context in contexts}
    relations = tuple(_relation(row, labels, known) for row in whole.rows("relations"))
    record = Record(concepts, contexts, relations)
    proof = whole.row("proof")
    for name, made in (("record_hash", record_hash(record)), ("trace_hash", trace_hash(record))):
        if proof.text(name) != made.hex():
            raise GraphError(f"the {name} of the proof is not that of the record", cure=_CURE)
    beside = _Row("the metadata", graph.metadata)
    return Decompiled(record, beside.text("utterance", ""), beside.texts_by_name("metadata"))


def _check_nodes(graph: Graph) -> None:
    """Refuse a graph that no compiler writes, before it is executed. Raises GraphError."""
    for node in graph.nodes:
        match node.type:
            case Constant():
                continue
            case Operation(op=op) if op in _OPERATIONS:
                continue
        raise GraphError(
            f"the node {node.id!r} is none of a compiled memory",
            cure=_CURE,
            line=node.line,
            column=node.column,
        )
    if len(graph.outputs) != 1:
        raise GraphError("a compiled memory has one output", cure=_CURE)


def _concept(row: _Row) -> Concept:
    label = row.text("label")
    if not label:
        raise GraphError(f"the label of {row.name} says nothing", cure=_CURE)
    made = Concept(
        hash=concept_hash(label),
        label=label,
        confidence=row.confidence(),
        created=row.time("created_at"),
        updated=row.time("updated_at"),
        aliases=row.texts("aliases"),
    )
    row.agree("concept_hash", made.hash.value)
    return made


def _context(row: _Row) -> ConceptContext:
    at, source, scope = row.time("event_time"), row.text("source"), row.text("scope")
    agent, session = row.text("agent_id", ""), row.text("session_id", "")
    made = ConceptContext(
        context_hash(at, source, scope, agent, session), at, source, scope, agent, session
    )
    row.agree("context_hash", made.hash.value)
    return made


def _relation(row: _Row, labels: Mapping[ConceptHash, str], contexts: set[ContextHash]) -> Relation:
    subject, object_ = ConceptHash(row.hash("subject_hash")), ConceptHash(row.hash("object_hash"))
    context, predicate = ContextHash(row.hash("context_hash")), row.text("predicate")
    if subject not in labels or object_ not in labels or context not in contexts:
        raise GraphError(f"{row.name} names what is not in the record", cure=_CURE)
    fact: FactHash = fact_hash(labels[subject], predicate, labels[object_])
    episode: EpisodeHash = episode_hash(fact, context)
    row.agree("fact_hash", fact.value)
    row.agree("episode_hash", episode.value)
    return Relation(
        fact=fact,
        episode=episode,
        context=context,
        subject=subject,
        predicate=predicate,
        object=object_,
        confidence=row.confidence(),
        created=row.time("created_at"),
        denied=row.flag("denied"),
        refs=row.texts("source_refs"),
    )


class _Row:
    """A Map of the output with typed access to its fields. All methods raise GraphError."""

    __slots__ = ("_fields", "name")

    def __init__(self, name: str, value: Value) -> None:
        if not isinstance(value, Map):
            raise GraphError(f"{name} is no Map but {kind_of(value)}", cure=_CURE)
        self.name = name
        self._fields = value

    def row(self, field_name: str) -> _Row:
        return _Row(f"`{field_name}` of {self.name}", self._fields.get(field_name))

    def rows(self, field_name: str) -> list[_Row]:
        section = self.row(field_name)
        return [_Row(f"`{name}`", section._fields[name]) for name in section._fields]

    def text(self, field_name: str, missing: str | None = None) -> str:
        value = self._fields.get(field_name, missing)
        if not isinstance(value, str):
            raise self._wrong(field_name, "a String")
        return value

    def texts(self, field_name: str) -> tuple[str, ...]:
        value = self._fields.get(field_name, Array())
        if not isinstance(value, Array):
            raise self._wrong(field_name, "an Array of Strings")
        found = tuple(item for item in value if isinstance(item, str))
        if len(found) != len(value):
            raise self._wrong(field_name, "an Array of Strings")
        return found

    def texts_by_name(self, field_name: str) -> dict[str, str]:
        value = self._fields.get(field_name, EMPTY)
        if not isinstance(value, Map):
            raise self._wrong(field_name, "a Map of Strings")
        found = {name: item for name, item in value.items() if isinstance(item, str)}
        if len(found) != len(value):
            raise self._wrong(field_name, "a Map of Strings")
        return found

    def flag(self, field_name: str) -> bool:
        value = self._fields.get(field_name, False)
        if not isinstance(value, bool):
            raise self._wrong(field_name, "a Bool")
        return value

    def confidence(self) -> float:
        value = self._fields.get("confidence")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self._wrong("confidence", "a number from 0 to 1")
        return float(value)

    def time(self, field_name: str) -> datetime:
        written = self.text(field_name)
        try:
            at = datetime.fromisoformat(written)
        except ValueError:
            raise self._wrong(field_name, "a time") from None
        return utc(at)

    def hash(self, field_name: str) -> bytes:
        value = self._fields.get(field_name)
        if not isinstance(value, Hash32):
            raise self._wrong(field_name, "a Hash32")
        return value.value

    def agree(self, field_name: str, made: bytes) -> None:
        """Check that the graph computed the hash `made`, which belongs to its words.

        Raises GraphError if it did not.
        """
        if self.hash(field_name) != made:
            raise GraphError(
                f"the `{field_name}` of {self.name} is not that of its words", cure=_CURE
            )

    def _wrong(self, field_name: str, wanted: str) -> GraphError:
        found = kind_of(self._fields.get(field_name))
        return GraphError(
            f"`{field_name}` of {self.name} is {wanted}, and this is not ({found})", cure=_CURE
        )
