"""Bytes in a database's file that belong to nothing that is stored, blanked where they lie.

SQLite's secure_delete blanks what a deletion frees, but not the copies that a rearrangement of pages leaves
between the cells and their pointers. A page says itself which of its bytes are used, so every other one
can be made zero without SQLite, which never reads it: no log is needed for that, and a crash in the middle
leaves a sound file.

It takes a descriptor that was open before SQLite's own and is closed after it: closing any descriptor of the
file drops the locks of the process. The caller holds the write lock, and nothing is in the log.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agentd.domain.spans import Span

_PART = 1 << 20  # bytes that are read at once; a multiple of every page size
_HEADER = 100  # bytes of the file's own, on page 1
_PAGE_SIZE, _RESERVED, _FREE, _AUTO_VACUUM = 16, 20, 32, 52  # where they stand there
_INNER, _LEAF = frozenset({2, 5}), frozenset({10, 13})
_TREE = struct.Struct(">BHHH")  # kind, first free block, number of cells, where the cells begin
_PAIR = struct.Struct(">HH")
_WORDS = struct.Struct(">II")
_MOST_PAGES = (
    1 << 24
)  # of a larger file a chain's next page may look like the kind of a tree's page


class NotPlainError(Exception):
    """The file is not of the simple kind that is understood here."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the header of the file says."""

    page_size: int
    usable: int  # bytes of a page
    first_free: int
    free: int  # pages that hold nothing
    count: int

    @classmethod
    def of(cls, descriptor: int) -> Shape:
        """That of a file. Raises NotPlainError, OSError."""
        head = os.pread(descriptor, _HEADER, 0)
        size = os.fstat(descriptor).st_size
        if len(head) < _HEADER:
            raise NotPlainError("there is no header")
        (page_size,) = struct.unpack_from(">H", head, _PAGE_SIZE)
        page_size = 1 << 16 if page_size == 1 else page_size
        first_free, free = _WORDS.unpack_from(head, _FREE)
        (auto_vacuum,) = struct.unpack_from(">I", head, _AUTO_VACUUM)
        if page_size < 512 or page_size & (page_size - 1) or size % page_size or auto_vacuum:
            raise NotPlainError("its pages are of another kind")
        count = size // page_size
        if count >= _MOST_PAGES:
            raise NotPlainError("it is too large")
        return cls(page_size, page_size - head[_RESERVED], first_free, free, count)


def blank(descriptor: int, shape: Shape) -> int:
    """Make all of it zero, durably; gives how many pages had some. Raises NotPlainError, OSError."""
    changed = 0
    zeros = bytes(shape.page_size)
    unused = _unused(descriptor, shape)
    for first in range(0, shape.count * shape.page_size, _PART):
        part = os.pread(descriptor, _PART, first)
        for at in range(0, len(part), shape.page_size):
            number = (first + at) // shape.page_size + 1
            spans = unused.get(number) or _gaps(part, at, shape, _HEADER if number == 1 else 0)
            has_any = False
            for start, end in spans:
                if part[at + start : at + end] != zeros[: end - start]:
                    os.pwrite(descriptor, zeros[: end - start], first + at + start)
                    has_any = True
            changed += has_any
    if changed:
        os.fsync(descriptor)
    return changed


def _gaps(part: bytes, at: int, shape: Shape, header: int) -> Iterator[Span]:
    """The unused bytes of the page that begins there, if it is one of a tree."""
    kind, free, cells, begin = _TREE.unpack_from(part, at + header)
    if kind in _LEAF:
        start = header + 8 + 2 * cells
    elif kind in _INNER:
        start = header + 12 + 2 * cells
    else:
        return
    begin = begin or 1 << 16
    if not start <= begin <= shape.usable:
        raise NotPlainError("a page is damaged")
    yield start, begin
    while free:
        if not begin <= free <= shape.usable - 4:
            raise NotPlainError("a page is damaged")
        following, size = _PAIR.unpack_from(part, at + free)
        if size < 4 or free + size > shape.usable or (following and following < free + size):
            raise NotPlainError("a page is damaged")
        yield free + 4, free + size
        free = following


def _unused(descriptor: int, shape: Shape) -> dict[int, list[Span]]:
    """The unused bytes of the pages that hold nothing, by their numbers."""
    found: dict[int, list[Span]] = {}
    trunk = shape.first_free
    while trunk:
        page = os.pread(descriptor, shape.page_size, (trunk - 1) * shape.page_size)
        if trunk in found or not 1 < trunk <= shape.count or len(page) < shape.page_size:
            raise NotPlainError("the list of free pages is damaged")
        following, count = _WORDS.unpack_from(page)
        if 8 + 4 * count > shape.usable:
            raise NotPlainError("the list of free pages is damaged")
        found[trunk] = [(8 + 4 * count, shape.usable)]
        for leaf in struct.unpack_from(f">{count}I", page, 8):
            if leaf in found or not 1 < leaf <= shape.count:
                raise NotPlainError("the list of free pages is damaged")
            found[leaf] = [(0, shape.usable)]
        trunk = following
    return found
