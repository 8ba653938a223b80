"""One line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct


class Row(Struct, frozen=True):
    """What was measured, how often, and what it should be; without a goal it is only told."""

    what: str
    samples: Sequence[float]
    unit: str
    below: float | None = None
    least: float | None = None

    @property
    def value(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    def as_markdown(self) -> str:
        """The line of the table."""
        count = len(self.samples)
        spread = (
            f" ({min(self.samples):.3g}-{max(self.samples):.3g}, n={count})" if count > 1 else ""
        )
        goal = f"< {self.below:g}" if self.below is not None else ""
        goal = f"≥ {self.least:g}" if self.least is not None else goal
        goal = f"{goal} {self.unit}" if goal else "-"
        figure = f"{self.value:.0f}" if self.value >= 1000 else f"{self.value:.3g}"
        return f"| {self.what} | {figure} {self.unit}{spread} | {goal} | {self._verdict()} |"

    def _verdict(self) -> str:
        if self.below is not None:
            return "ok" if self.value < self.below else "MISSED"
        if self.least is not None:
            return "ok" if self.value >= self.least else "MISSED"
        return "-"
