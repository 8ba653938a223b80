"""Executes a graph: every node once, after those it needs, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from agentd.core.errors import ZeroError
from agentd.zero.builtins import BUILTINS
from agentd.zero.call import Builtin, Call, Effects, Host, ProgramLimits
from agentd.zero.execution_order import execution_order
from agentd.zero.faults import LimitReached, MissingInput, UnknownOperation, WrongValue
from agentd.zero.program_graph import (
    SENDER,
    Condition,
    Constant,
    External,
    Graph,
    Lookup,
    Node,
    Operation,
    Permission,
    Route,
)
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import (
    Confidence,
    Hash32,
    Map,
    Value,
    digest,
    is_same,
    is_truthy,
    kind_of,
    shallow_size,
    share_of,
    value_of,
)

DENIED = 0.1  # factor of the confidence for a refused permission
_UNKNOWN_SENDER = 0.5


class Execution(Struct, frozen=True):
    """The result of a run.

    `outputs` are the values of the graph's outputs, `trace` the ids of the nodes in the order of
    execution, `hash` the SHA-256 of that order and all values. `confidence` is the product of the
    confidences of all routes taken and permissions granted, and of DENIED for each one refused.
    `saved` (states by key) and `stored` (statements to remember) are changes that the caller has
    yet to make.
    """

    outputs: Mapping[str, Value]
    trace: tuple[str, ...]
    hash: Hash32
    confidence: float
    saved: Mapping[str, Value]
    stored: tuple[SemanticTuple, ...]


def execute(
    graph: Graph,
    inputs: Mapping[str, object] | None = None,
    *,
    host: Host | None = None,
    limits: ProgramLimits | None = None,
) -> Execution:
    """Execute a graph with these inputs, which `value_of` converts.

    The same graph with the same inputs gives the same trace and hash, unless it reads the time,
    states or memories. Raises ZeroError, with the node's place if the graph was read from text:
    those of `execution_order`, MissingInput, UnknownOperation, WrongValue, Unavailable and
    LimitReached (steps, seconds, size).
    """
    values = {name: _input_value(name, plain) for name, plain in (inputs or {}).items()}
    run = _Run(values, host or Host(), limits or ProgramLimits())
    ordered = execution_order(graph)
    for node in ordered:
        run.step(node)
    return run.result(graph, ordered)


def _input_value(name: str, plain: object) -> Value:
    try:
        return value_of(plain)
    except ZeroError as error:
        raise type(error)(f"the input {name[:40]!r}: {error.message}", cure=error.cure) from error


class _Run:
    """The state of one run."""

    def __init__(self, inputs: Mapping[str, Value], host: Host, limits: ProgramLimits) -> None:
        self._inputs = inputs
        self._host = host
        self._limits = limits
        self._began = host.clock.monotonic() if host.clock else 0.0
        self._values: dict[str, Value] = {}
        self._effects = Effects()
        self._hash = sha256()
        self._confidence = 1.0
        self._work = 0

    def step(self, node: Node) -> None:
        try:
            self._check_limits()
            value = self._value(node)
        except ZeroError as error:
            kind = type(error)
            raise kind(
                f"node {node.id[:40]!r}: {error.message}",
                cure=error.cure,
                line=node.line,
                column=node.column,
            ) from error
        self._values[node.id] = value
        name = node.id.encode()
        self._hash.update(len(name).to_bytes(8) + name + digest(value))

    def result(self, graph: Graph, ordered: tuple[Node, ...]) -> Execution:
        return Execution(
            outputs={name: self._values[name] for name in graph.outputs},
            trace=tuple(node.id for node in ordered),
            hash=Hash32(self._hash.digest()),
            confidence=self._confidence,
            saved=self._effects.saved,
            stored=tuple(self._effects.stored),
        )

    def _check_limits(self) -> None:
        if len(self._values) >= self._limits.steps:
            raise LimitReached(
                f"the run has more than {self._limits.steps} steps", cure="split the graph"
            )
        if self._host.clock is None:
            return
        if self._host.clock.monotonic() - self._began > self._limits.seconds:
            raise LimitReached(f"the run takes longer than {self._limits.seconds:g} seconds")

    def _value(self, node: Node) -> Value:
        match node.type:
            case Operation(op):
                return self._operate(op, node)
            case Constant(value):
                return value
            case External():
                if node.type.name in self._inputs:
                    return self._inputs[node.type.name]
                raise MissingInput(f"the input {node.type.name[:40]!r} was not given")
            case Lookup(table, default):
                return self._look_up(table, default, node)
            case Route(conditions):
                return self._route(conditions)
            case Permission():
                return self._permit(node.type, node)

    def _operate(self, op: str, node: Node) -> Value:
        builtin = BUILTINS.get(op)
        if builtin is None:
            raise UnknownOperation(f"there is no operation {op[:40]!r}")
        found = tuple(map(self._find, node.inputs))
        _check_call(op, builtin, node)
        if not builtin.is_light:
            self._spend(sum(map(shallow_size, found)))
        made = builtin.run(Call(op, found, node.params, self._host, self._effects))
        if not builtin.is_light:
            self._spend(shallow_size(made))
        return made

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > self._limits.work:
            raise LimitReached(
                f"the run reads and makes more than {self._limits.work} bytes",
                cure="split the graph, or merge many values at once instead of one by one",
            )

    def _find(self, name: str) -> Value:
        """Return the value of `node`, or of `node.field`."""
        node, dot, entry = name.partition(".")
        value = self._values[node]
        if not dot:
            return value
        if not isinstance(value, Map):
            raise WrongValue(
                f"{name[:80]!r} is a field of a Map, and this is of kind {kind_of(value)}"
            )
        if entry not in value:
            raise MissingInput(f"there is no field {name[:80]!r}")
        return value[entry]

    def _look_up(self, table: Map, default: Value, node: Node) -> Value:
        if len(node.inputs) != 1:
            raise WrongValue(f"a Lookup has one input, not {len(node.inputs)}")
        key = self._find(node.inputs[0])
        if not isinstance(key, str):
            raise WrongValue(f"a Lookup needs a String, and this is of kind {kind_of(key)}")
        return table.get(key, default)

    def _route(self, conditions: tuple[Condition, ...]) -> Value:
        for condition in conditions:
            if condition.is_default or self._holds(condition):
                self._confidence *= condition.confidence
                return Map(
                    {
                        "target": condition.target,
                        "confidence": Confidence(condition.confidence),
                        "matched_input": condition.input,
                    }
                )
        return None

    def _holds(self, condition: Condition) -> bool:
        value = self._find(condition.input)
        if condition.match_value is not None:
            return is_same(value, condition.match_value)
        if isinstance(value, Confidence):
            return value.value >= condition.threshold
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value >= condition.threshold
        return is_truthy(value)

    def _permit(self, asked: Permission, node: Node) -> Value:
        source = node.inputs[0] if node.inputs else SENDER
        sure: float | None = _UNKNOWN_SENDER
        if node.inputs or SENDER in self._values:
            sure = share_of(self._find(source))
        if sure is None or len(node.inputs) > 1:
            raise WrongValue("a Permission needs one confidence from 0 to 1")
        is_granted = sure >= asked.min_confidence
        self._confidence *= sure if is_granted else DENIED
        return Map({"granted": is_granted, "confidence": Confidence(sure), "action": asked.action})


def _check_call(op: str, builtin: Builtin, node: Node) -> None:
    count = len(node.inputs)
    if count < builtin.least or (builtin.most is not None and count > builtin.most):
        most = "or more" if builtin.most is None else f"to {builtin.most}"
        wish = str(builtin.least) if builtin.least == builtin.most else f"{builtin.least} {most}"
        noun = "input" if wish == "1" else "inputs"
        raise MissingInput(f"{op} takes {wish} {noun}, not {count}")
    if builtin.params is None:
        return
    unknown = node.params.entries.keys() - builtin.params
    if unknown:
        known = ", ".join(sorted(builtin.params)) or "none"
        raise WrongValue(f"{op} has no parameter {min(unknown)[:40]!r}; it has: {known}")
