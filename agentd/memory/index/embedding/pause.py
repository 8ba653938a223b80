"""Backs off from a service or process that keeps failing."""

from __future__ import annotations

import math
from datetime import timedelta

from agentd.core.errors import EmbedderFault
from agentd.core.ports import Clock
from agentd.core.times import format_duration


class Backoff:
    """A back-off: after `after` failures in a row there is a pause of `first` seconds, doubled by
    each further failure, up to `longest`. A success ends it.
    """

    def __init__(
        self, clock: Clock, *, after: int = 1, first: float = 1.0, longest: float = 300.0
    ) -> None:
        self._clock = clock
        self._after = after
        self._first = first
        self._longest = longest
        self._failures = 0
        self._pause = 0.0
        self._until = 0.0
        self.fault: EmbedderFault | None = None

    @property
    def left(self) -> float:
        """Seconds until the pause ends; 0 outside a pause."""
        return max(0.0, self._until - self._clock.monotonic()) if self._pause else 0.0

    def check(self) -> None:
        """Raise EmbedderFault during a pause, with the message of the last failure."""
        left = self.left
        if left and self.fault is not None:
            wait = format_duration(timedelta(seconds=math.ceil(left)))
            raise EmbedderFault(
                f"{self.fault.message} The next try comes in {wait}.",
                cure=self.fault.cure,
            )

    def failed(self, fault: EmbedderFault) -> None:
        """Count a failure; from `after` failures in a row on, begin or double the pause."""
        self.fault = fault
        self._failures += 1
        if self._failures >= self._after:
            self._pause = min(self._pause * 2 or self._first, self._longest)
            self._until = self._clock.monotonic() + self._pause

    def worked(self) -> None:
        """Reset after a success."""
        self._failures, self._pause, self.fault = 0, 0.0, None
