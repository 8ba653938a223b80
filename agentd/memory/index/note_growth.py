"""Notes that only grew, cut from where they grew: a new line costs the same in any note."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from agentd.core.search import Chunk, Patch
from agentd.core.workspace import FileView
from agentd.memory.index.chunking.paragraphs import HeadingStanding
from agentd.memory.index.chunking.piece import Lines
from agentd.memory.index.chunks import (
    Chunker,
    chunks_of,
    lines_of,
)

_MOST = 64  # notes, those changed last
_MARK = 8  # bytes that stand for a line
_FAR = 64  # lines within which what is the same again is looked for
_TOLD = 3  # lines by which it is known


@dataclass(frozen=True, slots=True)
class NoteWay:
    """How a note is cut. Another one makes all of its chunks others."""

    chunker: Chunker
    scope: str
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The chunks of a note that begin at the line `since`, from 1, or later. All before it are as they
    were.
    """

    since: int
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a note can be cut on: behind so many characters and lines, as long as it begins with the
    `proven` characters that have this digest.
    """

    indexed: str  # what it was when it was cut so far
    way: NoteWay
    begin: int
    above: int
    proven: int
    digest: bytes
    standing: HeadingStanding


class Growing:
    """Remembers where notes can be cut on."""

    def __init__(self) -> None:
        self._marks: OrderedDict[str, _Mark] = OrderedDict()
        self._lines: dict[str, _LineMarks] = {}  # of the files whose lines stand for themselves

    def cut(
        self, view: FileView, way: NoteWay, indexed: str, becomes: str
    ) -> Part | Sequence[Patch[Chunk]]:
        """What of a note is to be indexed anew, where the index holds what stands in its state `indexed`,
        "" for none, and will hold its state `becomes`.
        """
        if way.chunker.is_by_line:
            before = self._lines.pop(view.path, None)
            now = self._lines[view.path] = _LineMarks.of(view, way, becomes)
            if before and before.indexed == indexed and before.way == way:
                return list(_patches(view, way, before.marks, now.marks))
        return self._grown(view, way, indexed, becomes)

    def remember(self, view: FileView, way: NoteWay, indexed: str) -> None:
        """The index holds this note, whose lines stand for themselves, in the state `indexed`."""
        self._lines[view.path] = _LineMarks.of(view, way, indexed)

    def _grown(self, view: FileView, way: NoteWay, indexed: str, becomes: str) -> Part:
        mark = self._marks.pop(view.path, None)
        if mark and not (mark.indexed == indexed and mark.way == way and _goes_on(view.text, mark)):
            mark = None
        begin, above = (mark.begin, mark.above) if mark else (0, 0)
        lines = lines_of(view.text[begin:])
        pieces, standing = way.chunker.cut(lines, mark.standing if mark else None)
        if mark and not pieces:
            return self._grown(view, way, indexed, becomes)  # the whole of it
        if standing is not None:
            first, _ = lines.span(standing.line, standing.line + 1)
            _, end = lines.span(standing.upto, standing.upto + 1)
            digest = _digest(view.text, begin + end)
            line = above + standing.line
            mark = _Mark(becomes, way, begin + first, line, begin + end, digest, standing)
        if mark is not None:
            self._keep(view.path, replace(mark, indexed=becomes))
        chunks = chunks_of(view.path, pieces, scope=way.scope, day=way.day, above=above)
        return Part(above + 1, chunks)

    def _keep(self, path: str, mark: _Mark) -> None:
        self._marks[path] = mark
        if len(self._marks) > _MOST:
            self._marks.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _LineMarks:
    """The lines of a note as numbers of `_MARK` bytes each, when it was in the state `indexed`."""

    indexed: str
    way: NoteWay
    marks: bytes

    @classmethod
    def of(cls, view: FileView, way: NoteWay, indexed: str) -> _LineMarks:
        """Those of a note."""
        return cls(indexed, way, array("q", map(hash, lines_of(view.text).lines)).tobytes())


def _patches(view: FileView, way: NoteWay, old: bytes, new: bytes) -> Iterator[Patch[Chunk]]:
    """What of a note's lines is not what it was."""
    lines = lines_of(view.text).lines
    for first, end, start, stop in differing(old, new):
        pieces = way.chunker.pieces(Lines(lines[start:stop]))
        chunks = chunks_of(view.path, pieces, scope=way.scope, day=way.day, above=start)
        yield Patch(first + 1, end + 1, stop - start, chunks)


def differing(old: bytes, new: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Where lines are others, as runs of lines of the old and of the new: the beginning and the end of
    either, counted from 0. All between them is the same.
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
    """How many bytes are the same from there on."""
    least, size = 0, min(len(old) - i, len(new) - j)
    while least < size:  # a half is compared at once
        half = (least + size + 2 * _MARK - 1) // (2 * _MARK) * _MARK
        if old[i + least : i + half] == new[j + least : j + half]:
            least = half
        else:
            size = half - _MARK
    return least


def _meeting(old: bytes, new: bytes, i: int, j: int) -> tuple[int, int]:
    """Where they are the same again: not far away, or nowhere."""
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
    """Whether a note still begins as it did, down to the end of a line."""
    ends = len(text) == mark.proven or text[mark.proven : mark.proven + 1] == "\n"
    return ends and _digest(text, mark.proven) == mark.digest


def _digest(text: str, size: int) -> bytes:
    return hashlib.sha256(text[:size].encode(errors="surrogatepass")).digest()
