"""Parses text into graphs: tolerant in syntax, with line and column in every error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentd.core.errors import ZeroError
from agentd.zero.execution_order import execution_order
from agentd.zero.faults import BadShape, LimitReached
from agentd.zero.fields import Fields
from agentd.zero.program_graph import (
    Condition,
    Constant,
    External,
    Graph,
    Lookup,
    Node,
    NodeType,
    Operation,
    Permission,
    Route,
)
from agentd.zero.tokens import SourceText
from agentd.zero.values import (
    EMPTY,
    MAX_DEPTH,
    Array,
    Confidence,
    Hash32,
    Map,
    Value,
    real,
    share_of,
    whole,
)

MAX_ITEMS = 1_000_000  # values in one text
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_OPENING = ("string", "number", "word", "{", "[")


class ProgramReader:
    """Reads one value after the other, without knowledge of graphs. `kind`, `word` and `at` are the
    next token's kind, text and offset.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._next = source.tokens().__next__
        self._left = MAX_ITEMS
        self.kind, self.word, self.at = self._next()

    def advance(self) -> None:
        """Read the next token."""
        self.kind, self.word, self.at = self._next()

    def expect(self, kind: str, where: str) -> None:
        """Step over a token of this kind. Raises BadSyntax if the next one is of another kind."""
        if self.kind != kind:
            raise self.source.fault(f"{kind} is missing {where}; here is {self.found()}", self.at)
        self.advance()

    def found(self) -> str:
        """Return the next token as error messages name it."""
        if self.kind == "end":
            return "the end of the text"
        return f"the string {self.word[:40]!r}" if self.kind == "string" else self.word[:40]

    def entries(self, closing: str, read: Callable[[], None]) -> None:
        """Step over the opening token, then call `read` for each entry up to `closing`. Commas
        separate entries and may trail.

        Raises BadSyntax for a missing comma or `closing`, LimitReached for too many entries.
        """
        opened = self.at
        self.advance()
        while self.kind != closing:
            self._left -= 1
            if self._left < 0:
                raise self._limit(f"the text holds more than {MAX_ITEMS} values")
            read()
            if self.kind == ",":
                self.advance()
            elif self.kind != closing:
                line, column = self.source.place(opened)
                raise self.source.fault(
                    f"a comma or {closing} is missing before {self.found()}",
                    self.at,
                    f"what it closes begins in line {line}, column {column}",
                )
        self.advance()

    def key(self) -> str:
        """Read a key, quoted or not, and its colon. Raises BadSyntax if there is none."""
        if self.kind not in ("string", "word"):
            raise self.source.fault(f"a key is missing; here is {self.found()}", self.at)
        name = self.word
        self.advance()
        self.expect(":", f"behind the key {name[:40]!r}")
        return name

    def value(self, depth: int = 0) -> Value:
        """Read the value that begins here. Raises BadSyntax and LimitReached."""
        kind, word, at = self.kind, self.word, self.at
        if kind == "string":
            self.advance()
            return word
        if kind == "number":
            self.advance()
            return self._number(word, at)
        if kind not in _OPENING:
            raise self.source.fault(f"a value is missing; here is {self.found()}", at)
        if kind == "{":
            return self._map(depth)
        return self._array(depth) if kind == "[" else self._read_named(depth)

    def at_place(self, make: Callable[[], Value], at: int) -> Value:
        """Call `make` and return its result; a ZeroError is raised again with the place of `at`."""
        try:
            return make()
        except ZeroError as error:
            line, column = self.source.place(at)
            kind = type(error)
            raise kind(error.message, cure=error.cure, line=line, column=column) from error

    def _map(self, depth: int, tag: str = "") -> Map:
        self._check_depth(depth)
        items: dict[str, Value] = {"type": tag} if tag else {}

        def read() -> None:
            at = self.at
            name = self.key()
            if name in items:
                raise self.source.fault(f"the key {name[:40]!r} is there twice", at)
            items[name] = self.value(depth + 1)

        opened = self.at
        self.entries("}", read)
        made = self.at_place(lambda: Map(items), opened)
        assert isinstance(made, Map)
        return made

    def _array(self, depth: int) -> Array:
        self._check_depth(depth)
        items: list[Value] = []
        opened = self.at
        self.entries("]", lambda: items.append(self.value(depth + 1)))
        made = self.at_place(lambda: Array(items), opened)
        assert isinstance(made, Array)
        return made

    def _read_named(self, depth: int) -> Value:
        word, at = self.word, self.at
        self.advance()
        if self.kind == "(":
            return self._literal(word, at)
        if self.kind == "{":
            return self._map(depth, tag=word)
        return _WORDS.get(word, word)

    def _literal(self, name: str, at: int) -> Value:
        self.advance()
        inner, text = self.kind, self.word
        if inner not in ("string", "number"):
            raise self.source.fault(f"{name}(…) holds a string or a number", self.at)
        self.advance()
        self.expect(")", f"behind {name}(…")
        try:
            if inner == "number" and name == "Confidence":
                return Confidence(float(text))
            if inner == "string" and name == "Hash32":
                return Hash32.from_hex(text)
            if inner == "string" and name == "Bytes":
                return bytes.fromhex(text)
        except ValueError as error:
            raise self.source.fault(f"this is no {name}: {error}", at) from error
        raise self.source.fault(
            f"{name[:40]}(…) is no value",
            at,
            'known are Bytes("hex digits"), Hash32("64 hex digits") and Confidence(0 to 1)',
        )

    def _number(self, word: str, at: int) -> Value:
        if word.lstrip("-").isdigit():
            if len(word) > 20:
                raise self.source.fault("a whole number does not fit into 64 bits", at)
            return self.at_place(lambda: whole(int(word)), at)
        return self.at_place(lambda: real(float(word)), at)

    def _check_depth(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self._limit(f"values are nested deeper than {MAX_DEPTH}")

    def _limit(self, message: str) -> LimitReached:
        line, column = self.source.place(self.at)
        return LimitReached(message, line=line, column=column)


MAX_ID = 256  # characters
_TYPES = "External, Operation, Constant, Lookup, Route and Permission"
_CONDITION = {"target", "input", "match_value", "threshold", "confidence"}


def node_of(fields: Fields) -> Node:
    """Return the node with these fields. Raises BadShape with the place of the wrong field."""
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


def parse(data: str | bytes) -> Graph:
    """Parse the one graph of a text and check that ids are unique and known, and that there is no
    cycle.

    `Graph { … }` contains JSON, except that keys and single words need no quotation marks, commas
    may trail, and `#` begins a comment. Unknown fields are kept: those of a node as parameters,
    those of the graph as metadata. Raises ZeroError with line and column.
    """
    source = SourceText(data)
    reader = ProgramReader(source)
    graph = _graph(reader)
    if reader.kind != "end":
        raise source.fault(f"the graph has ended; here is {reader.found()}", reader.at)
    return graph


def parse_all(data: str | bytes, first: int = 1) -> tuple[Graph, ...]:
    """Parse all graphs of a text; () if there are none. Raises ZeroError like `parse`, with lines
    counted from `first`.
    """
    reader = ProgramReader(SourceText(data, first))
    graphs = []
    while reader.kind != "end":
        graphs.append(_graph(reader))
    return tuple(graphs)


def _graph(reader: ProgramReader) -> Graph:
    if reader.kind != "word" or reader.word != "Graph":
        raise reader.source.fault(
            f"a text begins with Graph {{; here is {reader.found()}", reader.at
        )
    opened = reader.at
    reader.advance()
    if reader.kind != "{":
        raise reader.source.fault(
            f"{{ is missing behind Graph; here is {reader.found()}", reader.at
        )
    fields = Fields(reader.source, "the graph", opened)
    nodes: list[Node] | None = None

    def read() -> None:
        nonlocal nodes
        at = reader.at
        name = reader.key()
        if name == "nodes" and nodes is None:
            nodes = _nodes(reader)
        elif name == "nodes":
            raise reader.source.fault("the key 'nodes' is there twice", at)
        else:
            fields.add(name, reader.value(), at)

    reader.entries("}", read)
    if nodes is None:
        raise fields.missing("nodes")
    graph = _build_graph(fields, tuple(nodes))
    execution_order(graph)
    return graph


def _nodes(reader: ProgramReader) -> list[Node]:
    if reader.kind != "[":
        raise reader.source.fault(f"nodes is an Array; here is {reader.found()}", reader.at)
    nodes: list[Node] = []
    reader.entries("]", lambda: nodes.append(_node(reader)))
    return nodes


def _node(reader: ProgramReader) -> Node:
    if reader.kind != "{":
        raise reader.source.fault(f"a node is a Map; here is {reader.found()}", reader.at)
    fields = Fields(reader.source, "the node", reader.at)

    def read() -> None:
        at = reader.at
        name = reader.key()
        fields.add(name, reader.value(), at)

    reader.entries("}", read)
    return node_of(fields)


def _build_graph(fields: Fields, nodes: tuple[Node, ...]) -> Graph:
    metadata = fields.take("metadata", Map, EMPTY)
    line, column = fields.place
    graph = Graph(
        name=fields.take("name", str, ""),
        nodes=nodes,
        outputs=fields.names("outputs"),
        version=fields.take("version", int, 1),
        description=fields.take("description", str, ""),
        entry_point=fields.take("entry_point", str, ""),
        metadata=metadata,
        line=line,
        column=column,
    )
    rest = fields.rest(metadata)
    return replace(graph, metadata=Map({**metadata, **rest})) if rest else graph
