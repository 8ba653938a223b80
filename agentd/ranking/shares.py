"""Who may stand among the first: not too much chatter, and no question before its answer."""

from __future__ import annotations

from collections.abc import Sequence

ECHO = 0.8  # of a question's weight is the query's: it was asked before, and says no more
ANSWERS = 3  # units that may be the answer, before which no echo stands


def answers_first(echoes: Sequence[bool], near: Sequence[bool]) -> list[int]:
    """A new order of units given best first: earlier askings of the query (`echoes`) stand behind
    the units that may be its answer (`near` the best and no echo).
    """
    answers = [at for at, n in enumerate(near) if n and not echoes[at]][:ANSWERS]
    if not answers:
        return list(range(len(echoes)))
    last = answers[-1]
    early = [at for at in range(last + 1) if not echoes[at]]
    asked = [at for at in range(last + 1) if echoes[at]]
    return [*early, *asked, *range(last + 1, len(echoes))]


def shared(chatter: Sequence[bool], near: Sequence[bool], share: float) -> list[int]:
    """A new order of units given best first: of the first n at most `share`·n, rounded up, are
    chatter, as long as there are others that are `near` the best.
    """
    others = [at for at, one in enumerate(chatter) if not one and near[at]]
    order: list[int] = []
    placed: set[int] = set()
    talk = 0
    rest = iter(others)
    behind = next(rest, None)
    for at, one in enumerate(chatter):
        if at in placed:
            continue
        while one and behind is not None and talk + 1 > _ceiling(share * (len(order) + 1)):
            if behind > at:
                order.append(behind)
                placed.add(behind)
            behind = next(rest, None)
        order.append(at)
        placed.add(at)
        talk += one
    return order


def _ceiling(value: float) -> int:
    return -int(-value // 1)
