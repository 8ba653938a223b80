"""What is wrong with single files now: told once to the log, listed until it is cured."""

from __future__ import annotations

import structlog

from agentd.domain.health import Problem

UNREADABLE = "file_unreadable"
SCOPE = "scope_unreadable"
IRREGULAR = "file_irregular"  # named like a note, but a link, a pipe or a device

log = structlog.get_logger()


class Complaints:
    """Problems by path and code."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Problem] = {}

    def add(self, path: str, problem: Problem) -> None:
        """Note it; the same one again is not logged again."""
        if self._open.get((path, problem.code)) != problem:
            log.warning("workspace_problem", code=problem.code, text=problem.text)
        self._open[path, problem.code] = problem

    def clear(self, path: str, code: str) -> None:
        """It is over, if it ever was."""
        if self._open.pop((path, code), None) is not None:
            log.info("workspace_problem_over", code=code, path=path)

    def forget(self, path: str) -> None:
        """The file is gone, and with it what was wrong with it."""
        for _, code in [key for key in self._open if key[0] == path]:
            self.clear(path, code)

    def paths(self, code: str) -> tuple[str, ...]:
        """The files that have this problem."""
        return tuple(path for path, what in self._open if what == code)

    def all(self) -> tuple[Problem, ...]:
        """What is wrong, sorted by path."""
        return tuple(problem for _, problem in sorted(self._open.items()))
