"""Notes that only grew, cut from where they grew: what a line added to a note costs does not depend on
the lines above it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from agentd.domain.memory import Chunk
from agentd.domain.workspace import FileView
from agentd.memory.chunkers.paragraphs import Standing
from agentd.memory.chunks import Chunker, chunks_of, lines_of

_MOST = 64  # notes, those changed last


@dataclass(frozen=True, slots=True)
class Way:
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
    way: Way
    begin: int
    above: int
    proven: int
    digest: bytes
    standing: Standing


class Growing:
    """Remembers where notes can be cut on."""

    def __init__(self) -> None:
        self._marks: OrderedDict[str, _Mark] = OrderedDict()

    def cut(self, view: FileView, way: Way, indexed: str, becomes: str) -> Part:
        """What of a note is to be indexed anew, where the index holds what stands in its state `indexed`,
        "" for none, and will hold its state `becomes`.
        """
        mark = self._marks.pop(view.path, None)
        if mark and not (mark.indexed == indexed and mark.way == way and _goes_on(view.text, mark)):
            mark = None
        begin, above = (mark.begin, mark.above) if mark else (0, 0)
        lines = lines_of(view.text[begin:])
        pieces, standing = way.chunker.cut(lines, mark.standing if mark else None)
        if mark and not pieces:
            return self.cut(view, way, indexed, becomes)  # the whole of it
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


def _goes_on(text: str, mark: _Mark) -> bool:
    """Whether a note still begins as it did, down to the end of a line."""
    ends = len(text) == mark.proven or text[mark.proven : mark.proven + 1] == "\n"
    return ends and _digest(text, mark.proven) == mark.digest


def _digest(text: str, size: int) -> bytes:
    return hashlib.sha256(text[:size].encode(errors="surrogatepass")).digest()
