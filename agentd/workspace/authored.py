"""Which lines of a file agentd wrote, as keyed hashes beside the file's versions. Blocking.

A line that the user changed afterwards is not among them. There is no way back from a hash to the
words, so the record may outlive them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from agentd.domain.workspace import HAND, RESTORE, Author
from agentd.workspace.folder import Folder

LINES = "lines"  # the name in a file's folder
MOST = 20_000  # lines of one file that are known, the newest
_KEY = "key"  # the name in the folder of all versions
_SIZE = 8  # bytes of a hash
_OTHERS = frozenset({HAND.kind, RESTORE.kind, "facts", "archive"})
_LIMIT = 1 << 20


class Authored:
    """The record below the versions directory. Methods raise OSError; whoever calls `note` holds the
    lock of the path.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def note(self, home: str, lines: Iterable[bytes]) -> None:
        """Lines of the file with this folder are ours."""
        wanted = list(dict.fromkeys(bare for line in lines if (bare := line.strip())))
        if not wanted:
            return
        key = self._key() or self._make_key()
        known = self._read(home)
        there = frozenset(known)
        new = [mark for line in wanted if (mark := _mark(key, line)) not in there]
        if new:
            marks = [*known, *new]
            if len(marks) > MOST:
                marks = marks[-MOST // 2 :]
            self._folder.replace((home, LINES), b"".join(marks))

    def own(self, home: str, lines: Sequence[bytes]) -> list[bool]:
        """For each line whether it is ours."""
        key, known = self._key(), frozenset(self._read(home))
        return [bool(key) and _mark(key, line.strip()) in known for line in lines]

    def _read(self, home: str) -> list[bytes]:
        try:
            data = self._folder.read((home, LINES), _LIMIT)
        except FileNotFoundError:
            return []
        return [data[start : start + _SIZE] for start in range(0, len(data), _SIZE)]

    def _key(self) -> bytes:
        try:
            return self._folder.read((_KEY,), _LIMIT)
        except FileNotFoundError:
            return b""

    def _make_key(self) -> bytes:
        key = secrets.token_bytes(32)
        self._folder.replace((_KEY,), key)
        return key


def added(old: bytes | None, new: bytes | None, by: Author) -> list[bytes]:
    """The lines of `new` that `by` wrote: none for what came by hand, or came back, nor of the page of
    facts, which has an owner of its own and may be long.
    """
    if by.kind in _OTHERS:
        return []
    before = {line.strip() for line in (old or b"").splitlines()}
    return [line for line in (new or b"").splitlines() if line.strip() not in before]


def _mark(key: bytes, line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=_SIZE, key=key).digest()
