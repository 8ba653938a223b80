"""Where the nodes and the words of the arrows stand in a drawing. Pure, and always the same.

Nodes begin on rings around where the walk began, then springs and repulsion (Eades 1984; Fruchterman
and Reingold 1991) pull them into place; the words of an arrow are a small body between its ends. At last
bodies that overlap are pushed apart, and all is spread until none does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agentd.graph.answer import one_line
from agentd.graph.picture import Arrow, Node, Picture

Floats: TypeAlias = NDArray[np.float64]

LETTERS = 30  # of a label that are drawn; the rest is cut off
NODE_FONT, WORD_FONT = 13.0, 11.0  # px
_RING = 120.0
_ROUNDS = 400
_GAP = 10.0  # px between any two bodies
_WIDE = 1.6  # boxes are wider than high, and so are screens
_GOLDEN = pi * (3 - 5**0.5)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around a middle, in px, and the words in it."""

    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A box for each node and one for the words of each arrow, in the order of the picture."""

    nodes: tuple[Box, ...]
    words: tuple[Box, ...]


def arrange(picture: Picture) -> Layout:
    """Where everything stands. No two boxes overlap."""
    words = [_shortened(node.label) for node in picture.nodes]
    told = [_shortened(arrow.predicate.replace("_", " ")) for arrow in picture.arrows]
    sizes = [(width_of(text, NODE_FONT) + 22, 28.0) for text in words]
    sizes += [(width_of(text, WORD_FONT) + 4, 15.0) for text in told]
    if not sizes:
        return Layout((), ())
    halves = np.array(sizes, np.float64) / 2
    places = _pulled(_rings(picture), picture.arrows, len(picture.nodes), halves)
    places = _apart(places * (_WIDE, 1.0), halves + _GAP / 2)
    boxes = tuple(
        Box(round(float(x), 1), round(float(y), 1), round(width, 1), height, text)
        for (x, y), (width, height), text in zip(places, sizes, words + told, strict=True)
    )
    return Layout(boxes[: len(words)], boxes[len(words) :])


def width_of(text: str, font: float) -> float:
    """About how wide a text is in a font without serifs of so many px; rather too wide."""
    return font * sum(map(_em, text))


def _em(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    if letter.isupper() or letter in "mw@%":
        return 0.78
    return 0.34 if letter in "ijl.,:;'|! -" else 0.58


def _shortened(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _rings(picture: Picture) -> Floats:
    """Nodes on rings by depth, each near the one it hangs on, and words halfway along their arrows."""
    parents = _parents(picture.nodes, picture.arrows)
    angles: dict[int, float] = {}
    by_depth = sorted(range(len(picture.nodes)), key=lambda at: (picture.nodes[at].depth, at))
    for depth in sorted({node.depth for node in picture.nodes}):
        ring = [at for at in by_depth if picture.nodes[at].depth == depth]
        ring.sort(key=lambda at: (angles.get(parents.get(at, -1), 0.0), at))
        for place, at in enumerate(ring):
            angles[at] = 2 * pi * place / len(ring) + 0.4 * depth
    places = [
        (
            _RING * max(node.depth, 0.3) * cos(angles[at]),
            _RING * max(node.depth, 0.3) * sin(angles[at]),
        )
        for at, node in enumerate(picture.nodes)
    ]
    for number, arrow in enumerate(picture.arrows):
        (ax, ay), (bx, by) = places[arrow.source], places[arrow.target]
        aside = 6 + 30 * (arrow.source == arrow.target)
        turn = _GOLDEN * number
        places.append(((ax + bx) / 2 + aside * cos(turn), (ay + by) / 2 + aside * sin(turn)))
    return np.array(places, np.float64)


def _parents(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> dict[int, int]:
    """For each node one that it is joined to and that is nearer to where the walk began."""
    parents: dict[int, int] = {}
    for arrow in arrows:
        for here, there in ((arrow.source, arrow.target), (arrow.target, arrow.source)):
            if nodes[here].depth > nodes[there].depth:
                parents.setdefault(here, there)
    return parents


def _pulled(places: Floats, arrows: Sequence[Arrow], nodes: int, halves: Floats) -> Floats:
    """The places after springs along arrows and repulsion between all bodies have done their work."""
    words = np.arange(nodes, len(places))
    sources = np.array([arrow.source for arrow in arrows], np.int64)
    targets = np.array([arrow.target for arrow in arrows], np.int64)
    near = np.concatenate([sources, targets])
    far = np.concatenate([words, words])
    rest = 14 + (halves[near, 0] + halves[far, 0]) / _WIDE
    charge = np.where(np.arange(len(places)) < nodes, 1.0, 0.55)
    strength = 5200.0 * charge[:, None] * charge
    for number in range(_ROUNDS):
        apart = places[:, None, :] - places[None, :, :]
        square = np.maximum((apart**2).sum(axis=2), 25.0)
        force = (apart * (strength / square / np.sqrt(square))[:, :, None]).sum(axis=1) * 8
        between = places[far] - places[near]
        length = np.maximum(np.sqrt((between**2).sum(axis=1)), 1.0)
        pull = between * (0.35 * (length - rest) / length)[:, None]
        np.add.at(force, near, pull)
        np.add.at(force, far, -pull)
        force[words] += 0.25 * ((places[sources] + places[targets]) / 2 - places[words])
        force -= 0.012 * places
        moved = np.maximum(np.sqrt((force**2).sum(axis=1)), 1e-9)
        most = 24.0 * (1 - number / _ROUNDS) + 0.3
        places = places + force * (np.minimum(moved, most) / moved)[:, None]
    return places


def _apart(places: Floats, halves: Floats) -> Floats:
    """The places with overlaps pushed apart, each along the shorter way."""
    size = halves[:, None, :] + halves[None, :, :]
    upper = np.triu(np.ones((len(places), len(places)), bool), 1)
    for number in range(1000):
        delta = places[:, None, :] - places[None, :, :]
        over = size - np.abs(delta)
        hit = upper & (over > 1e-6).all(axis=2)
        if not hit.any():
            break
        rows, columns = np.nonzero(hit)
        axis = np.argmin(over[rows, columns], axis=1)
        sign = np.where(delta[rows, columns, axis] >= 0, 1.0, -1.0)
        push = sign * (over[rows, columns, axis] / 2 + 0.05)
        places = places.copy()
        np.add.at(places, (rows, axis), push)
        np.add.at(places, (columns, axis), -push)
        if number % 50 == 49:
            places = places * 1.04
    return places
