"""Tells whether a file is still the same one, or another under the same name. Blocking."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from weakref import finalize

from agentd.workspace.folder import Folder

Parts = tuple[str, ...]


class FileIdentities:
    """Identifiers of the lives of files. A file's life begins when `of` first asks for it. It ends
    when the file is deleted or its content changes in any way other than by a write of agentd: a
    file that was copied over, or emptied and filled again, is no longer the same one.

    Each file is kept open for this purpose only: as long as it is, no other file can get its inode
    number.
    """

    def __init__(self, folder: Folder, most_bytes: int) -> None:
        """`most_bytes` is the size above which `of` raises FileUnreadable."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._kept: dict[Parts, _OpenFile] = {}

    def of(self, parts: Sequence[str]) -> str:
        """Return an identifier of the file's current life; "" if there is no file or it is blank.
        Raises OSError, PathRefused, FileUnreadable.
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
        """Whether a life that `of` returned for this path has not ended. Raises OSError,
        FileUnreadable.
        """
        life = self._kept.get(tuple(parts))
        if life is None or not self._folder.leads_to(parts, life.fd):
            return False
        return _digest(self._folder.read(parts, self._most_bytes)) == life.digest

    def go_on(self, parts: Sequence[str]) -> None:
        """Continue the file's life with its present content, which agentd has written. Raises
        OSError, FileUnreadable.
        """
        self._kept[tuple(parts)] = self._begin(parts, self._kept[tuple(parts)].name)

    def end(self, parts: Sequence[str]) -> None:
        """End the life of the file at this path, whatever is there now."""
        self._kept.pop(tuple(parts), None)

    def _begin(self, parts: Sequence[str], name: str) -> _OpenFile:
        life = _OpenFile(self._folder.hold(parts), name)
        data = self._folder.read(parts, self._most_bytes)
        life.digest, life.is_blank = _digest(data), not data.strip()
        return life


class _OpenFile:
    """A file that is kept open, not for reading, as long as this object exists. `digest` is that of
    the content that agentd knows.
    """

    digest = b""
    is_blank = False

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name
        finalize(self, os.close, fd)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
