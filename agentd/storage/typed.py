"""What was typed in chats: a file beside the databases that chats write and the daemon erases.

It does not say in which session something was typed. An entry is a line `# ` with the time, and the
lines of the words, each behind a `+`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from agentd.domain.erasure import Needles
from agentd.errors import StorageError

_ENTRY = re.compile(rb"^# (.*)$", re.MULTILINE)
_START = re.compile(rb"^\n?(?=# )", re.MULTILINE)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_MARK = "+"
_PART = (".agentd-", ".tmp")


class TypedWords:
    """The file at `path`; a missing one is empty."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def erase(self) -> None:
        """Forget all of it. Raises StorageError."""
        await asyncio.to_thread(self._erase)

    async def erase_before(self, moment: datetime) -> None:
        """Forget what was typed before then. Raises StorageError."""
        await asyncio.to_thread(self._erase_before, moment)

    async def erase_words(self, needles: Needles) -> int:
        """Forget the lines that say it, and with the last one the entry; returns how many entries
        had some. Raises StorageError.
        """
        return await asyncio.to_thread(self._erase_words, needles)

    def _erase(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from error

    def _erase_before(self, moment: datetime) -> None:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._refused(error) from error
        entries = [(_time(found[1]), found.start()) for found in _ENTRY.finditer(text)]
        if not any(at and at < moment for at, _ in entries):
            return
        # In the order in which it was typed: all before the first that is young enough.
        start = next((start for at, start in entries if at and at >= moment), len(text))
        try:
            self._replace(text[start:])
        except OSError as error:
            raise self._refused(error) from error

    def _erase_words(self, needles: Needles) -> int:
        try:
            text = self._path.read_bytes()
            starts = [0, *(found.start() for found in _START.finditer(text)), len(text)]
            old = [text[start:end] for start, end in pairwise(starts)]
            new = [_without(entry, needles) for entry in old]
            if new != old:
                self._replace(b"".join(new))
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._refused(error) from error
        return sum(one != other for one, other in zip(old, new, strict=True))

    def _replace(self, text: bytes) -> None:
        descriptor, part = tempfile.mkstemp(_PART[1], _PART[0], self._path.parent)  # 0600
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        Path(part).replace(self._path)

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(
            f"what was typed in chats cannot be erased ({error.strerror})",
            cure=f"delete {self._path}",
        )


def _without(entry: bytes, needles: Needles) -> bytes:
    """The entry without the lines that say it; nothing when no words are left."""
    lines = [line.decode("utf-8", "surrogateescape") for line in _LINE.findall(entry)]
    typed = [line for line in lines if line.startswith(_MARK)]
    words = "".join(line.removeprefix(_MARK) for line in typed)
    spans = needles.spans(words)
    if not spans:
        return entry
    kept, end = [], 0
    for line in typed:
        start, end = end, end + len(line) - len(_MARK)
        if not any(first < end and start < last for first, last in spans):
            kept.append(line)
    rest = [line for line in lines if not line.startswith(_MARK)]
    return "".join([*rest, *kept]).encode("utf-8", "surrogateescape") if kept else b""


def _time(text: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(text.decode("ascii").strip()).astimezone()
    except ValueError:
        return None
