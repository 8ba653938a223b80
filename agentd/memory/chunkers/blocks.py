"""Markdown lines as blocks: headings, paragraphs, list entries with what is indented below them,
quotes, tables, code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

_HEADING = re.compile(r"(#{1,6})(?:\s+(.*)|\s*)$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ENTRY = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s+\S|\s*$)")
_FRONT = 60  # lines within which what stands at the head of a file ends
_WORDS = re.compile(r"\w")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]*_]*\s*$")


class Shape(StrEnum):
    """What a block is."""

    HEADING = "heading"
    TEXT = "text"
    ENTRY = "entry"
    QUOTE = "quote"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines from `first` up to but not including `end`, none of the outer ones blank."""

    shape: Shape
    first: int
    end: int
    level: int = 0  # of a heading
    title: str = ""


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The blocks of a file in order; every line that is not blank is in one."""
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        block = _block(lines, at)
        yield from _statements(lines, block) if block.shape is Shape.TEXT else (block,)
        at = block.end


def is_bare(line: str) -> bool:
    """Whether a line has no letter and no figure: a rule, a lone mark."""
    return not _WORDS.search(line)


def may_begin_anew(lines: Sequence[str]) -> bool:
    """Whether a line added to the file may end what stands at its head, and so change all of it."""
    is_short = len(lines) < _FRONT
    return is_short and lines[0].rstrip() == "---" and not _after_front(lines)


def _block(lines: Sequence[str], at: int) -> Block:
    line = lines[at]
    if heading := _HEADING.match(line):
        return Block(Shape.HEADING, at, at + 1, len(heading[1]), _title(heading[2] or ""))
    if fence := _FENCE.match(line):
        return Block(Shape.CODE, at, _after_fence(lines, at, fence[1]))
    if at == 0 and line.rstrip() == "---" and (end := _after_front(lines)):
        return Block(Shape.CODE, at, end)
    if entry := _ENTRY.match(line):
        return Block(Shape.ENTRY, at, _after_entry(lines, at, len(entry[1])))
    shape = _shape(line)
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _begins(lines[end], shape):
        end += 1
    return Block(shape, at, end)


def _statements(lines: Sequence[str], block: Block) -> Iterator[Block]:
    """A paragraph whose lines end where a sentence does, rather than where the page did, is as many
    blocks.
    """
    first = block.first
    if _is_ragged(lines[block.first : block.end]):
        for n in range(block.first, block.end - 1):
            if _SENTENCE_END.search(lines[n]) and not lines[n + 1].lstrip()[:1].islower():
                yield Block(Shape.TEXT, first, n + 1)
                first = n + 1
    yield Block(Shape.TEXT, first, block.end)


def _is_ragged(lines: Sequence[str]) -> bool:
    """Whether at most line ends the next word would still have fitted."""
    width = max(map(len, lines))
    fitting = sum(
        len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) <= width
        for line, after in pairwise(lines)
    )
    return 2 * fitting >= len(lines) - 1


def _shape(line: str) -> Shape:
    start = line.lstrip()[:1]
    return {">": Shape.QUOTE, "|": Shape.TABLE}.get(start, Shape.TEXT)


def _begins(line: str, shape: Shape) -> bool:
    """Whether a line begins another block than the one of this shape before it."""
    other = _shape(line) is not shape
    return other or any(mark.match(line) for mark in (_HEADING, _FENCE, _ENTRY))


def _title(words: str) -> str:
    """What a heading says, without the marks that may end it."""
    words = words.strip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare[-1:].isspace() else words


def _after_fence(lines: Sequence[str], at: int, mark: str) -> int:
    close = re.compile(rf"\s{{0,3}}{re.escape(mark)}{re.escape(mark[0])}*\s*$")
    ends = (n + 1 for n in range(at + 1, len(lines)) if close.match(lines[n]))
    return next(ends, len(lines))


def _after_front(lines: Sequence[str]) -> int:
    ends = (n + 1 for n in range(1, min(len(lines), _FRONT)) if lines[n].rstrip() == "---")
    return next(ends, 0)


def _after_entry(lines: Sequence[str], at: int, indent: int) -> int:
    """The entry goes on while lines are indented deeper, over blank lines too, and with the lines of
    plain text right below it.
    """
    end = at + 1
    n = at + 1
    while n < len(lines):
        line = lines[n]
        if not line.strip():
            n += 1
            continue
        deeper = len(line) - len(line.lstrip()) > indent
        lazy = n == end and not _begins(line, Shape.TEXT) and not is_bare(line)
        if not (deeper or lazy):
            break
        n += 1
        end = n
    return end
