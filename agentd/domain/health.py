"""What is not as it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is degraded, and what cures it."""

    code: str
    text: str
    cure: str = ""

    def as_json(self) -> dict[str, str]:
        """The shape in `agentd status`."""
        return {"code": self.code, "text": self.text, "cure": self.cure}
