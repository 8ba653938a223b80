"""Text to graphs: a tolerant reader that names the line and column of whatever it cannot accept."""

from __future__ import annotations

from dataclasses import replace

from agentd.graph.zero.fields import Fields
from agentd.graph.zero.graph import Graph, Node
from agentd.graph.zero.nodes import node_of
from agentd.graph.zero.order import execution_order
from agentd.graph.zero.reader import Reader
from agentd.graph.zero.tokens import Source
from agentd.graph.zero.values import EMPTY, Map


def parse(data: str | bytes) -> Graph:
    """The one graph of a text, checked: ids are unique and known, and no nodes wait for each other.

    `Graph { … }` holds what JSON holds; besides, keys and single words need no quotation marks,
    commas may trail, and `#` begins a comment. Fields that the language does not know are kept: those
    of a node as parameters, those of the graph as metadata. Raises ZeroError with line and column.
    """
    source = Source(data)
    reader = Reader(source)
    graph = _graph(reader)
    if reader.kind != "end":
        raise source.fault(f"the graph has ended; here is {reader.found()}", reader.at)
    return graph


def parse_all(data: str | bytes, first: int = 1) -> tuple[Graph, ...]:
    """All graphs of a text, one behind the other; none is no error. Raises ZeroError like `parse`, with
    lines counted from `first`.
    """
    reader = Reader(Source(data, first))
    graphs = []
    while reader.kind != "end":
        graphs.append(_graph(reader))
    return tuple(graphs)


def _graph(reader: Reader) -> Graph:
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
    graph = _made(fields, tuple(nodes))
    execution_order(graph)
    return graph


def _nodes(reader: Reader) -> list[Node]:
    if reader.kind != "[":
        raise reader.source.fault(f"nodes is an Array; here is {reader.found()}", reader.at)
    nodes: list[Node] = []
    reader.entries("]", lambda: nodes.append(_node(reader)))
    return nodes


def _node(reader: Reader) -> Node:
    if reader.kind != "{":
        raise reader.source.fault(f"a node is a Map; here is {reader.found()}", reader.at)
    fields = Fields(reader.source, "the node", reader.at)

    def read() -> None:
        at = reader.at
        name = reader.key()
        fields.add(name, reader.value(), at)

    reader.entries("}", read)
    return node_of(fields)


def _made(fields: Fields, nodes: tuple[Node, ...]) -> Graph:
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
