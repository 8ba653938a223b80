"""The last contents of files that the agent has changed, outside the workspace. Blocking.

Below the versions directory each path has a folder (named by its SHA-256, the path in `path`) with one
file `STAMP-DIGEST` per content, so that `memory history` and `memory restore` need no database.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentd.errors import NotFound
from agentd.workspace.folder import Folder
from agentd.workspace.resolver import FOLDER_MODE

KEEP = 20

_STAMP = "%Y%m%dT%H%M%S.%fZ"
_LIMIT = 1 << 24


@dataclass(frozen=True, slots=True)
class Version:
    """A content that was replaced, and when."""

    at: datetime
    digest: str
    size: int


class Versions:
    """What files were before. Methods raise OSError besides what they name."""

    def __init__(self, root: Path, keep: int = KEEP) -> None:
        self._folder = Folder(root, passing=_pass_by)
        self._keep = keep

    def add(self, path: str, data: bytes, at: datetime) -> None:
        """Keep `data` as what `path` was until `at`; the same content again is not kept twice."""
        self._folder.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        self._folder.root.chmod(FOLDER_MODE)
        digest = hashlib.sha256(data).hexdigest()
        home = _home(path)
        names = self._names(home)
        for name in [n for n in names if n.endswith(digest)]:
            self._folder.delete((home, name))
            names.remove(name)
        if not names:
            self._folder.replace((home, "path"), path.encode())
        self._folder.replace((home, f"{at.astimezone(UTC).strftime(_STAMP)}-{digest}"), data)
        for name in names[: max(0, len(names) + 1 - self._keep)]:
            self._folder.delete((home, name))

    def of(self, path: str) -> tuple[Version, ...]:
        """What is kept of `path`, the newest first."""
        home = _home(path)
        sizes = {e.name: e.size for e in self._folder.entries((home,))} if self._names(home) else {}
        return tuple(
            Version(
                datetime.strptime(name.partition("-")[0], _STAMP).replace(tzinfo=UTC),
                name.partition("-")[2],
                sizes[name],
            )
            for name in reversed(self._names(home))
        )

    def read(self, path: str, digest: str) -> bytes:
        """A kept content. Raises NotFound."""
        home = _home(path)
        for name in self._names(home):
            if name.endswith(f"-{digest}"):
                return self._folder.read((home, name), _LIMIT)
        raise NotFound(f"no version {digest[:12]!r} of {path} is kept", cure="list its history")

    def clear_strays(self) -> int:
        """Remove what a crash left half written; returns how many files that were."""
        return self._folder.clear_strays() if self._folder.root.is_dir() else 0

    def _names(self, home: str) -> list[str]:
        if not self._folder.root.is_dir():
            return []
        try:
            entries = self._folder.entries((home,))
        except FileNotFoundError:
            return []
        return [e.name for e in entries if e.name != "path" and not e.name.startswith(".")]


def _pass_by(_name: str) -> None:
    """The failpoints are about the workspace's own files."""


def _home(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:32]
