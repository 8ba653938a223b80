"""The history of what was typed in chats: a file that chats write and the daemon erases from.

Both hold the lock of the file's folder while they write. An entry is a line `# TIME SESSION`, then
the typed lines, each behind a `+`. Entries of earlier versions name no session.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from agentd.core.erasure import Erasure, StoredText, mask_spans
from agentd.core.errors import StorageError
from agentd.core.paths import part_of, write_private
from agentd.core.ports import TextFilter
from agentd.core.turn import SessionKey
from agentd.storage.lock import folder_lock

_ENTRY = re.compile(rb"^# (\S+ \S+)(?: (.*))?$", re.MULTILINE)
_START = re.compile(rb"^\n?# ", re.MULTILINE)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_MARK = "+"
_WHERE = "chat_history:"  # prefix of `StoredText.where`, before the time of an entry


class TypedHistory:
    """The chat history at `path`, as Eraser and SearchableTexts; a missing file is empty."""

    name = "chat history"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def erase(self, session: SessionKey) -> None:
        """Delete the entries of a session, and those without a session, which may belong to it.
        Raises StorageError.
        """
        await asyncio.to_thread(self._erase, session)

    async def erase_before(self, moment: datetime) -> None:
        """Delete the entries typed before `moment`. Raises StorageError."""
        await asyncio.to_thread(self._erase_before, moment)

    async def erase_words(self, erasure: Erasure) -> int:
        """Mask the words; return how many entries contained any. Raises StorageError."""
        return await asyncio.to_thread(self._erase_words, erasure)

    async def texts(self, _: TextFilter | None = None) -> AsyncIterator[Sequence[StoredText]]:
        """See SearchableTexts. Yields all entries, wanted or not: they are few. Raises
        StorageError.
        """
        entries = await asyncio.to_thread(self._all)
        yield [
            StoredText(f"{_WHERE}{at}", words, _time(at.encode()), by_user=True)
            for entry in entries
            for at, words in (_split_entry(entry),)
            if words
        ]

    def _all(self) -> list[bytes]:
        try:
            return self._entries()
        except OSError as error:
            raise self._refused(error) from error

    def _erase(self, session: SessionKey) -> None:
        with self._alone():
            old = self._entries()
            left = [entry for entry in old if _session(entry) not in {"", session}]
            if left != old:
                self._replace(b"".join(left), keep=bool(left))

    def _erase_before(self, moment: datetime) -> None:
        with self._alone():
            text = self._read()
            entries = [(_time(found[1]), found.start()) for found in _ENTRY.finditer(text)]
            if any(at and at < moment for at, _ in entries):
                self._replace(_since(text, entries, moment))

    def _erase_words(self, erasure: Erasure) -> int:
        with self._alone():
            old = self._entries()
            new = [_mask(entry, erasure) for entry in old]
            if new != old:
                self._replace(b"".join(new))
        return sum(one != other for one, other in zip(old, new, strict=True))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep chats from writing until the block ends, and delete the temporary file of an earlier
        write that was cut short. An OSError of the block becomes StorageError.
        """
        if not self._path.parent.is_dir():
            yield
            return
        try:
            with folder_lock(self._path.parent):
                part_of(self._path).unlink(missing_ok=True)
                yield
        except OSError as error:
            raise self._refused(error) from error

    def _entries(self) -> list[bytes]:
        """Return the file, split before each entry. Raises OSError."""
        text = self._read()
        starts = [0, *(found.start() for found in _START.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(starts) if start < end]

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def _replace(self, text: bytes, *, keep: bool = True) -> None:
        if keep:
            write_private(self._path, text)
        else:
            self._path.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(
            f"what was typed in chats cannot be erased ({error.strerror})",
            cure=f"delete {self._path}",
        )


def _split_entry(entry: bytes) -> tuple[str, str]:
    """Return an entry's time, as written in it, and its words."""
    found = _ENTRY.search(entry)
    at = _decode(found[1]) if found else ""
    lines = _decode(entry).split("\n")
    typed = (line.removeprefix(_MARK) for line in lines if line.startswith(_MARK))
    return at, "\n".join(typed)


def _session(entry: bytes) -> str:
    """Return an entry's session; "" if it names none."""
    found = _ENTRY.search(entry)
    return _decode(found[2] or b"") if found else ""


def _mask(entry: bytes, erasure: Erasure) -> bytes:
    """Return the entry with the words masked; its other lines stay as they are."""
    at, words = _split_entry(entry)
    spans = erasure.found(words, f"{_WHERE}{at}", begins=0)
    if not spans:
        return entry
    rest = [line for line in _LINE.findall(entry) if not line.startswith(_MARK.encode())]
    typed = (f"{_MARK}{line}\n" for line in mask_spans(words, spans).split("\n"))
    return b"".join(rest) + "".join(typed).encode("utf-8", "surrogateescape")


def _decode(entry: bytes) -> str:
    return entry.decode("utf-8", "surrogateescape")


def _since(text: bytes, entries: Sequence[tuple[datetime | None, int]], moment: datetime) -> bytes:
    """Return the text without the entries older than `moment`; `entries` are their times and
    offsets. Each entry is judged by its own time: one typed while the clock was ahead keeps no
    other. An entry without a time counts as old as the next one that has a time; at the end of the
    file it goes only if no entry is young enough.
    """
    ends = [*(start for _, start in entries[1:]), len(text)]
    kept: list[bytes] = []
    is_old = not any(at and at >= moment for at, _ in entries)
    for (at, start), end in reversed(tuple(zip(entries, ends, strict=True))):
        is_old = at < moment if at else is_old
        kept += [] if is_old else [text[start:end]]
    return b"".join(reversed(kept))


def _time(text: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(text.decode("ascii").strip()).astimezone()
    except ValueError:
        return None
