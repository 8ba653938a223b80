"""Reads the pages of a damaged SQLite database, and the records on them, without SQLite. Pure.

Reading ends whatever the bytes are: counts, pointers and lengths are checked against the size of
the file, and no chain is followed twice. What cannot be read is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

PAGE_SIZE = 4096  # of every database that agentd makes
_WAL_HEADER = 32
_FRAME_HEADER = 24
_HEADER = 100  # bytes of the file header, at the start of page 1
_WORD = 0xFFFFFFFF
_INTS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial types of integers, and their lengths in bytes

Value = None | int | float | str | bytes
Buffer = bytes | memoryview


class PageKind(IntEnum):
    """The kinds of b-tree pages; the values are those of the file format."""

    INDEX_INNER = 2
    TABLE_INNER = 5
    INDEX_LEAF = 10
    TABLE_LEAF = 13


TABLE = frozenset({PageKind.TABLE_INNER, PageKind.TABLE_LEAF})
INDEX = frozenset({PageKind.INDEX_INNER, PageKind.INDEX_LEAF})


class SalvagedRecord(Struct, frozen=True):
    """One record as found on a page; `rowid` is None in trees without row ids."""

    rowid: int | None
    values: tuple[Value, ...]


class Pages:
    """The pages of a database after its last valid commit: those of the file, replaced by newer
    ones from complete commits in the write-ahead log before its first invalid frame.
    """

    def __init__(self, file: Buffer, log: Buffer = b"") -> None:
        self._file = file
        self.size = _page_size(file, log)
        self._newer, committed = _committed_pages(log, self.size)
        self.count = committed or -(-len(file) // self.size)

    def page(self, number: int) -> bytes:
        """Return the bytes of a page, numbered from 1, padded with zeros; empty if there is no such
        page.
        """
        if not 1 <= number <= self.count:
            return b""
        if (newer := self._newer.get(number)) is not None:
            return newer
        begin = (number - 1) * self.size
        return bytes(self._file[begin : begin + self.size]).ljust(self.size, b"\0")

    def kind(self, number: int) -> PageKind | None:
        """Return the kind that the page states; None if it is not a b-tree page."""
        page = self.page(number)
        begin = _begin(number)
        return PageKind(page[begin]) if page and page[begin] in set(PageKind) else None

    def children(self, number: int) -> Iterator[int]:
        """Yield the numbers of the child pages of an inner page."""
        page, begin = self.page(number), _begin(number)
        for place in _places(page, begin, inner=True):
            if place + 4 <= self.size:
                yield _u32(page, place)
        if page:
            yield _u32(page, begin + 8)

    def records(self, number: int) -> Iterator[SalvagedRecord]:
        """Yield the records on a page: rows of a table, or entries of an index (also from its inner
        pages).
        """
        kind = self.kind(number)
        if kind is None or kind is PageKind.TABLE_INNER:
            return
        page, begin = self.page(number), _begin(number)
        for place in _places(page, begin, inner=kind is PageKind.INDEX_INNER):
            at = place + 4 if kind is PageKind.INDEX_INNER else place
            if (found := self._record(page, at, kind)) is not None:
                yield found

    def tree(self, root: int, seen: set[int], family: Collection[PageKind]) -> Iterator[int]:
        """Yield the numbers of the pages of the tree at `root` whose kind is in `family`, without
        those in `seen`; add them to `seen`.
        """
        waiting = [root]
        while waiting:
            number = waiting.pop()
            kind = None if number in seen else self.kind(number)
            if kind not in family:
                continue
            seen.add(number)
            yield number
            if kind in {PageKind.TABLE_INNER, PageKind.INDEX_INNER}:
                waiting.extend(self.children(number))

    def _record(self, page: bytes, at: int, kind: PageKind) -> SalvagedRecord | None:
        try:
            size, at = _varint(page, at)
            rowid: int | None = None
            if kind is PageKind.TABLE_LEAF:
                rowid, at = _varint(page, at)
                rowid -= (rowid >> 63) << 64
        except IndexError:
            return None
        if size > self.count * self.size:
            return None
        values = tuple(_values(self._payload(page, at, size, kind)))
        return SalvagedRecord(rowid, values) if values else None

    def _payload(self, page: bytes, at: int, size: int, kind: PageKind) -> bytes:
        """Return a record's bytes from its page and its overflow pages."""
        usable = self.size
        most = usable - 35 if kind is PageKind.TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return page[at : at + size]
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= most else least
        parts, length = [page[at : at + local]], local
        following = _u32(page, at + local) if at + local + 4 <= usable else 0
        seen: set[int] = set()
        while length < size and following not in seen and (spill := self.page(following)):
            seen.add(following)
            parts.append(spill[4 : 4 + size - length])
            length += len(parts[-1])
            following = _u32(spill, 0)
        return b"".join(parts)


