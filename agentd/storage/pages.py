"""The pages of a damaged SQLite database, and the records on them, read without SQLite. Pure.

Whatever the bytes are, reading ends: counts, pointers and lengths are held against the size of
the file, and every chain is followed once. What cannot be read is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

PAGE_SIZE = 4096  # of every database that agentd makes
_WAL_HEADER = 32
_FRAME_HEADER = 24
_HEADER = 100  # bytes of the file's own on page 1
_WORD = 0xFFFFFFFF
_INTS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial types to bytes

Value = None | int | float | str | bytes
Buffer = bytes | memoryview


class PageKind(IntEnum):
    """What a page of a b-tree is."""

    INDEX_INNER = 2
    TABLE_INNER = 5
    INDEX_LEAF = 10
    TABLE_LEAF = 13


TABLE = frozenset({PageKind.TABLE_INNER, PageKind.TABLE_LEAF})
INDEX = frozenset({PageKind.INDEX_INNER, PageKind.INDEX_LEAF})


@dataclass(frozen=True, slots=True)
class SalvagedRecord:
    """One row as it lies on a page; `rowid` is None in trees that have none."""

    rowid: int | None
    values: tuple[Value, ...]


class Pages:
    """The pages as the last commit that can be proven left them: those of the file, and over them those
    of the write-ahead log up to the first frame that is not whole.
    """

    def __init__(self, file: Buffer, log: Buffer = b"") -> None:
        self._file = file
        self.size = _page_size(file, log)
        self._newer, committed = _committed_pages(log, self.size)
        self.count = committed or -(-len(file) // self.size)

    def page(self, number: int) -> bytes:
        """The bytes of a page, numbered from 1, filled up with zeros; empty for one that is not there."""
        if not 1 <= number <= self.count:
            return b""
        if (newer := self._newer.get(number)) is not None:
            return newer
        begin = (number - 1) * self.size
        return bytes(self._file[begin : begin + self.size]).ljust(self.size, b"\0")

    def kind(self, number: int) -> PageKind | None:
        """What the page says that it is."""
        page = self.page(number)
        begin = _begin(number)
        return PageKind(page[begin]) if page and page[begin] in set(PageKind) else None

    def children(self, number: int) -> Iterator[int]:
        """The pages below an inner page."""
        page, begin = self.page(number), _begin(number)
        for place in _places(page, begin, inner=True):
            if place + 4 <= self.size:
                yield _u32(page, place)
        if page:
            yield _u32(page, begin + 8)

    def records(self, number: int) -> Iterator[SalvagedRecord]:
        """What lies on a page: rows of a table, or entries of an index, which inner pages have too."""
        kind = self.kind(number)
        if kind is None or kind is PageKind.TABLE_INNER:
            return
        page, begin = self.page(number), _begin(number)
        for place in _places(page, begin, inner=kind is PageKind.INDEX_INNER):
            at = place + 4 if kind is PageKind.INDEX_INNER else place
            if (found := self._record(page, at, kind)) is not None:
                yield found

    def tree(self, root: int, seen: set[int], family: Collection[PageKind]) -> Iterator[int]:
        """The pages of a tree from its root on, those of its family, but for those that have been seen;
        they are now.
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
        """The bytes of a record: those on its page, and those on the pages that it spills over to."""
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
    """The size that both files or one of them tell, if it can be; else that of our databases."""
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
    """Which part of the first pages of that size begin as pages of a b-tree do."""
    starts = range(size, min(len(file), 64 * size), size)
    return sum(file[start] in set(PageKind) for start in starts) / max(1, len(starts))


def _committed_pages(log: Buffer, size: int) -> tuple[Mapping[int, bytes], int]:
    """The newest pages of whole commits, and how many pages the database has by the last of them; as
    SQLite reads the log.
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
    """Where the cells of a page begin."""
    if not page:
        return ()
    first = begin + (12 if inner else 8)
    count = min(struct.unpack_from(">H", page, begin + 3)[0], (len(page) - first) // 2)
    return struct.unpack_from(f">{count}H", page, first)


def _u32(data: Buffer, at: int) -> int:
    return int(struct.unpack_from(">I", data, at)[0])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the place behind it. Raises IndexError at the end of the data."""
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
