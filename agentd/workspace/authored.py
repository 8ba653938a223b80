"""Which lines of a file agentd wrote, or are from outside, as keyed hashes beside the file's versions.
Blocking.

A line that the user changed afterwards is not among them. There is no way back from a hash to the
words, so the record may outlive them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from agentd.domain.workspace import HAND, RESTORE, Author
from agentd.workspace.folder import Folder

LINES = "lines"  # agentd's: the name in a file's folder
OUTSIDE = "outside"  # the name of the record of lines from outside
MOST = 20_000  # lines of one file that are known, the newest
_KEY = "key"  # the name in the folder of all versions
_SIZE = 8  # bytes of a hash
_OTHERS = frozenset({HAND.kind, RESTORE.kind, "facts", "archive"})
_LIMIT = 1 << 24


class Authored:
    """The record `name` below the versions directory. Where `forgets` is False it grows without a bound
    rather than forget a line. Methods raise OSError; whoever changes it holds the lock of the path.
    """

    def __init__(self, folder: Folder, name: str = LINES, *, forgets: bool = True) -> None:
        self._folder = folder
        self._name = name
        self._forgets = forgets

    def note(self, home: str, lines: Iterable[bytes]) -> None:
        """Take lines of the file with this folder into the record."""
        wanted = list(dict.fromkeys(bare for line in lines if (bare := line.strip())))
        if not wanted:
            return
        key = self._key() or self._make_key()
        known = self._read(home)
        there = frozenset(known)
        new = [mark for line in wanted if (mark := _mark(key, line)) not in there]
        if new:
            marks = [*known, *new]
            if self._forgets and len(marks) > MOST:
                marks = marks[-MOST // 2 :]
            self._folder.replace((home, self._name), b"".join(marks))

    def drop(self, home: str, lines: Iterable[bytes]) -> None:
        """Take lines of the file out of the record."""
        if not (known := self._read(home)):
            return
        key = self._key()
        gone = {_mark(key, line.strip()) for line in lines}
        kept = [mark for mark in known if mark not in gone]
        if len(kept) < len(known):
            self._folder.replace((home, self._name), b"".join(kept))

    def own(self, home: str, lines: Sequence[bytes]) -> list[bool]:
        """For each line whether it is in the record."""
        key, known = self._key(), frozenset(self._read(home))
        return [bool(key) and _mark(key, line.strip()) in known for line in lines]

    def _read(self, home: str) -> list[bytes]:
        try:
            data = self._folder.read((home, self._name), _LIMIT)
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
