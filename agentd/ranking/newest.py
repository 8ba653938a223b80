"""Newest first among units that say different values of the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAME = 0.5  # of the weight of the lighter unit's terms, in common
ANSWERS = 0.45  # of the weight of the query's terms, in common
ALIKE = 0.7  # of what the older one says of the query's terms, the newer says too


@dataclass(frozen=True, slots=True)
class Said:
    """What a unit says: its distinct terms, its day (below 0: unknown), whether it is short enough
    to say one thing only, whether it asks, which says no value at all, whether it gives figures, and
    whether it is retold: the agent's reply to a question, which outdates nothing.
    """

    terms: frozenset[int]
    day: int
    short: bool
    question: bool
    figures: bool = False
    retold: bool = False


def outdated(
    units: Sequence[Said], asked: frozenset[int], weights: Mapping[int, float]
) -> dict[int, int]:
    """For each unit that is outdated, the newest one that says another value of the same thing:
    each has terms that the other lacks, the newer says most of what the older says of the query,
    with a figure where that has one, and they share most of the weight of their own terms or, being
    short, of the query's. `weights` are by term.
    """
    rivals = _rivals(units, asked, weights)
    newer: dict[int, int] = {}
    for one, old in enumerate(units):
        for other, new in enumerate(units):
            latest = units[newer[one]].day if one in newer else old.day
            if 0 <= latest < new.day and old.day >= 0 and rivals[one, other]:
                newer[one] = other
    return newer


def successors(
    units: Sequence[Said],
    asked: frozenset[int],
    weights: Mapping[int, float],
    newer: Mapping[int, int],
) -> dict[int, list[int]]:
    """For each unit that is outdated, those with the same newest one that are newer than it, say
    another value of the same thing and as much of the query: latest first.
    """
    if len(newer) < 2:
        return {}
    rivals = _rivals(units, asked, weights)
    said = [sum(weights[term] for term in sorted(unit.terms & asked)) for unit in units]
    later: dict[int, list[int]] = {}
    for old, newest in newer.items():
        found = [
            other
            for other, same in newer.items()
            if same == newest
            and units[other].day > units[old].day
            and rivals[old, other]
            and said[other] >= said[old]
        ]
        later[old] = sorted(found, key=lambda at: (-units[at].day, at))
    return later


def newest_first(
    count: int, newer: Mapping[int, int], later: Mapping[int, Sequence[int]]
) -> list[int]:
    """The positions 0..count-1 in their new order: the newest of rivals takes the place of the best
    of them, and the outdated ones do not come before it, nor before `later` ones that are outdated
    as well: of all places that these have, the first are theirs.
    """
    place = list(range(count))
    for old, new in newer.items():
        place[new] = min(place[new], old)
    for old, new in newer.items():
        place[old] = max(old, place[new])
    order = sorted(range(count), key=lambda at: (place[at], at in newer, at))
    for newest in dict.fromkeys(newer.values()):
        group = [at for at, one in enumerate(order) if newer.get(one) == newest]
        dated: dict[int, None] = {}
        for at in group:
            _put(order[at], later, dated)
        for at, one in zip(group, tuple(dated), strict=True):
            order[at] = one
    return order


def _put(one: int, later: Mapping[int, Sequence[int]], dated: dict[int, None]) -> None:
    """Put a position behind all that are later, unless it is there."""
    for other in later.get(one, ()):
        if other not in dated:
            _put(other, later, dated)
    dated.setdefault(one)


def _rivals(
    units: Sequence[Said], asked: frozenset[int], weights: Mapping[int, float]
) -> NDArray[np.bool_]:
    """Which units, by row, may be outdated by which others, by column, whatever their days."""
    numbers = sorted(asked.union(*(unit.terms for unit in units)))
    column = {number: at for at, number in enumerate(numbers)}
    held = np.zeros((len(units), len(numbers)))
    for row, unit in zip(held, units, strict=True):
        row[[column[number] for number in unit.terms]] = 1.0
    weight = np.array([weights[number] for number in numbers])
    of_asked = weight * np.array([number in asked for number in numbers])
    common, shared, of_query = (held * by @ held.T for by in (1.0, weight, of_asked))
    terms, whole, own_query = (table.diagonal() for table in (common, shared, of_query))
    same = shared >= SAME * np.minimum(whole[:, None], whole)
    short = np.array([unit.short for unit in units], np.bool_)
    answers = short[:, None] & short & (of_query >= ANSWERS * of_asked.sum())
    states = np.array([not unit.question for unit in units], np.bool_)
    differ = (common < terms[:, None]) & (common < terms)
    figures = np.array([unit.figures for unit in units], np.bool_)
    differ &= figures[None, :] | ~figures[:, None]
    alike = of_query >= ALIKE * own_query[:, None]
    news = states & np.array([not unit.retold for unit in units], np.bool_)
    rivals: NDArray[np.bool_] = states[:, None] & news & differ & alike & (same | answers)
    return rivals
