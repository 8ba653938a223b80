"""Determine the order in which the nodes of a graph run, and whether they can."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from agentd.zero.faults import BadShape, CycleFound, DuplicateId, UnknownId
from agentd.zero.program_graph import SENDER, Graph, Node, Permission, Route

_SHOWN = 6  # nodes of a cycle in a message


def execution_order(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes, each after those it needs, otherwise in the order of their declaration.

    Takes n·log n. Raises DuplicateId, UnknownId (for an input, an output or the entry point),
    BadShape (for an output with a field) and CycleFound, each with the place in the text.
    """
    places = _places(graph)
    waiting = [0] * len(graph.nodes)
    users: list[list[int]] = [[] for _ in graph.nodes]
    for index, node in enumerate(graph.nodes):
        for name in required_ids(node, places):
            if name not in places:
                raise _unknown(node, name)
            users[places[name]].append(index)
            waiting[index] += 1
    _check_ends(graph, places)
    ready = [index for index, count in enumerate(waiting) if not count]
    heapify(ready)
    ordered: list[Node] = []
    while ready:
        index = heappop(ready)
        ordered.append(graph.nodes[index])
        for user in users[index]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, user)
    if len(ordered) < len(graph.nodes):
        raise _cycle(graph, places, waiting)
    return tuple(ordered)


def required_ids(node: Node, places: dict[str, int]) -> Iterator[str]:
    """Yield the ids of the nodes whose values `node` needs, in the order in which it names them."""
    for name in node.inputs:
        yield name.partition(".")[0]
    match node.type:
        case Route(conditions):
            for condition in conditions:
                if not condition.is_default:
                    yield condition.input.partition(".")[0]
        case Permission() if not node.inputs and SENDER in places:
            yield SENDER


def _places(graph: Graph) -> dict[str, int]:
    places: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        if node.id in places:
            first = graph.nodes[places[node.id]]
            raise DuplicateId(
                f"the id {node.id[:40]!r} is taken by the node of line {first.line}",
                cure="give one of them another id",
                line=node.line,
                column=node.column,
            )
        places[node.id] = index
    return places


def _check_ends(graph: Graph, places: dict[str, int]) -> None:
    for name in graph.outputs:
        if name in places:
            continue
        if "." in name and name.partition(".")[0] in places:
            raise BadShape(
                f"the output {name[:40]!r} is a field, and outputs are nodes",
                cure="name the node, or add one with GetField",
                line=graph.line,
                column=graph.column,
            )
        raise UnknownId(
            f"the output {name[:40]!r} is no node", line=graph.line, column=graph.column
        )
    if graph.entry_point and graph.entry_point not in places:
        raise UnknownId(
            f"the entry point {graph.entry_point[:40]!r} is no node",
            line=graph.line,
            column=graph.column,
        )


def _unknown(node: Node, name: str) -> UnknownId:
    return UnknownId(
        f"the node {node.id[:40]!r} needs {name[:40]!r}, which is no node",
        cure="check the spelling, or add the node",
        line=node.line,
        column=node.column,
    )


def _cycle(graph: Graph, places: dict[str, int], waiting: list[int]) -> CycleFound:
    """Return an error that names one cycle, found by going back from a waiting node along waiting
    nodes.
    """
    index = next(index for index, count in enumerate(waiting) if count)
    path: list[int] = []
    seen: dict[int, int] = {}
    while index not in seen:
        seen[index] = len(path)
        path.append(index)
        index = next(
            places[name]
            for name in required_ids(graph.nodes[index], places)
            if waiting[places[name]]
        )
    ring = [graph.nodes[found] for found in path[seen[index] :]]
    names = " needs ".join(node.id[:40] for node in ring[:_SHOWN])
    more = " …" if len(ring) > _SHOWN else ""
    first = min(ring, key=lambda node: places[node.id])
    return CycleFound(
        f"nodes wait for each other: {names}{more} needs {ring[0].id[:40]}",
        line=first.line,
        column=first.column,
    )
