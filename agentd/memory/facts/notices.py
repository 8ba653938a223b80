"""What `status` says of the page of facts, and of what was not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentd.domain.fact import Learned
from agentd.domain.health import Problem
from agentd.domain.workspace import FACTS_PATH
from agentd.errors import WorkspaceError
from agentd.memory.facts.page import Trouble

_SHOWN = 3


class Notices:
    """Kept between two looks at the page."""

    def __init__(self) -> None:
        self.unreadable: WorkspaceError | None = None
        self.troubles: tuple[Trouble, ...] = ()
        self.refused: tuple[Trouble, ...] = ()
        self.dead = 0
        self.not_kept: Counter[str] = Counter()  # since the start, by reason

    def count(self, learned: Sequence[Learned]) -> None:
        """Count what was not kept."""
        self.not_kept.update(str(one.reason) for one in learned if one.reason is not None)

    def problems(self, parked: int) -> tuple[Problem, ...]:
        """All of it; `parked` facts miss on the page."""
        found = []
        if self.unreadable is not None:
            error = self.unreadable
            found.append(Problem("facts_page_unreadable", error.message, error.cure))
        if self.troubles:
            found.append(_of_lines("facts_unreadable", "cannot be read", self.troubles))
        if self.refused:
            found.append(_of_lines("facts_refused", "are not taken as facts", self.refused))
        if self.dead:
            text = f"{FACTS_PATH} had {self.dead} forgotten facts again; they were taken out"
            cure = "write what you want kept as a new line without the comment"
            found.append(Problem("facts_revived", text, cure))
        if parked:
            text = (
                f"the lines of {parked} facts are gone from {FACTS_PATH}; nothing was forgotten yet"
            )
            cure = "`agentd facts parked --accept` forgets them, `--restore` writes them again"
            found.append(Problem("facts_parked", text, cure))
        return tuple(found)


def _of_lines(code: str, what: str, lines: Sequence[Trouble]) -> Problem:
    named = "; ".join(str(trouble) for trouble in lines[:_SHOWN])
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return Problem(code, f"{len(lines)} lines of {FACTS_PATH} {what}: {named}{more}", lines[0].cure)
