"""What a restore that was cut leaves behind, told apart by whether it had begun to move things.

A folder `.restore-…` beside the database holds what was unpacked. From the first thing that is moved aside to
the last that is put in place a mark stands in it: where it has stayed, the home is neither the old one nor the
archive's, and a daemon that worked there would take missing notes for deleted ones.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from agentd.core.errors import StateMissing
from agentd.core.paths import ensure_private_dir, sync_directory

_NAME = ".restore-"
_MOVING = "moving"
_MOST = 1000  # restores in one second


def new_stage(state_dir: Path, stamp: str) -> Path:
    """A folder of its own for what a restore of that time unpacks. Raises OSError."""
    names = (f"{_NAME}{stamp}", *(f"{_NAME}{stamp}-{number}" for number in range(2, _MOST)))
    free = next(name for name in names if not (state_dir / name).exists())
    return ensure_private_dir(state_dir / free)


def begin_moving(stage: Path) -> None:
    """Things are about to be moved. Raises OSError."""
    (stage / _MOVING).touch()
    sync_directory(stage)


def end_moving(state_dir: Path) -> None:
    """All is in place, whatever earlier restores have left half done. Raises OSError."""
    for stage in _stages(state_dir):
        (stage / _MOVING).unlink(missing_ok=True)
        sync_directory(stage)


def clear(state_dir: Path) -> None:
    """Remove what restores have unpacked that have moved nothing, or all; the caller holds the lock, so that
    no other is at work.
    """
    for stage in _stages(state_dir):
        if not (stage / _MOVING).exists():
            shutil.rmtree(stage)


def refuse_half(state_dir: Path) -> None:
    """Raises StateMissing where a restore was cut while it moved things."""
    for stage in _stages(state_dir):
        if (stage / _MOVING).exists():
            raise StateMissing(
                "a restore was cut before it was complete: part of what it brings is in place, part is not",
                cure="run `agentd restore FILE --force` again; what was there before stands beside it with"
                f" .before-… behind its name (if you put that back by hand, remove {stage})",
            )


def _stages(state_dir: Path) -> list[Path]:
    return [path for path in state_dir.glob(f"{_NAME}*") if path.is_dir()]
