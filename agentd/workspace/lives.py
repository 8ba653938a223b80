"""Whether a file is still the one that it was, and not another of its name. Blocking."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from weakref import finalize

from agentd.workspace.folder import Folder

Parts = tuple[str, ...]


class Lives:
    """The lives of files that somebody has asked about. A life begins when it is first asked for, and
    ends when the file is deleted, or holds anything else than it did: only what agentd itself writes goes
    on with it. A copy over the file, or one emptied and filled again, is no longer what it was.

    Each file is kept open, for that alone: as long as it is, no other file can have its number.
    """

    def __init__(self, folder: Folder, most_bytes: int) -> None:
        """Files of more bytes have no lives."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._kept: dict[Parts, _Life] = {}

    def of(self, parts: Sequence[str]) -> str:
        """A word for the life of the file that stands there; "" where none does, or an empty one. Raises
        OSError, FileUnreadable.
        """
        parts = tuple(parts)
        if self.is_going_on(parts):
            return self._kept[parts].name
        self._kept.pop(parts, None)
        try:
            life = self._begin(parts, secrets.token_hex(8))
        except FileNotFoundError:
            return ""
        if not life.is_blank:
            self._kept[parts] = life
        return "" if life.is_blank else life.name

    def is_going_on(self, parts: Sequence[str]) -> bool:
        """Whether a life that was asked for has not ended. Raises OSError, FileUnreadable."""
        life = self._kept.get(tuple(parts))
        if life is None or not self._folder.leads_to(parts, life.fd):
            return False
        return _digest(self._folder.read(parts, self._most_bytes)) == life.digest

    def go_on(self, parts: Sequence[str]) -> None:
        """The file that stands there now is the same one, changed by agentd. Raises OSError,
        FileUnreadable.
        """
        self._kept[tuple(parts)] = self._begin(parts, self._kept[tuple(parts)].name)

    def end(self, parts: Sequence[str]) -> None:
        """Nothing is left of the file, whatever stands there."""
        self._kept.pop(tuple(parts), None)

    def _begin(self, parts: Sequence[str], name: str) -> _Life:
        life = _Life(self._folder.hold(parts), name)
        data = self._folder.read(parts, self._most_bytes)
        life.digest, life.is_blank = _digest(data), not data.strip()
        return life


class _Life:
    """A file kept open, without its content, as long as this object is; `digest` is that of the content
    that agentd knows.
    """

    digest = b""
    is_blank = False

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name
        finalize(self, os.close, fd)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
