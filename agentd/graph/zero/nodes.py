"""The fields of a node to a node of its type."""

from __future__ import annotations

from agentd.graph.zero.faults import BadShape
from agentd.graph.zero.fields import Fields, share_of
from agentd.graph.zero.graph import (
    Condition,
    Constant,
    External,
    Lookup,
    Node,
    NodeType,
    Operation,
    Permission,
    Route,
)
from agentd.graph.zero.values import EMPTY, Array, Map, Value

MAX_ID = 256  # characters
_TYPES = "External, Operation, Constant, Lookup, Route and Permission"
_CONDITION = {"target", "input", "match_value", "threshold", "confidence"}


def node_of(fields: Fields) -> Node:
    """The node with these fields. Raises BadShape with the place of the wrong one."""
    name = fields.take("id", str)
    fields.owner = f"the node {name[:40]!r}"
    if not name or "." in name or len(name) > MAX_ID:
        raise fields.wrong(
            "id", f"an id has 1 to {MAX_ID} characters and no dot, not {name[:40]!r}"
        )
    made = _type_of(fields, fields.take("type", str))
    inputs = fields.names("inputs")
    if fields.has("input"):
        inputs += (fields.take("input", str),)
    params = fields.take("params", Map, EMPTY)
    description = fields.take("description", str, "")
    rest = fields.rest(params)
    line, column = fields.place
    params = Map({**params, **rest}) if rest else params
    return Node(name, made, inputs, params, description, line, column)


def _type_of(fields: Fields, kind: str) -> NodeType:
    match kind:
        case "Operation":
            return Operation(fields.take("op", str))
        case "Constant":
            if not fields.has("value"):
                raise fields.missing("value")
            return Constant(fields.raw("value"))
        case "External":
            return External(fields.take("uri", str))
        case "Lookup":
            return Lookup(fields.take("table", Map), fields.raw("default"))
        case "Route":
            found = fields.take("conditions", Array)
            return Route(tuple(_condition(fields, item) for item in found))
        case "Permission":
            return Permission(fields.take("action", str), fields.share("min_confidence", 0.0))
        case _:
            raise fields.wrong("type", f"{kind[:40]!r} is no type of nodes: {_TYPES} are")


def _condition(fields: Fields, found: Value) -> Condition:
    def wrong(what: str) -> BadShape:
        return fields.wrong("conditions", f"a condition of {fields.owner} {what}")

    if not isinstance(found, Map):
        raise wrong("is a Map")
    unknown = sorted(found.keys() - _CONDITION)
    if unknown:
        raise wrong(f"has no field {unknown[0][:40]!r}")
    target, source = found.get("target"), found.get("input", "")
    if not isinstance(target, str) or not isinstance(source, str):
        raise wrong("has a target, and an input if it looks at one, that are Strings")
    threshold = share_of(found.get("threshold", 0.0))
    confidence = share_of(found.get("confidence", 1.0))
    if threshold is None or confidence is None:
        raise wrong("has a threshold and a confidence from 0 to 1")
    return Condition(target, source, found.get("match_value"), threshold, confidence)
