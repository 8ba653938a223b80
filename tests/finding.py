"""Which files of a folder hold given bytes, while a daemon is writing there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_SCANS = 50


def files(root: Path) -> list[Path]:
    """Every file below a folder."""
    return [path for path in root.rglob("*") if path.is_file()]


def holding(
    root: Path,
    *words: bytes,
    least: int = 0,
    listed: Callable[[Path], list[Path]] = files,
) -> set[str]:
    """The files below `root` that hold one of the words, in any ASCII case, by their place there.

    Should a file vanish while they are read, what it held may stand under another name: everything
    is read again. AssertionError unless there are more than `least` files.
    """
    lowered = [word.lower() for word in words]
    for _ in range(_SCANS):
        try:
            return _scan(root, lowered, listed(root), least)
        except FileNotFoundError:
            continue
    raise AssertionError(f"files vanished in each of {_SCANS} readings of {root}")


def _scan(root: Path, words: list[bytes], found: list[Path], least: int) -> set[str]:
    assert len(found) > least, f"{root} has {len(found)} files: is it the right place?"
    read = ((path, path.read_bytes().lower()) for path in found)
    return {
        path.relative_to(root).as_posix()
        for path, held in read
        if any(word in held for word in words)
    }
