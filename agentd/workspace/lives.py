"""Whether a file is still the one that it was, and not another of its name. Blocking."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from weakref import finalize

from agentd.workspace.folder import Folder

Parts = tuple[str, ...]


class Lives:
    """The lives of files that somebody has asked about. A life begins when it is first asked for, and
    ends when the file is deleted, or is another one by now: what agentd itself writes goes on with it.

    Each file is kept open, for that alone: as long as it is, no other file can have its number.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kept: dict[Parts, _Life] = {}

    def of(self, parts: Sequence[str]) -> str:
        """A word for the life of the file that stands there; "" where none does. Raises OSError."""
        parts = tuple(parts)
        life = self._kept.get(parts)
        if life is not None and self._folder.leads_to(parts, life.fd):
            return life.name
        self._kept.pop(parts, None)
        try:
            self._kept[parts] = _Life(self._folder.hold(parts), secrets.token_hex(8))
        except FileNotFoundError:
            return ""
        return self._kept[parts].name

    def is_going_on(self, parts: Sequence[str]) -> bool:
        """Whether a life that was asked for has not ended. Raises OSError."""
        life = self._kept.get(tuple(parts))
        return life is not None and self._folder.leads_to(parts, life.fd)

    def go_on(self, parts: Sequence[str]) -> None:
        """The file that stands there now is the same one, changed by agentd. Raises OSError."""
        life = self._kept[tuple(parts)]
        self._kept[tuple(parts)] = _Life(self._folder.hold(parts), life.name)

    def end(self, parts: Sequence[str]) -> None:
        """Nothing is left of the file, whatever stands there."""
        self._kept.pop(tuple(parts), None)


class _Life:
    """A file kept open, without its content, as long as this object is."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name
        finalize(self, os.close, fd)
