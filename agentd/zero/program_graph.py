"""A program as a value: a graph of operations, its nodes in the order of their declaration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from agentd.zero.values import EMPTY, Map, Value, value_of

SENDER = "sender_confidence"  # the node that a Permission asks when it has no input


@dataclass(frozen=True, slots=True)
class External:
    """A value from outside. `input://NAME` is the input NAME of the run; any other address is looked
    for among the inputs as it stands.
    """

    uri: str

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.uri.removeprefix("input://")


@dataclass(frozen=True, slots=True)
class Operation:
    """A builtin applied to the inputs and parameters."""

    op: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that stands in the graph."""

    value: Value


@dataclass(frozen=True, slots=True)
class Lookup:
    """The entry of the table that the input names, else `default`."""

    table: Map
    default: Value = None


@dataclass(frozen=True, slots=True)
class Condition:
    """One way of a Route. It is taken when the value of `input` is `match_value`; or when it reaches
    `threshold` (a number) or is truthy (anything else); or, without either, always.
    """

    target: str
    input: str = ""
    match_value: Value = None
    threshold: float = 0.0
    confidence: float = 1.0

    @property
    def is_default(self) -> bool:
        """Whether it is taken without looking."""
        return self.match_value is None and self.threshold <= 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """The first of its conditions that holds; Null if none does."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether the sender's confidence reaches `min_confidence`."""

    action: str
    min_confidence: float


NodeType: TypeAlias = External | Operation | Constant | Lookup | Route | Permission


@dataclass(frozen=True, slots=True)
class Node:
    """A step. `inputs` are ids of nodes, or `id.field` for an entry of a node's Map.

    `line` and `column` are where it stands in the text, from 1; 0 for a node that was not read.
    """

    id: str
    type: NodeType
    inputs: tuple[str, ...] = ()
    params: Map = EMPTY
    description: str = ""
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and which of them are the outputs. `entry_point` is for readers; the order of a run
    follows from the inputs. `line` and `column` are where it begins, as for a node.
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    version: int = 1
    description: str = ""
    entry_point: str = ""
    metadata: Map = EMPTY
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


def constant(node_id: str, plain: object) -> Node:
    """A node with a value made from a Python object (see `value_of`, which says what it raises)."""
    return Node(node_id, Constant(value_of(plain)))


def operation(node_id: str, op: str, *inputs: str, **params: object) -> Node:
    """A node that applies a builtin. Parameters are made values like those of `constant`."""
    made = Map({name: value_of(plain) for name, plain in params.items()}) if params else EMPTY
    return Node(node_id, Operation(op), inputs, made)
