"""A program as a value: a graph of operations, whose nodes keep the order of their declaration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from agentd.zero.values import EMPTY, Map, Value, value_of

SENDER = "sender_confidence"  # the node with the confidence for a Permission without input


@dataclass(frozen=True, slots=True)
class External:
    """An input of the run. `input://NAME` is the input NAME; any other address is
    itself the name.
    """

    uri: str

    @property
    def name(self) -> str:
        """The name of the input."""
        return self.uri.removeprefix("input://")


@dataclass(frozen=True, slots=True)
class Operation:
    """A builtin, applied to the node's inputs and parameters."""

    op: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value in the graph itself."""

    value: Value


@dataclass(frozen=True, slots=True)
class Lookup:
    """The table's entry for the input, a String; `default` if there is none."""

    table: Map
    default: Value = None


@dataclass(frozen=True, slots=True)
class Condition:
    """One branch of a Route. The branch is taken when the value of `input` equals `match_value`;
    or, without one, when the value reaches `threshold` (a number) or is truthy (anything else).
    With neither set, the branch is always taken.
    """

    target: str
    input: str = ""
    match_value: Value = None
    threshold: float = 0.0
    confidence: float = 1.0

    @property
    def is_default(self) -> bool:
        """Whether the branch is always taken."""
        return self.match_value is None and self.threshold <= 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """The target of the first condition that holds; Null if none does."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether the sender's confidence reaches `min_confidence`."""

    action: str
    min_confidence: float


NodeType: TypeAlias = External | Operation | Constant | Lookup | Route | Permission


@dataclass(frozen=True, slots=True)
class Node:
    """A step of a program. `inputs` are ids of nodes, or `id.field` for an entry of a node's Map.

    `line` and `column`, from 1, are the node's place in the text; 0 for a node that was not parsed.
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
    """Nodes, and the ids of those that are outputs. `entry_point` is information for readers; the
    order of execution follows from the inputs. `line` and `column` are the graph's place, as for a
    node.
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
    """Make a node with a value from a Python object. Raises what `value_of` raises."""
    return Node(node_id, Constant(value_of(plain)))


def operation(node_id: str, op: str, *inputs: str, **params: object) -> Node:
    """Make a node that applies a builtin. `value_of` converts the parameters."""
    made = Map({name: value_of(plain) for name, plain in params.items()}) if params else EMPTY
    return Node(node_id, Operation(op), inputs, made)
