"""How time orders hits: by nearness to the days of a query, and newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fits(first: NDArray[np.int32], last: NDArray[np.int32], window: tuple[int, int]) -> Floats:
    """Return how well spans of days fit a window, 0..1: 1 for a span that overlaps it; less for one
    shortly after (likely a report of it); still less for one before.
    """
    late = np.maximum(first - window[1], 0).astype(np.float32)
    early = np.maximum(window[0] - last, 0).astype(np.float32)
    near = np.where(late > 0, 0.5 * np.exp(-late / 5.0), 0.25 * np.exp(-early / 3.0))
    return np.where(first < 0, 0.0, np.where((late == 0) & (early == 0), 1.0, near)).astype(
        np.float32
    )


HEAD = 10  # number of first hits that are considered
NEAR = 0.3  # cosine of hits about the same thing, if the query asks for a present state
EQUAL = 0.995  # cosine of copies: neither is newer
SAME = 0.55  # cosine of hits that say the same again, whatever the query asks
LIKELY = 0.5  # least probability for a query to count as asking for a present state
RIVAL = 6.0  # log-odds below the best: hits less likely than this do not compete with it


class NewestOrder(Struct, frozen=True):
    """A new order of hits, as positions; for each outdated hit the position of the newer one; and
    whether newer hits come first (`leads`) for such a question.
    """

    order: tuple[int, ...]
    newer: dict[int, int]
    leads: bool


def newest_first(
    nearness: NDArray[np.float32], days: Sequence[int], scores: Sequence[float], state: float | None
) -> NewestOrder:
    """Put the newest of the hits about the same thing as the best hit before the others.

    `nearness` holds the cosines of the first hits to the best one, or their share of common words,
    best first; `days` below 0 are unknown; `scores` are log-odds. `state` is the probability that
    the query asks for a present state. If it is likely, NEAR hits compete; if unlikely, only hits
    that say the same again are marked as outdated, and the order stays; if not known (None), hits
    that say the same again are moved.
    """
    leads = state is None or state >= LIKELY
    count = min(HEAD, len(days))
    order = list(range(len(days)))
    if not count or days[0] < 0:
        return NewestOrder(tuple(order), {}, leads)
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
    return NewestOrder(tuple(order), newer, leads)


def behind(count: int, newer: Mapping[int, int]) -> list[int]:
    """Order the positions 0..count-1 so that each `newer` hit comes just before the first of the
    hits it outdates, unless it is before them already.
    """
    place = [float(at) for at in range(count)]
    for old, new in newer.items():
        place[new] = min(place[new], old - 0.5)
    return sorted(range(count), key=lambda at: (place[at], at))
