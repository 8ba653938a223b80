"""Runs graphs as programs of a memory: in order, with stored states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from agentd.core.errors import GraphError, InvalidRequest
from agentd.core.ports import Clock
from agentd.zero import (
    Array,
    Confidence,
    Constant,
    External,
    Graph,
    Hash32,
    Map,
    Value,
    constant,
    parse,
    parse_all,
    write,
)
from agentd.zero.call import Host, ProgramLimits
from agentd.zero.interpreter import Execution, execute
from agentd.zero.naming import normal_label, normal_predicate
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import value_of


class ZeroRuntime:
    """Runs graphs for a memory.

    `key` is used by Sign and Verify; without it they are refused. `clock` bounds the time of a run.
    """

    def __init__(
        self,
        store: RuntimeStore,
        clock: Clock,
        *,
        key: bytes = b"",
        limits: ProgramLimits | None = None,
    ) -> None:
        self._store = store
        self._host = Host(clock=clock, key=key, states=store, memories=store)
        self._limits = limits or ProgramLimits()

    def hash(self, data: bytes) -> Hash32:
        """Return the SHA-256 of the bytes."""
        return Hash32(sha256(data).digest())

    def execute_graph(
        self, source: str | bytes, inputs: Mapping[str, object]
    ) -> Mapping[str, Value]:
        """Run the graph of a `.0` text, store what it saves, and return its outputs by id. A run
        that fails stores nothing. Raises ZeroError.
        """
        return self.run(parse(source), inputs).outputs

    def run(self, graph: Graph, inputs: Mapping[str, object]) -> Execution:
        """Do the same for a parsed graph, and return the whole execution. Raises ZeroError."""
        run = execute(graph, inputs, host=self._host, limits=self._limits)
        if run.saved or run.stored:
            self._store.keep(run.saved, run.stored)
        return run

    def load_state(self, key: str) -> Value:
        """Return the value stored under the key; None if there is none, or Null was saved."""
        return self._store.load(key)

    def save_state(self, key: str, value: object) -> None:
        """Store a value under the key. Raises ZeroError for an invalid value."""
        self._store.keep({key: value_of(value)}, ())


class RuntimeStore(Protocol):
    """The store of a runtime's states and statements."""

    def load(self, key: str) -> Value:
        """Return the value stored under the key, None if there is none."""

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """Return at most `limit` statements around a concept, at most `depth` steps away, the
        surest first; only those with `predicate`, unless it is empty.
        """

    def keep(self, states: Mapping[str, Value], statements: Sequence[SemanticTuple]) -> None:
        """Store all of it, or raise and store nothing."""


_STATES, _STATEMENTS = "states", "statements"


class ProgramMemory:
    """A RuntimeStore in memory that can be written as text and read again."""

    def __init__(self) -> None:
        self._states: dict[str, Value] = {}
        self._said: list[tuple[SemanticTuple, frozenset[str], str]] = []

    @classmethod
    def read(cls, text: str) -> ProgramMemory:
        """Read the text that `text` returned; "" gives an empty memory. Raises GraphError for any
        other text.
        """
        memory = cls()
        if not text:
            return memory
        graph = parse(text)
        held = {node.id: node.type.value for node in graph.nodes if isinstance(node.type, Constant)}
        states, said = held.get(_STATES), held.get(_STATEMENTS)
        if not isinstance(states, Map) or not isinstance(said, Array):
            raise GraphError("it is no state of programs", cure="begin anew under another name")
        memory.keep(dict(states.items()), [_statement(one) for one in said])
        return memory

    def text(self) -> str:
        """Return everything stored as `.0` text; "" if there is nothing."""
        if not (self._states or self._said):
            return ""
        said = [
            {
                "subject": one.subject,
                "predicate": one.predicate,
                "object": one.object,
                "confidence": float(one.confidence),
            }
            for one, _, _ in self._said
        ]
        nodes = constant(_STATES, Map(self._states)), constant(_STATEMENTS, said)
        return write(Graph("state", nodes, (_STATES, _STATEMENTS)))

    def load(self, key: str) -> Value:
        """See RuntimeStore."""
        return self._states.get(key)

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """See RuntimeStore. Raises GraphError for an invalid label or predicate."""
        wanted = normal_predicate(predicate) if predicate else ""
        said = [one for one in self._said if not wanted or one[2] == wanted]
        known = {normal_label(label)}
        for _ in range(depth - 1):
            known |= {end for _, ends, _ in said if ends & known for end in ends}
        found = [statement for statement, ends, _ in said if ends & known]
        return sorted(found, key=lambda one: -one.confidence)[:limit]

    def keep(self, states: Mapping[str, Value], statements: Sequence[SemanticTuple]) -> None:
        """See RuntimeStore. Raises GraphError for an invalid label or predicate."""
        said = [
            (
                one,
                frozenset(map(normal_label, (one.subject, one.object))),
                normal_predicate(one.predicate),
            )
            for one in statements
        ]
        self._states.update(states)
        self._said += said


def run_all(
    data: bytes,
    inputs: Mapping[str, object],
    clock: Clock,
    memory: ProgramMemory | None = None,
    key: bytes = b"",
) -> Sequence[dict[str, object]]:
    """Run the graphs of a text in order; return for each `{name, outputs, confidence, hash}`, with
    outputs as JSON values. A graph sees what those before it saved, and what `memory` holds. Sign
    and Verify use the `key`.

    Raises ZeroError with the place, GraphError for a statement without names, and InvalidRequest
    for an input that no graph asks for.
    """
    graphs = parse_all(data)
    types = [node.type for graph in graphs for node in graph.nodes]
    asked = {one.name for one in types if isinstance(one, External)}
    if unknown := sorted(inputs.keys() - asked):
        known = f"give one of these: {', '.join(sorted(asked))}" if asked else "leave it out"
        raise InvalidRequest(f"no graph asks for the input {unknown[0][:40]!r}", cure=known)
    runtime = ZeroRuntime(memory or ProgramMemory(), clock, key=key)
    return [_outcome(runtime, graph, inputs) for graph in graphs]


def _statement(value: Value) -> SemanticTuple:
    """Parse a statement. Raises GraphError."""
    if isinstance(value, Map):
        words = [value.get(name) for name in ("subject", "predicate", "object")]
        sure = value.get("confidence")
        subject, predicate, target = (one if isinstance(one, str) else "" for one in words)
        if subject and predicate and target and isinstance(sure, float):
            return SemanticTuple(subject, predicate, target, sure)
    raise GraphError("it is no state of programs", cure="begin anew under another name")


def _outcome(runtime: ZeroRuntime, graph: Graph, inputs: Mapping[str, object]) -> dict[str, object]:
    run = runtime.run(graph, inputs)
    return {
        "name": graph.name,
        "outputs": {name: _plain(value) for name, value in run.outputs.items()},
        "confidence": run.confidence,
        "hash": run.hash.hex,
    }


def _plain(value: Value) -> object:
    """Return the value as JSON: bytes and hashes as hexadecimal digits, a Confidence as a
    number.
    """
    match value:
        case Map():
            return {name: _plain(item) for name, item in value.items()}
        case Array():
            return [_plain(item) for item in value]
        case Hash32() | bytes():
            return value.hex if isinstance(value, Hash32) else value.hex()
        case Confidence(sure):
            return sure
        case _:
            return value
