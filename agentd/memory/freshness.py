"""Whether notes have to be looked at before a search, or nothing can have changed since the last look."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from agentd.ports import Clock

CHEAP = 0.010  # seconds: a look that takes no longer is not worth saving
_LAST = 10  # looks whose quickest counts: others may have kept one waiting


@dataclass(frozen=True, slots=True)
class Look:
    """One that has begun."""

    mark: Hashable | None
    began: float


class Freshness:
    """Keeps what looks cost, and what had been told of changes when the last one began."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mark: Callable[[], Hashable | None] = lambda: None
        self._costs: deque[float] = deque(maxlen=_LAST)
        self._level: Hashable | None = None

    def trust(self, mark: Callable[[], Hashable | None]) -> None:
        """`mark` gives another value whenever a change is told; None while changes may go untold."""
        self._mark = mark

    @property
    def is_sure(self) -> bool:
        """Whether looking would cost something and find nothing."""
        is_cheap = min(self._costs, default=0.0) < CHEAP
        return not is_cheap and self._level is not None and self._mark() == self._level

    def begin(self) -> Look:
        """A look begins."""
        return Look(self._mark(), self._clock.monotonic())

    def listed(self, look: Look) -> None:
        """All files have been listed, which is what a look costs where nothing has changed."""
        self._costs.append(self._clock.monotonic() - look.began)

    def settle(self, look: Look) -> None:
        """What the look has found is taken in."""
        self._level = look.mark

    def lose(self) -> None:
        """Something is to be taken in."""
        self._level = None
