"""Graphs of a text run one behind the other, with a memory that ends with the last of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentd.errors import InvalidRequest
from agentd.graph.naming import normal_label, normal_predicate
from agentd.graph.runtime import ZeroRuntime
from agentd.graph.tuples import SemanticTuple
from agentd.graph.zero import Array, Confidence, External, Graph, Hash32, Map, Value, parse_all
from agentd.ports import Clock


class PassingStore:
    """A RuntimeStore in memory."""

    def __init__(self) -> None:
        self._states: dict[str, Value] = {}
        self._said: list[tuple[SemanticTuple, frozenset[str], str]] = []

    def load(self, key: str) -> Value:
        """As RuntimeStore says."""
        return self._states.get(key)

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """As RuntimeStore says. Raises GraphError for what is no label or predicate."""
        wanted = normal_predicate(predicate) if predicate else ""
        said = [one for one in self._said if not wanted or one[2] == wanted]
        known = {normal_label(label)}
        for _ in range(depth - 1):
            known |= {end for _, ends, _ in said if ends & known for end in ends}
        found = [statement for statement, ends, _ in said if ends & known]
        return sorted(found, key=lambda one: -one.confidence)[:limit]

    def keep(self, states: Mapping[str, Value], statements: Sequence[SemanticTuple]) -> None:
        """As RuntimeStore says. Raises GraphError for what is no label or predicate."""
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


def run_all(data: bytes, inputs: Mapping[str, object], clock: Clock) -> Sequence[dict[str, object]]:
    """What the graphs of a text come to, in their order: `{name, outputs, confidence, hash}`, the
    outputs as JSON can say them. A graph knows what those before it saved and stored.

    Raises ZeroError with the place, GraphError for a statement without names, and InvalidRequest for an
    input that no graph asks for.
    """
    graphs = parse_all(data)
    types = [node.type for graph in graphs for node in graph.nodes]
    asked = {one.name for one in types if isinstance(one, External)}
    if unknown := sorted(inputs.keys() - asked):
        known = f"give one of these: {', '.join(sorted(asked))}" if asked else "leave it out"
        raise InvalidRequest(f"no graph asks for the input {unknown[0][:40]!r}", cure=known)
    runtime = ZeroRuntime(PassingStore(), clock)
    return [_told(runtime, graph, inputs) for graph in graphs]


def _told(runtime: ZeroRuntime, graph: Graph, inputs: Mapping[str, object]) -> dict[str, object]:
    run = runtime.run(graph, inputs)
    return {
        "name": graph.name,
        "outputs": {name: _plain(value) for name, value in run.outputs.items()},
        "confidence": run.confidence,
        "hash": run.hash.hex,
    }


def _plain(value: Value) -> object:
    """The value as JSON says it: Bytes and hashes as digits, a Confidence as a number."""
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
