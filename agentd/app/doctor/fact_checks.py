"""Checks of what is known about the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentd.core.health import Finding, Problem

_WAITING = frozenset({"facts_parked", "facts_unread", "facts_skipped", "facts_revived"})


@dataclass(frozen=True, slots=True)
class LearntCheck:
    """Whether facts, their page and what was forgotten are as they should be. `problems` are those of
    all parts that have to do with facts.
    """

    problems: Callable[[], Sequence[Problem]]
    code: str = "facts"

    async def look(self) -> Finding:
        """Names every problem with its cure; warns of those that only wait for the user or for better
        times, fails for any other.
        """
        found = self.problems()
        if not found:
            return Finding.ok(
                self.code, "facts are level with their page, and nothing is left over"
            )
        text = "; ".join(dict.fromkeys(problem.text.rstrip(".") for problem in found))
        cure = "; ".join(dict.fromkeys(problem.cure.rstrip(".") for problem in found))
        if all(problem.code in _WAITING for problem in found):
            return Finding.warn(self.code, text, cure)
        return Finding.fail(self.code, text, cure)
