"""Masking words in the user's files, as far as agentd wrote them, and in what is kept of them."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from agentd.domain.erasure import MASK, Needles
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import Reader, is_graph_text
from agentd.workspace.changes import MAX_READ_BYTES
from agentd.workspace.files import Files
from agentd.workspace.finishing import to_the_end
from agentd.workspace.folder import Folder
from agentd.workspace.refusals import translated
from agentd.workspace.versions import Versions, home_of

_OWNER = Reader(MAIN, Kind.MAIN)
_DEPTH = 64


class NoteEraser:
    """The Eraser of the files below `root`: what agentd wrote there is masked, the user's own lines stay
    as they are. Files of `apart` and the graph's text have other owners. It comes before the eraser of
    versions.
    """

    def __init__(
        self, files: Files, root: Path, versions_dir: Path, apart: frozenset[str] = frozenset()
    ) -> None:
        self._files = files
        self._folder = Folder(root)
        self._versions = Versions(versions_dir)
        self._apart = apart

    @property
    def name(self) -> str:
        """See Eraser."""
        return "notes"

    async def erase(self, needles: Needles) -> int:
        """See Eraser; counts lines. Raises WorkspaceError."""
        count = 0
        for path in await self._paths():
            with translated(path):
                if not await asyncio.to_thread(self._find, path, needles):
                    continue
                async with self._files.lock(path):
                    try:
                        count += await to_the_end(partial(self._mask, path, needles))
                    finally:
                        self._files.count_write(path)
        return count

    async def kept(self, needles: Needles) -> tuple[str, ...]:
        """The lines that still say it, as `path:line`: the user wrote them, or they cannot be written.
        Raises WorkspaceError.
        """
        found: list[str] = []
        for path in await self._paths():
            with translated(path):
                lines = await asyncio.to_thread(self._find, path, needles)
            found += [f"{path}:{line + 1}" for line in lines]
        return tuple(found)

    async def _paths(self) -> list[str]:
        entries = await self._files.tree("", _DEPTH, _OWNER)
        return [
            entry.path
            for entry in entries
            if not entry.is_dir
            and not entry.path.startswith("@")
            and entry.size <= MAX_READ_BYTES
            and entry.path not in self._apart
            and not is_graph_text(entry.path)
        ]

    def _find(self, path: str, needles: Needles) -> list[int]:
        """The lines that say it, from 0 on."""
        try:
            data = self._folder.read(path.split("/"), MAX_READ_BYTES)
        except FileNotFoundError:
            return []
        text = _decoded(data)
        starts = _starts(text)
        return sorted({n for span in needles.spans(text) for n in _lines_of(span, starts)})

    def _mask(self, path: str, needles: Needles) -> int:
        """Mask the sentences that stand in agentd's lines alone; returns how many."""
        parts = path.split("/")
        old = self._folder.read_for_change(parts, MAX_READ_BYTES)
        text = _decoded(old or b"")
        starts = _starts(text)
        lines = [_encoded(line) for line in _lines(text)]
        own = self._versions.own(path, lines)
        spans = [
            span for span in needles.spans(text) if all(own[n] for n in _lines_of(span, starts))
        ]
        if spans:
            self._folder.replace(parts, _encoded(_without(text, spans)))
        return len(spans)


class VersionEraser:
    """The Eraser of what files were: whoever wrote a line, it is masked there."""

    def __init__(self, files: Files, versions_dir: Path) -> None:
        self._files = files
        self._versions = Versions(versions_dir)

    @property
    def name(self) -> str:
        """See Eraser."""
        return "versions"

    async def erase(self, needles: Needles) -> int:
        """See Eraser; counts versions. Raises WorkspaceError."""
        change = partial(_masked, needles)
        count = 0
        with translated("the versions of files"):
            homes = await asyncio.to_thread(self._versions.homes)
            entries = await self._files.tree("", _DEPTH, _OWNER) if homes else ()
            paths = {home_of(entry.path): entry.path for entry in entries}
            for home, path in homes.items():
                # Of a file that is neither known by name nor there nobody makes a version.
                async with self._files.lock(path or paths.get(home, home)):
                    count += await to_the_end(partial(self._versions.rewrite, home, change))
        return count


def _masked(needles: Needles, data: bytes) -> bytes:
    return _encoded(needles.masked(_decoded(data)))


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], MASK]
        done = end
    return "".join(pieces) + text[done:]


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _starts(text: str) -> list[int]:
    """Where the lines begin, and the end of the text."""
    return list(accumulate((len(line) + 1 for line in _lines(text)), initial=0))


def _lines_of(span: tuple[int, int], starts: Sequence[int]) -> range:
    first = bisect_right(starts, span[0]) - 1
    return range(first, bisect_right(starts, span[1] - 1))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
