"""Hits made of ranked units, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

JOIN_TOKENS = 1000  # units that would not be read anyway are not looked at for neighbours
LONGEST_JOIN = 400  # tokens of one joined hit
LIKE = 0.5  # of the score of the best: a neighbour that has less only stands beside the hit


@dataclass(frozen=True, slots=True)
class PackedUnit:
    """A ranked unit; `before` and `after` are the slots next to it in its file, -1 for none."""

    slot: int
    tokens: int
    before: int = -1
    after: int = -1
    score: float = 1.0


def join(ranked: Sequence[PackedUnit], budget: int) -> list[tuple[int, ...]]:
    """Ranked units as groups of slots in reading order, best first. Units among the first `budget`
    tokens that stand next to each other become one group, at the rank of its best.
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
    """Which hits, given their costs best first, are shown: at most `limit`, of at most `budget`
    tokens together. One that does not fit is passed over for smaller ones behind it.
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
    """The unit with its neighbours, alternately before and after, while they are in the head."""
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
