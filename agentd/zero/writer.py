"""Writes graphs as text: in one strict form, and in a form that older readers accept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from math import isfinite

from agentd.zero.faults import DuplicateId, WrongValue
from agentd.zero.program_graph import (
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
from agentd.zero.values import Array, Confidence, Hash32, Map, Value

_TROUBLING = re.compile(r"[#{}\[\],]")  # syntax to older readers, even in strings


def write(graph: Graph) -> str:
    """Return the text of a graph: quoted keys, sorted where order has no meaning, one node on a
    line, with a newline at the end. Equal graphs have equal texts, and `parse` reads an equal graph
    from it.
    """
    return _Strict().graph(graph)


def write_compatible(graph: Graph) -> str:
    """Return the text of a graph for readers that search the raw text for keys: plain JSON after
    the word Graph. Colons in strings and ids are dropped, which loses information; brackets, commas
    and `#` in them are escaped. Bytes and a Hash32 become Strings of hexadecimal digits, a
    Confidence a number.

    Raises DuplicateId where two ids or keys differ in colons only, and WrongValue where a Lookup or
    a condition contains anything but Strings.
    """
    return _Compatible().graph(graph)


class _Strict:
    """Writes the strict form, without loss."""

    def graph(self, graph: Graph) -> str:
        fields = [
            ("name", self.quoted(graph.name)),
            ("version", str(graph.version)),
            ("description", self.quoted(graph.description) if graph.description else ""),
            ("nodes", self._lines([self._node(node) for node in graph.nodes])),
            ("outputs", self._names(graph.outputs)),
            ("entry_point", self.quoted(graph.entry_point) if graph.entry_point else ""),
            ("metadata", self.value(graph.metadata) if graph.metadata else ""),
        ]
        inner = ",\n".join(f'    "{name}": {text}' for name, text in fields if text)
        return f"Graph {{\n{inner}\n}}\n"

    def quoted(self, text: str) -> str:
        return encode_basestring(text)

    def uri(self, external: External) -> str:
        return self.quoted(external.uri)

    def special(self, value: bytes | Hash32 | Confidence) -> str:
        match value:
            case bytes():
                return f'Bytes("{value.hex()}")'
            case Hash32():
                return f'Hash32("{value.hex}")'
            case Confidence(sure):
                return f"Confidence({sure!r})"

    def table(self, lookup: Lookup) -> str:
        return self.value(lookup.table)

    def match(self, value: Value) -> str:
        return self.value(value)

    def value(self, value: Value) -> str:
        match value:
            case str():
                return self.quoted(value)
            case float() if isfinite(value):
                return repr(value)
            case None | bool() | int() | float():
                return json.dumps(value)
            case Array():
                return f"[{', '.join(map(self.value, value))}]"
            case Map():
                return self._map(value)
            case _:
                return self.special(value)

    def _map(self, value: Mapping[str, Value]) -> str:
        names = {name: self.quoted(name) for name in sorted(value)}
        _check_different(names.values())
        return (
            f"{{{', '.join(f'{name}: {self.value(value[key])}' for key, name in names.items())}}}"
        )

    def _node(self, node: Node) -> str:
        fields = {"id": self.quoted(node.id), "type": f'"{type(node.type).__name__}"'}
        fields |= self._type(node)
        if node.inputs:
            fields["inputs"] = self._names(node.inputs)
        if node.params:
            fields["params"] = self.value(node.params)
        if node.description:
            fields["description"] = self.quoted(node.description)
        return _braces(fields)

    def _type(self, node: Node) -> dict[str, str]:
        match node.type:
            case Operation(op):
                return {"op": self.quoted(op)}
            case Constant(value):
                return {"value": self.value(value)}
            case External():
                return {"uri": self.uri(node.type)}
            case Lookup(default=None):
                return {"table": self.table(node.type)}
            case Lookup(default=default):
                return {"table": self.table(node.type), "default": self.match(default)}
            case Route(conditions):
                made = ", ".join(map(self._condition, conditions))
                return {"conditions": f"[{made}]"}
            case Permission(action, least):
                return {"action": self.quoted(action), "min_confidence": repr(least)}

    def _condition(self, condition: Condition) -> str:
        fields = {"input": self.quoted(condition.input)}
        if condition.match_value is not None:
            fields["match_value"] = self.match(condition.match_value)
        fields["threshold"] = repr(condition.threshold)
        fields["target"] = self.quoted(condition.target)
        fields["confidence"] = repr(condition.confidence)
        return _braces(fields)

    def _names(self, names: Iterable[str]) -> str:
        return f"[{', '.join(map(self.quoted, names))}]"

    def _lines(self, lines: list[str]) -> str:
        return "[\n        " + ",\n        ".join(lines) + "\n    ]" if lines else "[]"


class _Compatible(_Strict):
    """Writes the form for older readers."""

    def graph(self, graph: Graph) -> str:
        _check_different(self.quoted(node.id) for node in graph.nodes)
        return super().graph(graph)

    def quoted(self, text: str) -> str:
        plain = super().quoted(text.replace(":", ""))
        return _TROUBLING.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)

    def uri(self, external: External) -> str:
        return self.quoted(external.name)

    def special(self, value: bytes | Hash32 | Confidence) -> str:
        match value:
            case bytes():
                return f'"{value.hex()}"'
            case Hash32():
                return f'"{value.hex}"'
            case Confidence(sure):
                return repr(sure)

    def table(self, lookup: Lookup) -> str:
        for value in lookup.table.values():
            self.match(value)
        return super().table(lookup)

    def match(self, value: Value) -> str:
        if isinstance(value, str):
            return self.quoted(value)
        raise WrongValue(
            "older readers know Strings alone in a Lookup or a condition",
            cure="write the graph in the strict form",
        )


def _check_different(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DuplicateId(
                f"two names become {name[:40]} without their colons", cure="rename one of them"
            )
        seen.add(name)


def _braces(fields: Mapping[str, str]) -> str:
    inner = ", ".join(f'"{name}": {text}' for name, text in fields.items())
    return f"{{{inner}}}"
