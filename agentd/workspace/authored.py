"""Records which lines of a file agentd wrote, or came from outside, as keyed hashes beside the
file's versions. Blocking.

A line that the user changed afterwards has another hash and so is not in the record. The words
cannot be restored from a hash, so the record may outlive them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence

from agentd.core.workspace import HAND, RESTORE, Author
from agentd.workspace.folder import Folder

LINES = "lines"  # the name of the record of lines that agentd wrote
OUTSIDE = "outside"  # the name of the record of lines from outside
MOST = 20_000  # lines of one file in a record
_FEW = 100  # appended lines, below which each is searched in the old text, which is not split then
_KEY = "key"  # the name in the folder of all versions
_SIZE = 8  # bytes of a hash
_OTHERS = frozenset({HAND.kind, RESTORE.kind, "facts", "archive"})
_LIMIT = 1 << 24


class Authored:
    """The record `name` of lines, one file for each folder of the versions directory. Unless
    `forgets`, it grows without a bound and loses no line; otherwise, when it exceeds MOST lines,
    only the newest half of that many stay. Methods raise OSError. Whoever changes a record holds
    the lock of the file's path.
    """

    def __init__(self, folder: Folder, name: str = LINES, *, forgets: bool = True) -> None:
        self._folder = folder
        self._name = name
        self._forgets = forgets

    def note(self, home: str, lines: Iterable[bytes]) -> None:
        """Add lines of the file with the versions folder `home` to the record."""
        wanted = list(dict.fromkeys(bare for line in lines if (bare := line.strip())))
        if not wanted:
            return
        key = self._key() or self._make_key()
        known = self._read(home)
        there = _Marks(known)
        new = b"".join(mark for line in wanted if (mark := _mark(key, line)) not in there)
        if not new:
            return
        if self._forgets and len(known) + len(new) > MOST * _SIZE:
            self._folder.replace((home, self._name), (known + new)[-MOST // 2 * _SIZE :])
        elif not self._folder.extend((home, self._name), new, len(known)):
            self._folder.replace((home, self._name), known + new)

    def set(self, home: str, lines: Iterable[bytes]) -> None:
        """Make these lines of the file the whole record."""
        known = self._read(home)
        wanted = dict.fromkeys(bare for line in lines if (bare := line.strip()))
        if not (known or wanted):
            return
        key = self._key() or self._make_key()
        new = b"".join(_mark(key, line) for line in wanted)
        if new != known:
            self._folder.replace((home, self._name), new)

    def drop(self, home: str, lines: Iterable[bytes]) -> None:
        """Remove these lines of the file from the record."""
        if not (known := self._read(home)):
            return
        key, there = self._key(), _Marks(known)
        gone = {mark for line in lines if (mark := _mark(key, line.strip())) in there}
        if gone:
            kept = (mark for mark in _apart(known) if mark not in gone)
            self._folder.replace((home, self._name), b"".join(kept))

    def is_empty(self, home: str) -> bool:
        """Whether the record contains no line of the file with the versions folder `home`."""
        return not self._read(home)

    def own(self, home: str, lines: Sequence[bytes]) -> list[bool]:
        """Return for each line whether the record contains it; space around a line does
        not matter.
        """
        known = frozenset(_apart(self._read(home)))
        if not known:
            return [False] * len(lines)
        key = self._key()
        return [bool(key) and _mark(key, line.strip()) in known for line in lines]

    def _read(self, home: str) -> bytes:
        """Return the complete marks of the record. A crash may have left an incomplete one at the
        end, which is cut off.
        """
        try:
            data = self._folder.read((home, self._name), _LIMIT)
        except FileNotFoundError:
            return b""
        return data[: len(data) - len(data) % _SIZE]

    def _key(self) -> bytes:
        try:
            return self._folder.read((_KEY,), _LIMIT)
        except FileNotFoundError:
            return b""

    def _make_key(self) -> bytes:
        key = secrets.token_bytes(32)
        self._folder.replace((_KEY,), key)
        return key


def writes_lines(by: Author) -> bool:
    """Whether lines that this author adds to a file count as written by agentd."""
    return by.kind not in _OTHERS


def added_lines(old: bytes | None, new: bytes | None, by: Author) -> list[bytes]:
    """Return the lines of `new` that are not in `old`, if they count as written by agentd: none for
    a change made by hand, a restore, the archive, or the writer of `memory/facts.md`, whose lines
    the facts themselves account for and which may be long.
    """
    if not writes_lines(by):
        return []
    old, new = old or b"", new or b""
    if old.endswith(b"\n") and new.startswith(old) and new.count(b"\n", len(old)) < _FEW:
        return [line for line in lines_of(new[len(old) :]) if not _has_line(old, line.strip())]
    before = {line.strip() for line in lines_of(old)}
    return [line for line in lines_of(new) if line.strip() not in before]


def lines_of(text: bytes) -> list[bytes]:
    """Split a text into lines, at line feeds only. All code that asks for the author of a line
    counts lines in this way.
    """
    lines = text.split(b"\n")
    return lines if lines[-1] else lines[:-1]


class _Marks:
    """Concatenated marks that can be searched without splitting them."""

    def __init__(self, marks: bytes) -> None:
        self._marks = marks

    def __contains__(self, mark: bytes) -> bool:
        at = self._marks.find(mark)
        while at % _SIZE and at >= 0:  # a match that spans two neighbouring marks does not count
            at = self._marks.find(mark, at + 1)
        return at >= 0


def _apart(marks: bytes) -> Iterator[bytes]:
    return (marks[start : start + _SIZE] for start in range(0, len(marks), _SIZE))


def _has_line(text: bytes, bare: bytes) -> bool:
    """Whether `text` has a line that equals `bare`, apart from space around the line."""
    at = text.find(bare)
    while 0 <= at < len(text):
        end = text.find(b"\n", at + len(bare))
        if text[text.rfind(b"\n", 0, at) + 1 : end].strip() == bare:
            return True
        at = text.find(bare, end + 1)
    return False


def _mark(key: bytes, line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=_SIZE, key=key).digest()
