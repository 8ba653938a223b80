"""Cuts notes again only where they have changed: an appended line costs the same in any note."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.search import Chunk, LinePatch
from agentd.core.workspace import FileView
from agentd.memory.index.chunking.paragraphs import HeadingStanding
from agentd.memory.index.chunking.piece import Lines
from agentd.memory.index.chunks import (
    Chunker,
    chunks_of,
    lines_of,
)

_MOST = 64  # notes remembered, the most recently changed ones
_MARK = 8  # bytes of a line's hash
_FAR = 64  # lines within which equal lines are searched after a difference
_TOLD = 3  # equal lines in a row that end a difference


class NoteCutting(Struct, frozen=True):
    """How a note is cut. A change of any field changes all chunks of the note."""

    chunker: Chunker
    scope: str
    day: date | None = None


class NoteTail(Struct, frozen=True):
    """The chunks of a note that begin at line `since` (from 1) or later. Everything before that
    line is unchanged.
    """

    since: int
    chunks: Sequence[Chunk]


class _Mark(Struct, frozen=True):
    """A place from which a note can be cut on: after `begin` characters and `above` lines, as long
    as the note still begins with the `proven` characters that have this digest.
    """

    indexed: str  # the indexed state in which it was cut up to here
    way: NoteCutting
    begin: int
    above: int
    proven: int
    digest: bytes
    standing: HeadingStanding


class CutPoints:
    """Remembers from where notes can be cut on."""

    def __init__(self) -> None:
        self._marks: OrderedDict[str, _Mark] = OrderedDict()
        self._lines: dict[str, _LineMarks] = {}  # of files that are cut line by line

    def cut(
        self, view: FileView, way: NoteCutting, indexed: str, becomes: str
    ) -> NoteTail | Sequence[LinePatch[Chunk]]:
        """Return what has to be indexed anew of a note, given that the index holds its state
        `indexed` ("" for none) and will hold its state `becomes`: patches for a note that is cut
        line by line and was seen before, else a NoteTail.
        """
        if way.chunker.is_by_line:
            before = self._lines.pop(view.path, None)
            now = self._lines[view.path] = _LineMarks.of(view, way, becomes)
            if before and before.indexed == indexed and before.way == way:
                return list(_patches(view, way, before.marks, now.marks))
        return self._grown(view, way, indexed, becomes)

    def remember(self, view: FileView, way: NoteCutting, indexed: str) -> None:
        """Record that the index holds this note, which is cut line by line, in the state
        `indexed`.
        """
        held = self._lines.get(view.path)
        if held is None or (held.indexed, held.way) != (indexed, way):
            self._lines[view.path] = _LineMarks.of(view, way, indexed)

    def _grown(self, view: FileView, way: NoteCutting, indexed: str, becomes: str) -> NoteTail:
        mark = self._marks.pop(view.path, None)
        if mark and not (mark.indexed == indexed and mark.way == way and _goes_on(view.text, mark)):
            mark = None
        begin, above = (mark.begin, mark.above) if mark else (0, 0)
        lines = lines_of(view.text[begin:])
        pieces, standing = way.chunker.cut(lines, mark.standing if mark else None)
        if mark and not pieces:
            return self._grown(view, way, indexed, becomes)  # cut the whole note
        if standing is not None:
            first, _ = lines.span(standing.line, standing.line + 1)
            _, end = lines.span(standing.upto, standing.upto + 1)
            digest = _digest(view.text, begin + end)
            line = above + standing.line
            mark = _Mark(becomes, way, begin + first, line, begin + end, digest, standing)
        if mark is not None:
            self._keep(view.path, replace(mark, indexed=becomes))
        chunks = chunks_of(view.path, pieces, scope=way.scope, day=way.day, above=above)
        return NoteTail(above + 1, chunks)

    def _keep(self, path: str, mark: _Mark) -> None:
        self._marks[path] = mark
        if len(self._marks) > _MOST:
            self._marks.popitem(last=False)


class _LineMarks(Struct, frozen=True):
    """The lines of a note in the state `indexed`, each as a hash of `_MARK` bytes."""

    indexed: str
    way: NoteCutting
    marks: bytes

    @classmethod
    def of(cls, view: FileView, way: NoteCutting, indexed: str) -> _LineMarks:
        """Return the line hashes of a note."""
        return cls(indexed, way, array("q", map(hash, lines_of(view.text).lines)).tobytes())


def _patches(
    view: FileView, way: NoteCutting, old: bytes, new: bytes
) -> Iterator[LinePatch[Chunk]]:
    """Yield a patch for each run of changed lines."""
    lines = lines_of(view.text).lines
    for first, end, start, stop in differing(old, new):
        pieces = way.chunker.pieces(Lines(lines[start:stop]))
        chunks = chunks_of(view.path, pieces, scope=way.scope, day=way.day, above=start)
        yield LinePatch(first + 1, end + 1, stop - start, chunks)


def differing(old: bytes, new: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the differing runs of lines as (old start, old end, new start, new end), counted from
    0, ends excluded. All lines between the runs are equal.
    """
    i = j = 0
    while True:
        same = _same(old, new, i, j)
        i, j = i + same, j + same
        if i == len(old) and j == len(new):
            return
        end, stop = _meeting(old, new, i, j)
        yield i // _MARK, end // _MARK, j // _MARK, stop // _MARK
        i, j = end, stop


def _same(old: bytes, new: bytes, i: int, j: int) -> int:
    """Return how many bytes are equal from these offsets on."""
    least, size = 0, min(len(old) - i, len(new) - j)
    while least < size:  # binary search
        half = (least + size + 2 * _MARK - 1) // (2 * _MARK) * _MARK
        if old[i + least : i + half] == new[j + least : j + half]:
            least = half
        else:
            size = half - _MARK
    return least


def _meeting(old: bytes, new: bytes, i: int, j: int) -> tuple[int, int]:
    """Return the offsets at which both are equal again, if they are near; else both ends."""
    for apart in range(_MARK, _FAR * _MARK, _MARK):
        for further in range(0, apart + 1, _MARK):
            end, stop = i + further, j + apart - further
            if end > len(old) or stop > len(new):
                continue
            told = old[end : end + _TOLD * _MARK]
            if told == new[stop : stop + _TOLD * _MARK]:
                return end, stop
    return len(old), len(new)


def _goes_on(text: str, mark: _Mark) -> bool:
    """Whether a note still begins with the text of the mark, up to a line end."""
    ends = len(text) == mark.proven or text[mark.proven : mark.proven + 1] == "\n"
    return ends and _digest(text, mark.proven) == mark.digest


def _digest(text: str, size: int) -> bytes:
    return hashlib.sha256(text[:size].encode(errors="surrogatepass")).digest()
