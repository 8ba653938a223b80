"""How time decides between hits: nearness to the days of a query, and the newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fits(first: NDArray[np.int32], last: NDArray[np.int32], window: tuple[int, int]) -> Floats:
    """How well spans of days fit a window, 0..1: what touches it fits fully, what comes a little
    later is likely to tell of it, what comes before less so.
    """
    late = np.maximum(first - window[1], 0).astype(np.float32)
    early = np.maximum(window[0] - last, 0).astype(np.float32)
    near = np.where(late > 0, 0.5 * np.exp(-late / 5.0), 0.25 * np.exp(-early / 3.0))
    return np.where(first < 0, 0.0, np.where((late == 0) & (early == 0), 1.0, near)).astype(
        np.float32
    )


HEAD = 10  # hits that are looked at
NEAR = 0.3  # cosine: about the same thing, where the query asks how it stands
EQUAL = 0.995  # cosine: the very same, of which no value is newer
SAME = 0.55  # cosine: the same said again, whatever the query asks
LIKELY = 0.5  # probability from which a query counts as asking how something stands
RIVAL = 6.0  # log-odds behind the best: less likely hits are no rivals of it


@dataclass(frozen=True, slots=True)
class Renewed:
    """The positions of hits in their new order, for outdated ones the position of the newer, and whether
    for such a question what is newer `leads`.
    """

    order: tuple[int, ...]
    newer: dict[int, int]
    leads: bool


def newest_first(
    nearness: NDArray[np.float32], days: Sequence[int], scores: Sequence[float], state: float | None
) -> Renewed:
    """Put the newest of the hits that are about the same as the best one before the others.

    `nearness` holds cosines of the first hits to the best one, or the share of words in common, best
    first; `days` below 0 are unknown; `scores` are log-odds. `state` is how likely the query asks how
    something stands now: then what is near is enough; else only what says the same again outdates what
    said so before. Where it is unlikely, the order stays; where it is not known (None), what says the
    same again is moved.
    """
    leads = state is None or state >= LIKELY
    count = min(HEAD, len(days))
    order = list(range(len(days)))
    if not count or days[0] < 0:
        return Renewed(tuple(order), {}, leads)
    least = NEAR if state is not None and leads else SAME
    group = [0] + [
        at
        for at in range(1, count)
        if days[at] >= 0 and least <= nearness[at] < EQUAL and scores[at] >= scores[0] - RIVAL
    ]
    group.sort(key=lambda at: -days[at])
    latest = group[0]
    newer = {at: latest for at in group if days[at] < days[latest]}
    if leads:
        chosen = set(group)
        order = [*group, *(at for at in order if at not in chosen)]
    return Renewed(tuple(order), newer, leads)


def behind(count: int, newer: Mapping[int, int]) -> list[int]:
    """The positions 0..count-1 in an order in which what is `newer` stands just before the first of what
    it outdates, unless it does already.
    """
    place = [float(at) for at in range(count)]
    for old, new in newer.items():
        place[new] = min(place[new], old - 0.5)
    return sorted(range(count), key=lambda at: (place[at], at))
