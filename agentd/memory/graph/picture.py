"""A neighbourhood of the graph as nodes and arrows, to be drawn (agentd/memory/graph/picture_*.py). Pure."""

from __future__ import annotations

import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.memory.graph.answer import Table, one_line
from agentd.memory.graph.history import FactHistory
from agentd.memory.graph.paths import Path, Way
from agentd.memory.graph.traversal import Traversal

ARROWS_PER_NODE = 2  # more make a picture that nobody can read
_HISTORY = ("said", "denied", "promoted", "first", "last", "memory")


@dataclass(frozen=True, slots=True)
class PictureNode:
    """A concept: `depth` facts away from where the walk began, and its score, there 1."""

    label: str
    depth: int
    score: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """A fact from one node to another, or the same, by their places in the picture. Its history is None
    until it is told, and where the fact was erased meanwhile.
    """

    source: int
    target: int
    predicate: str
    confidence: float
    history: FactHistory | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn, found by a way that says what the scores are. `hidden_nodes` and `hidden_arrows` count what was found and left out; `edges` are
    the facts of the arrows, in their order.
    """

    title: str
    nodes: tuple[PictureNode, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    hidden_nodes: int = 0
    hidden_arrows: int = 0
    by: Way = Way.PATHS
    edges: tuple[Edge, ...] = field(default=(), compare=False, repr=False)

    @property
    def left_out(self) -> str:
        """What is not shown, in words, or nothing."""
        parts = [(self.hidden_nodes, "concept"), (self.hidden_arrows, "fact")]
        said = [f"{count} more {word}{'s' * (count > 1)}" for count, word in parts if count]
        return f"{' and '.join(said)} not shown" if said else ""

    def with_history(self, histories: Mapping[FactHash, FactHistory]) -> Picture:
        """The same, with the histories of its facts."""
        both = zip(self.arrows, self.edges, strict=True)
        arrows = (replace(arrow, history=histories.get(edge.fact)) for arrow, edge in both)
        return replace(self, arrows=tuple(arrows))

    def as_table(self) -> Table:
        """Headings, and one line of cells for each arrow, the surest first; with histories where they
        were told.
        """
        arrows = sorted(self.arrows, key=lambda a: (-a.confidence, a.source, a.target, a.predicate))
        told = any(arrow.history for arrow in arrows)
        heads = ("subject", "predicate", "object", "confidence", *(_HISTORY if told else ()))
        return (heads, *(self._cells(arrow)[: len(heads)] for arrow in arrows))

    def _cells(self, arrow: Arrow) -> tuple[str, ...]:
        ends = self.nodes[arrow.source].label, self.nodes[arrow.target].label
        fact = (ends[0], arrow.predicate, ends[1], f"{arrow.confidence:.2f}")
        if (history := arrow.history) is None:
            return (*fact, *("" for _ in _HISTORY))
        times = f"{history.first:%Y-%m-%d}", f"{history.last:%Y-%m-%d}"
        counts = str(history.said), str(history.denied), str(history.promoted)
        return (*fact, *counts, *times, history.memory)


def neighbourhood(
    title: str,
    traversal: Traversal,
    ranked: Sequence[tuple[Path, float]],
    labels: Mapping[ConceptHash, str],
    most: int,
    by: Way = Way.PATHS,
) -> Picture:
    """Where a walk began, and at most `most` other concepts: the first of those `ranked` by paths to them
    and scores, each with what lies on its path. Arrows are the facts of those paths, and the surest others between the same concepts.
    """
    shown, needed = _shown(traversal, ranked, most)
    inside = [e for e in traversal.edges if e.subject in shown and e.object in shown]
    spare = max(0, ARROWS_PER_NODE * len(shown) - len(needed))
    kept = needed.union([edge for edge in inside if edge not in needed][:spare])
    places = {concept: place for place, concept in enumerate(shown)}
    scores = {path.end: score for path, score in ranked}
    hops = _hops(traversal)
    nodes = [PictureNode(_label(labels, one), hops[one], scores.get(one, 1.0)) for one in shown]
    edges = tuple(edge for edge in inside if edge in kept)
    arrows = tuple(
        Arrow(places[edge.subject], places[edge.object], one_line(edge.predicate), edge.confidence)
        for edge in edges
    )
    hidden = len(
        {one for edge in traversal.edges for one in (edge.subject, edge.object)} - {*shown}
    )
    unseen = len(traversal.edges) - len(arrows)
    return Picture(one_line(title), tuple(nodes), arrows, hidden, unseen, by, edges)


def _shown(
    traversal: Traversal, ranked: Iterable[tuple[Path, float]], most: int
) -> tuple[list[ConceptHash], set[Edge]]:
    """The concepts in the picture, and the facts that hold them together."""
    seen = {one for edge in traversal.edges for one in (edge.subject, edge.object)}
    seeds = [seed for seed in traversal.seeds if seed in seen]
    shown = dict.fromkeys(seeds)
    needed: set[Edge] = set()
    for path, _ in ranked:
        new = [step.target for step in path.steps if step.target not in shown]
        if len(shown) + len(new) <= len(seeds) + most:
            shown.update(dict.fromkeys(new))
            needed.update(step.edge for step in path.steps)
    return list(shown), needed


def _hops(traversal: Traversal) -> dict[ConceptHash, int]:
    """How many facts lie between each concept and where the walk began."""
    beside: defaultdict[ConceptHash, set[ConceptHash]] = defaultdict(set)
    for edge in traversal.edges:
        beside[edge.subject].add(edge.object)
        beside[edge.object].add(edge.subject)
    hops = dict.fromkeys(traversal.seeds, 0)
    waiting = deque(traversal.seeds)
    while waiting:
        here = waiting.popleft()
        for there in beside[here] - hops.keys():
            hops[there] = hops[here] + 1
            waiting.append(there)
    return hops


def _label(labels: Mapping[ConceptHash, str], concept: ConceptHash) -> str:
    return one_line(labels.get(concept, f"#{concept.hex[:8]}"))


# What is drawn of the graph: tables as plain text, and pictures in the language of Graphviz or as a page
# without anything from outside. Pure.

WIDEST = 48  # columns of a terminal that a cell may take
_FILLS = ("#f6c667", "#bfdcf7", "#d5ecd2", "#e8e2f3")  # by depth
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    ":root{color-scheme:light dark}body{margin:1.5rem;font:15px/1.5 system-ui,sans-serif}"
    "table{border-collapse:collapse}"
    "th,td{padding:.2rem .9rem .2rem 0;text-align:left;overflow-wrap:anywhere}"
)


def aligned(table: Table, widest: int = WIDEST) -> str:
    """The table with its columns below each other and a line under its headings; longer cells end in
    `…`. Columns of numbers stand right.
    """
    rows = [[_clipped(one_line(cell), widest) for cell in row] for row in table]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    numbers = [
        len(rows) > 1 and all(map(_is_number, column[1:])) for column in zip(*rows, strict=True)
    ]
    lines = ["  ".join(map(_padded, row, widths, numbers)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _clipped(text: str, widest: int) -> str:
    if columns(text) <= widest:
        return text
    taken, width = "", 0
    for letter in text:
        width += _columns(letter)
        if width > widest - 1:
            break
        taken += letter
    return f"{taken}…"


def _padded(cell: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if is_number else cell + blanks


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).isdecimal()


def as_dot(picture: Picture) -> str:
    """A digraph: nodes are filled by depth, arrows as thick as their facts are sure."""
    caption = " · ".join(filter(None, (picture.title, picture.left_out)))
    lines = [
        "digraph agentd {",
        f'  graph [label={_in_quotes(caption)}, labelloc=t, charset="UTF-8", overlap=false];',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for place, node in enumerate(picture.nodes):
        fill = _FILLS[min(node.depth, len(_FILLS) - 1)]
        told = f"{node.score:.2f}"
        lines.append(
            f'  n{place} [label={_in_quotes(node.label)}, fillcolor="{fill}", tooltip="{told}"];'
        )
    for arrow in picture.arrows:
        words = _in_quotes(arrow.predicate.replace("_", " "))
        width = f"{0.5 + 2 * arrow.confidence:.2f}"
        lines.append(f"  n{arrow.source} -> n{arrow.target} [label={words}, penwidth={width}];")
    return "\n".join([*lines, "}", ""])


def _in_quotes(text: str) -> str:
    r"""A string of the language. A backslash begins an escape there, and `&` an entity of HTML."""
    text = one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def as_html(picture: Picture) -> str:
    """The page."""
    title = _words(picture.title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            *([f"<p>{_words(picture.left_out)}</p>"] if picture.left_out else []),
            *(_rows(picture.as_table()) if picture.nodes else []),
            "</body></html>",
            "",
        ]
    )


def _rows(table: Table) -> Iterator[str]:
    yield "<table>"
    for place, row in enumerate(table):
        yield f"<tr>{_cells(row, 'td' if place else 'th')}</tr>"
    yield "</table>"


def _cells(row: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{_words(cell)}</{tag}>" for cell in row)


def _words(text: str) -> str:
    return escape(one_line(text), quote=True)
