"""What has happened to the state database: told until the owner has taken note of it. Blocking.

Each time there is a folder beside the database, with the files that were put aside and what is
to be told. It stays a problem as long as the folder stands there.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir, write_private

MARK = ".damaged-"  # in the names of the folders
_REPORT = "report.json"
_TOLD = "told"


class Damages:
    """Every damage of the database at `path` that is still to be taken note of."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def folder(self) -> Path:
        """A new, empty folder for the next. Raises OSError."""
        parent, name = self._path.parent, self._path.name
        free = next(
            folder for n in count(1) if not os.path.lexists(folder := parent / f"{name}{MARK}{n}")
        )
        return ensure_private_dir(free)

    def record(self, folder: Path, problem: Problem, at: datetime) -> None:
        """Keep what is to be told, durably, whole or not at all. Raises OSError."""
        told = {"at": at.isoformat(), **problem.as_json()}
        write_private(folder / _REPORT, json.dumps(told, indent=1))

    def all(self) -> tuple[Damage, ...]:
        """Every damage, the oldest first."""
        return tuple(
            Damage(folder, problem)
            for folder in sorted(self._path.parent.glob(f"{self._path.name}{MARK}*"))
            if (problem := _problem(folder)) is not None
        )

    def problems(self) -> tuple[Problem, ...]:
        """What each of them is, for `status`."""
        return tuple(damage.problem for damage in self.all())


@dataclass(frozen=True, slots=True)
class Damage:
    """One time that the database was damaged. `folder` holds what was put aside."""

    folder: Path
    problem: Problem

    @property
    def is_told(self) -> bool:
        """Whether the owner was alerted."""
        return (self.folder / _TOLD).exists()

    def mark_told(self) -> None:
        """Remember that he was. Raises OSError."""
        (self.folder / _TOLD).touch(mode=0o600)


def _problem(folder: Path) -> Problem | None:
    try:
        told = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        return Problem(str(told["code"]), str(told["text"]), str(told["cure"]))
    except FileNotFoundError:
        return None  # it was cut: the next start does it again
    except (OSError, ValueError, KeyError, TypeError):
        text = f"{folder} holds what was put aside of a damaged database; its report cannot be read"
        return Problem("state_salvaged", text, f"look at it, then remove it: rm -r {folder}")
