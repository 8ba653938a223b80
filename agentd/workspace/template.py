"""Fills a new workspace with the files that are shipped with agentd. Blocking; never overwrites a
file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.core.paths import ensure_private_dir, sync_directory
from agentd.workspace.folder import Folder
from agentd.workspace.os_errors import translate_os_errors

BOOTSTRAP = "BOOTSTRAP.md"
NAMES = (
    "README.md",
    "AGENTS.md",
    "SOUL.md",
    "TOOLS.md",
    "IDENTITY.md",
    "USER.md",
    "MEMORY.md",
    "HEARTBEAT.md",
    BOOTSTRAP,
)

_MEMORY = "memory"
_SHARED = "shared"
_OF_AN_OLD_FRIEND = ("AGENTS.md", "SOUL.md", "USER.md")


def create(root: Path, source: Path) -> tuple[str, ...]:
    """Copy those of the nine files, the memory folder and the shared folder that are missing from
    the directory `source`; return the paths that were written. BOOTSTRAP.md, the first
    conversation, is not copied if AGENTS, SOUL or USER exists: user and agent have met then. Raises
    WorkspaceError.
    """
    if root.is_dir():
        return _fill(root, source)
    # Made under another name and renamed: after a crash, half a workspace would look like one
    # whose owner has deleted the other files.
    making = root.with_name(f".agentd-{root.name}.new")  # a name that no other program uses
    if making.is_dir():
        shutil.rmtree(making)  # left behind by a crash
    written = _fill(ensure_private_dir(making), source)
    making.rename(root)
    sync_directory(root.parent)
    return written


def lines(source: Path) -> Mapping[str, frozenset[str]]:
    """Return the lines of the files in the directory `source`, by path. In a workspace these lines
    are not the user's own words.
    """
    return {
        file.relative_to(source).as_posix(): frozenset(
            line.strip() for line in file.read_text(encoding="utf-8").split("\n")
        )
        for file in sorted(source.rglob("*.md"))
    }


def _fill(root: Path, source: Path) -> tuple[str, ...]:
    folder = Folder(root)
    with translate_os_errors(str(root)):
        have_met = any(_stands(folder, (name,)) for name in _OF_AN_OLD_FRIEND)
        names = [name for name in NAMES if name != BOOTSTRAP or not have_met]
        wanted: list[tuple[str, ...]] = [(name,) for name in names]
        for home in (_MEMORY, _SHARED):
            wanted += [(home, path.name) for path in sorted((source / home).glob("*.md"))]
        written = [parts for parts in wanted if _write(folder, source, parts)]
        with folder.beneath.folder((_MEMORY,), make=True):
            return tuple("/".join(parts) for parts in written)


def _write(folder: Folder, source: Path, parts: Sequence[str]) -> bool:
    if _stands(folder, parts):
        return False
    folder.replace(parts, source.joinpath(*parts).read_bytes())
    return True


def _stands(folder: Folder, parts: Sequence[str]) -> bool:
    """Whether anything has that name, even a dangling link."""
    return folder.root.joinpath(*parts).is_symlink() or folder.root.joinpath(*parts).exists()
