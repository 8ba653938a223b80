"""Notes cut into chunks with exact line numbers. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.search import Chunk, Source
from agentd.core.times import date_in
from agentd.core.workspace import FACTS_PATH
from agentd.memory.index.chunking import fact_lines, lines, paragraphs, tokens, words
from agentd.memory.index.chunking.paragraphs import HeadingStanding
from agentd.memory.index.chunking.piece import Lines, Piece
from agentd.memory.settings import IndexSettings

BOILERPLATE = 0.1  # importance of a piece whose lines all stood in the file as it was shipped

Cut = tuple[Sequence[Piece], HeadingStanding | None]

_FORMAT = "1"  # raise to have every note cut again


class Chunker(Struct, frozen=True):
    """A way of cutting notes. `identity` names it with its parameters; notes that were cut under
    another identity are cut again.
    """

    identity: str
    pieces: Callable[[Lines], Iterator[Piece]]
    growing: Callable[[Lines, HeadingStanding | None], Cut] | None = None
    is_by_line: bool = False  # the pieces of a line depend on that line alone

    def cut(self, lines: Lines, above: HeadingStanding | None) -> Cut:
        """Return what `paragraphs.cut` returns; all pieces and None if this chunker cannot
        resume.
        """
        return self.growing(lines, above) if self.growing else (list(self.pieces(lines)), None)


def chunker_of(settings: IndexSettings) -> Chunker:
    """Return the chunker that the settings name."""
    growing: Callable[[Lines, HeadingStanding | None], Cut] | None = None
    size, overlap = settings.chunk_size, settings.chunk_overlap
    match settings.chunker:
        case "tokens":
            most, share = size or tokens.TOKENS, tokens.OVERLAP if overlap is None else overlap
            cut = partial(tokens.pieces, most=most, overlap=share)
        case "words":
            most, share = size or words.WORDS, words.OVERLAP if overlap is None else overlap
            cut = partial(words.pieces, most=most, overlap=share)
        case "lines":
            most, share = size or lines.LINES, 0
            cut = partial(lines.pieces, most=most)
        case _:
            most, share = size or paragraphs.TOKENS, 0
            cut = partial(paragraphs.pieces, most=most)
            growing = partial(paragraphs.cut, most=most)
    return Chunker(f"{settings.chunker}-{_FORMAT}-{most}-{share:g}", cut, growing)


PARAGRAPHS = chunker_of(IndexSettings())
FACTS = Chunker(
    f"facts-{_FORMAT}", fact_lines.pieces, lambda lines, _: fact_lines.cut(lines), is_by_line=True
)


def chunker_for(path: str, usual: Chunker = PARAGRAPHS) -> Chunker:
    """Return the chunker for this path: the one for the page of facts, or `usual`."""
    return FACTS if path == FACTS_PATH else usual


def without_boilerplate(chunker: Chunker, shipped: frozenset[str]) -> Chunker:
    """Return a chunker for a file that was shipped with the lines `shipped`: pieces with no other
    lines get at most the importance BOILERPLATE.
    """

    def pieces(lines: Lines) -> Iterator[Piece]:
        for piece in chunker.pieces(lines):
            said = (line.strip() for line in piece.text.split("\n"))
            is_shipped = all(not line or line in shipped for line in said)
            most = BOILERPLATE if is_shipped else piece.importance
            yield replace(piece, importance=min(piece.importance, most))

    mark = hashlib.blake2b("\n".join(sorted(shipped)).encode(), digest_size=4).hexdigest()
    return Chunker(f"{chunker.identity}-less-{mark}", pieces)


def chunks_of_note(
    path: str, text: str, *, scope: str, chunker: Chunker = PARAGRAPHS, day: date | None = None
) -> tuple[Chunk, ...]:
    """Return the chunks of a markdown file, without those that are blank. A chunk's day is that of
    the heading above it, else of the path, else `day`. The page of facts is cut by its own chunker.
    """
    pieces = chunker_for(path, chunker).pieces(lines_of(text))
    return chunks_of(path, pieces, scope=scope, day=day)


def lines_of(text: str) -> Lines:
    """Split the text of a file into lines."""
    return Lines(text.removesuffix("\n").split("\n"))


def chunks_of(
    path: str, pieces: Iterable[Piece], *, scope: str, day: date | None = None, above: int = 0
) -> tuple[Chunk, ...]:
    """Return the pieces of a file as chunks; the first line of the pieces has `above` lines of the
    file before it.
    """
    day = date_in(path) or day
    return tuple(
        Chunk(
            path,
            above + piece.first + 1,
            above + piece.end,
            piece.text,
            Source.NOTES,
            scope,
            piece.day or day,
            piece.speaker,
            piece.context,
            piece.importance,
        )
        for piece in pieces
        if piece.text.strip()
    )
