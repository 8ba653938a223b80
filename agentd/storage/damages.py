"""Records damage of the state database and reports it until the owner has taken note. Blocking.

Each damage has a folder beside the database, with the files that were put aside and a report. It
remains a problem as long as the folder exists.
"""

from __future__ import annotations

import json
import os
import shlex
from datetime import datetime
from itertools import count
from pathlib import Path

from msgspec import Struct

from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir, read_regular, write_private

MARK = ".damaged-"  # part of the folders' names
_REPORT = "report.json"
_TOLD = "told"


class Damages:
    """Every damage of the database at `path` whose folder still exists."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def folder(self) -> Path:
        """Create an empty folder for the next damage and return its path. Raises OSError."""
        parent, name = self._path.parent, self._path.name
        free = next(
            folder for n in count(1) if not os.path.lexists(folder := parent / f"{name}{MARK}{n}")
        )
        return ensure_private_dir(free)

    def record(self, folder: Path, problem: Problem, at: datetime) -> None:
        """Write the report of a damage, durably, whole or not at all. Raises OSError."""
        told = {"at": at.isoformat(), **problem.as_json()}
        write_private(folder / _REPORT, json.dumps(told, indent=1))

    def all(self) -> tuple[Damage, ...]:
        """Return every damage with a report, ordered by the path of its folder."""
        return tuple(
            Damage(folder, problem)
            for folder in sorted(self._path.parent.glob(f"{self._path.name}{MARK}*"))
            if (problem := _problem(folder)) is not None
        )

    def problems(self) -> tuple[Problem, ...]:
        """The problem of each damage, for `status`."""
        return tuple(damage.problem for damage in self.all())


class Damage(Struct, frozen=True):
    """One damage of the database. `folder` contains the files that were put aside."""

    folder: Path
    problem: Problem

    @property
    def is_told(self) -> bool:
        """Whether the owner was alerted to the damage."""
        return (self.folder / _TOLD).exists()

    def mark_told(self) -> None:
        """Record that the owner was alerted. Raises OSError."""
        (self.folder / _TOLD).touch(mode=0o600)


def _problem(folder: Path) -> Problem | None:
    try:
        told = json.loads(read_regular(folder / _REPORT))
        return Problem(str(told["code"]), str(told["text"]), str(told["cure"]))
    except FileNotFoundError:
        return None  # a crash cut the rescue short: the next start repeats it
    except (OSError, ValueError, KeyError, TypeError):
        text = f"{folder} holds what was put aside of a damaged database; its report cannot be read"
        return Problem(
            "state_salvaged",
            text,
            f"look at it, then remove it: {shlex.join(['rm', '-r', str(folder)])}",
        )
