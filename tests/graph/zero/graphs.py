"""Graphs that several tests of the language use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentd.zero import Execution, Graph, Host, ProgramLimits, Value, execute, operation
from agentd.zero.program_graph import Constant, Node
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import value_of

EVERYTHING = """\
# every type of node, and most of what the reader lets pass
Graph {
    name: "everything", version: 1,
    nodes: [
        { id: "message", type: External, uri: "input://message" },
        { id: "sender_confidence", type: Constant, value: Confidence(0.8) },
        { id: "word", type: Operation, op: ExtractFirstWord, inputs: ["message"], },
        { id: "is_command", type: Operation, op: StartsWith, inputs: ["message"], prefix: "/" },
        { id: "skill", type: Lookup, input: "word", table: { "/help": "skill:help" }, default: "none" },
        { id: "allowed", type: Permission, action: "answer", min_confidence: 0.5 },
        { id: "way", type: Route, conditions: [
            { input: "is_command", threshold: 0.9, target: "skill", confidence: 0.95 },
            { input: "word", match_value: "hello", target: "greet" },
            { target: "talk", confidence: 0.7 },  # otherwise
        ] },
        { id: "sure", type: Operation, op: Multiply, inputs: ["way.confidence", "allowed.confidence"] },
        { id: "odd", type: Constant, value: { "a:b # {c}, ]": [1, -2.5e3, true, null, "\\u00e9\\n"], } },
        { id: "hash", type: Operation, op: Hash, inputs: ["odd", "raw"] },
        { id: "raw", type: Constant, value: Bytes("00ff") },
        { id: "both", type: Operation, op: Concat, inputs: ["word", "skill"], params: { separator: "|" } },
    ],
    outputs: ["skill", "sure", "hash", "both"],
    entry_point: "message",
    metadata: { tags: ["test"] },
}
"""


class MemoryHost:
    """States and memories in memory."""

    def __init__(self, **states: Value) -> None:
        self.states = states
        self.asked: list[tuple[str, str, int, int]] = []

    def load(self, key: str) -> Value:
        return self.states.get(key)

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        self.asked.append((label, predicate, depth, limit))
        return [SemanticTuple(label, "needs", f"thing {n}", 0.5) for n in range(5)]


def graph_of(*nodes: Node, outputs: tuple[str, ...] | None = None) -> Graph:
    return Graph("test", nodes, (nodes[-1].id,) if outputs is None else outputs)


def apply(
    op: str,
    *inputs: object,
    host: Host | None = None,
    limits: ProgramLimits | None = None,
    **params: object,
) -> Value:
    """What one operation makes of the inputs."""
    return run_one(op, *inputs, host=host, limits=limits, **params).outputs["made"]


def run_one(
    op: str,
    *inputs: object,
    host: Host | None = None,
    limits: ProgramLimits | None = None,
    **params: object,
) -> Execution:
    given = [Node(f"in{index}", Constant(value_of(plain))) for index, plain in enumerate(inputs)]
    made = operation("made", op, *(node.id for node in given), **params)
    return execute(graph_of(*given, made), host=host, limits=limits)


def example(name: str) -> str:
    """The text of an example of the docs."""
    return (Path(__file__).parents[3] / "docs" / "examples" / f"{name}.0").read_text("utf-8")


EXAMPLES = ("schema", "example_memory")