def _page_size(file: Buffer, log: Buffer) -> int:
    """Return PAGE_SIZE if a header states it or neither states a valid size, else the most
    plausible of PAGE_SIZE and the stated sizes.
    """
    told = []
    if len(file) >= _HEADER:
        told.append(struct.unpack_from(">H", file, 16)[0])
    if len(log) >= _WAL_HEADER:
        told.append(_u32(log, 8))
    sizes = [65536 if size == 1 else size for size in told]
    fit = [size for size in sizes if 512 <= size <= 65536 and size & (size - 1) == 0]
    if PAGE_SIZE in fit or not fit:
        return PAGE_SIZE
    return max((PAGE_SIZE, *fit), key=lambda size: _plausible(file, size))


def _plausible(file: Buffer, size: int) -> float:
    """Return the share of the first pages, cut at this size, that begin like a b-tree page."""
    starts = range(size, min(len(file), 64 * size), size)
    return sum(file[start] in set(PageKind) for start in starts) / max(1, len(starts))


def _committed_pages(log: Buffer, size: int) -> tuple[Mapping[int, bytes], int]:
    """Return the newest content of each page in complete commits of the log, and the size of the
    database in pages after the last of them (0: there is none). Reading stops at the first frame
    with a wrong salt or checksum, as in SQLite.
    """
    if len(log) < _WAL_HEADER or _u32(log, 0) & ~1 != 0x377F0682 or _u32(log, 8) != size:
        return {}, 0
    order = ">" if log[3] & 1 else "<"
    sums = _checksum(log[:24], order, (0, 0))
    if sums != struct.unpack_from(">II", log, 24):
        return {}, 0
    salts = bytes(log[16:24])
    pages: dict[int, bytes] = {}
    open_: dict[int, bytes] = {}
    count = 0
    for at in range(_WAL_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        number, after = struct.unpack_from(">II", log, at)
        content = bytes(log[at + _FRAME_HEADER : at + _FRAME_HEADER + size])
        sums = _checksum(log[at : at + 8], order, sums)
        sums = _checksum(content, order, sums)
        if bytes(log[at + 8 : at + 16]) != salts or sums != struct.unpack_from(">II", log, at + 16):
            break
        open_[number] = content
        if after:
            pages.update(open_)
            open_, count = {}, after
    return pages, count


def _checksum(data: Buffer, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _WORD
        second = (second + odd + first) & _WORD
    return first, second


def _begin(number: int) -> int:
    return _HEADER if number == 1 else 0


def _places(page: bytes, begin: int, *, inner: bool) -> Sequence[int]:
    """Return the offsets of a page's cells."""
    if not page:
        return ()
    first = begin + (12 if inner else 8)
    count = min(struct.unpack_from(">H", page, begin + 3)[0], (len(page) - first) // 2)
    return struct.unpack_from(f">{count}H", page, first)


def _u32(data: Buffer, at: int) -> int:
    return int(struct.unpack_from(">I", data, at)[0])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset behind it. Raises IndexError at the end of the data."""
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1


def _values(payload: bytes) -> Iterator[Value]:
    try:
        size, at = _varint(payload, 0)
        body = size
        while at < min(size, len(payload)):
            kind, at = _varint(payload, at)
            length = _INTS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
            yield _value(kind, payload[body : body + length])
            body += length
    except IndexError:
        return


def _value(kind: int, data: bytes) -> Value:
    if kind in _INTS:
        return int.from_bytes(data, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", data)[0]) if len(data) == 8 else 0.0
    if kind in {8, 9}:
        return kind - 8
    if kind >= 12:
        return data.decode("utf-8", "replace") if kind & 1 else data
    return None
