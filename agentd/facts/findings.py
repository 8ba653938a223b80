"""What a look at all facts has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

STALE = timedelta(days=180)  # after which what age has left nothing of goes


@dataclass(slots=True)
class Findings:
    """What is to be done. Duplicates and conflicts name the fact that stays by the one that goes."""

    checked: int = 0
    duplicates: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)

    def successors(self) -> dict[str, str]:
        """The facts that are to be put aside, each with the one that it goes for, or with ""."""
        replaced = {**self.duplicates, **self.conflicts}
        standing = {i: self._standing(replaced, by) for i, by in replaced.items()}
        return {**standing, **dict.fromkeys((*self.stale, *self.evicted), "")}

    def as_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The shape in `agentd facts validate`."""
        return {
            "checked": self.checked,
            "duplicates": [{"id": i, "of": of} for i, of in self.duplicates.items()],
            "conflicts": [{"id": i, "by": by} for i, by in self.conflicts.items()],
            "stale": list(self.stale),
            "evicted": list(self.evicted),
            "dry_run": dry_run,
        }

    @staticmethod
    def _standing(replaced: Mapping[str, str], fact_id: str) -> str:
        """The fact at the end of those that went one for the other."""
        while fact_id in replaced:
            fact_id = replaced[fact_id]
        return fact_id
