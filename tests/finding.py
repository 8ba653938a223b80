"""Which files of a folder hold given bytes, while a daemon is writing there."""

from __future__ import annotations

from pathlib import Path

_SCANS = 50


def holding(root: Path, *words: bytes, least: int = 0) -> set[str]:
    """The files below `root` that hold one of the words, in any ASCII case, by their place there.

    Should a file vanish while they are read, what it held may stand under another name: everything is
    read again. AssertionError unless there are more than `least` files.
    """
    lowered = [word.lower() for word in words]
    for _ in range(_SCANS):
        try:
            return _scan(root, lowered, least)
        except FileNotFoundError:
            continue
    raise AssertionError(f"files vanished in each of {_SCANS} readings of {root}")


def _scan(root: Path, words: list[bytes], least: int) -> set[str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > least, f"{root} has {len(files)} files: is it the right place?"
    read = ((path, path.read_bytes().lower()) for path in files)
    return {
        path.relative_to(root).as_posix()
        for path, held in read
        if any(word in held for word in words)
    }
