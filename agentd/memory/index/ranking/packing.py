"""Joins ranked units to hits, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

JOIN_TOKENS = 1000  # units beyond this many tokens are not joined, since nobody would read them
LONGEST_JOIN = 400  # tokens of one joined hit
LIKE = 0.5  # share of the best score that a neighbour needs to be joined


class PackedUnit(Struct, frozen=True):
    """A ranked unit; `before` and `after` are the slots of its neighbours in the file, -1 for
    none.
    """

    slot: int
    tokens: int
    before: int = -1
    after: int = -1
    score: float = 1.0


def join(ranked: Sequence[PackedUnit], budget: int) -> list[tuple[int, ...]]:
    """Group ranked units as slots in reading order, best first. Among the units of the first
    `budget` tokens, neighbours become one group, at the rank of the best of them.
    """
    head: dict[int, PackedUnit] = {}
    spent = 0
    for unit in ranked:
        spent += unit.tokens
        if spent > budget:
            break
        head[unit.slot] = unit
    groups: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for unit in head.values():
        if unit.slot not in taken:
            group = _grown(unit, head, taken)
            taken.update(group)
            groups.append(group)
    return [*groups, *((unit.slot,) for unit in ranked[len(head) :])]


def within(costs: Sequence[int], budget: int | None, limit: int) -> list[int]:
    """Return the positions of the hits to show, given their costs, best first: at most `limit` hits
    with at most `budget` tokens together. A hit that does not fit is skipped in favour of smaller
    ones after it.
    """
    chosen: list[int] = []
    left = budget
    for number, cost in enumerate(costs):
        if len(chosen) >= limit:
            break
        if left is not None:
            if cost > left:
                continue
            left -= cost
        chosen.append(number)
    return chosen


def _grown(unit: PackedUnit, head: Mapping[int, PackedUnit], taken: set[int]) -> tuple[int, ...]:
    """Return the unit with its neighbours as slots in reading order, extended alternately before
    and after while they are in the head.
    """
    group = [unit.slot]
    tokens = unit.tokens
    ends = {"before": unit, "after": unit}
    while ends:
        for side, end in list(ends.items()):
            near = head.get(end.before if side == "before" else end.after)
            is_beside = near is None or near.slot in taken or near.score < LIKE * unit.score
            if near is None or is_beside or tokens + near.tokens > LONGEST_JOIN:
                del ends[side]
                continue
            ends[side] = near
            tokens += near.tokens
            group.insert(0 if side == "before" else len(group), near.slot)
    return tuple(group)
