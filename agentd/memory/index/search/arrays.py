"""Named arrays in one file, memory-mapped when read, so that they take no memory until they are
used.

Only the owner can read the file; it contains the `mark` it belongs to, and checksums of everything:
a truncated or damaged file is detected when it is opened.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_MAGIC = b"agentd arrays 1\n"
_HEAD = struct.Struct("<QI")  # size of the table that follows, and its checksum
_ALIGNED = 64
_PIECE = 1 << 20  # bytes per read
_MOST_TABLE = 1 << 20
_STRINGS = 20_000  # strings per JSON block, so that other threads get the interpreter in between


class Unusable(ValueError):
    """The file cannot be used; `str` says why."""


def write(path: Path, mark: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays to a new file at `path`, replacing an old one. Raises OSError."""
    path.unlink(missing_ok=True)
    table: dict[str, Any] = {"mark": mark, "arrays": {}}
    at = 0
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        at += -at % _ALIGNED
        sum_ = zlib.crc32(_bytes(array))
        table["arrays"][name] = [array.dtype.str, array.shape, at, array.nbytes, sum_]
        at += array.nbytes
    table["size"] = at
    told = json.dumps(table).encode()
    head = _MAGIC + _HEAD.pack(len(told), zlib.crc32(told)) + told
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 0) as file:
        _put(file, head.ljust(_start(len(told)), b"\0"))
        for (*_, first, _size, _sum), array in zip(
            table["arrays"].values(), plain.values(), strict=True
        ):
            file.seek(_start(len(told)) + first)
            _put(file, _bytes(array))
        file.truncate(_start(len(told)) + at)


def read(path: Path, mark: str) -> Arrays:
    """Return the arrays of the file. Changes to them do not change the file. Raises Unusable for a
    damaged file or one with another mark, FileNotFoundError if there is none.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unusable("it is no file")
            start, table = _table(file)
            if table["mark"] != mark:
                raise Unusable("it is of another index")
            if os.fstat(file.fileno()).st_size != start + table["size"]:
                raise Unusable("a part of it is missing")
            for name, (*_, first, size, sum_) in table["arrays"].items():
                if _sum(file, start + first, size) != sum_:
                    raise Unusable(f"{name} is damaged")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unusable(f"it cannot be read ({error.strerror})") from error
    return {
        name: np.frombuffer(mapped, dtype, count=int(np.prod(shape)), offset=start + first).reshape(
            shape
        )
        for name, (dtype, shape, first, *_) in table["arrays"].items()
    }


def release(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Release the memory of arrays returned by `read` until they are used again. None of them may
    have been changed.
    """
    for array in arrays.values():
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap):
            base.obj.madvise(mmap.MADV_DONTNEED)
            return


def of_strings(strings: Sequence[str]) -> NDArray[np.uint8]:
    """Encode strings as an array."""
    blocks = (
        json.dumps(strings[first : first + _STRINGS]) for first in range(0, len(strings), _STRINGS)
    )
    return np.frombuffer("\n".join(blocks).encode(), np.uint8)


def strings(array: NDArray[np.uint8]) -> list[str]:
    """Decode an array from `of_strings`."""
    return [one for block in array.tobytes().splitlines() for one in json.loads(block)]


def inside(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Prefix the names of arrays with the name of a part."""
    return {f"{name}.{own}": array for own, array in arrays.items()}


def part(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays of one part, without the prefix."""
    lead = f"{name}."
    return {
        full.removeprefix(lead): array for full, array in arrays.items() if full.startswith(lead)
    }


def _table(file: Any) -> tuple[int, dict[str, Any]]:
    """Return the offset of the arrays, and the table that describes them."""
    lead = file.read(len(_MAGIC) + _HEAD.size)
    if len(lead) < len(_MAGIC) + _HEAD.size or not lead.startswith(_MAGIC):
        raise Unusable("it is none of this version's")
    size, sum_ = _HEAD.unpack(lead[len(_MAGIC) :])
    told = file.read(size) if size <= _MOST_TABLE else b""
    if len(told) != size or zlib.crc32(told) != sum_:
        raise Unusable("its beginning is damaged")
    return _start(size), json.loads(told)


def _start(size: int) -> int:
    """Return the offset of the arrays after a table of `size` bytes."""
    end = len(_MAGIC) + _HEAD.size + size
    return end + -end % _ALIGNED


def _sum(file: Any, first: int, size: int) -> int:
    """Return the checksum of a part of the file; -1 if it is cut short. The part is read, not
    mapped: a disk error is then an exception, while access to a mapped page would kill the process.
    """
    sum_, buffer = 0, memoryview(bytearray(_PIECE))
    file.seek(first)
    while size and (count := file.readinto(buffer[: min(size, _PIECE)])):
        sum_ = zlib.crc32(buffer[:count], sum_)
        size -= count
    return -1 if size else sum_


def _put(file: Any, data: bytes | memoryview) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _bytes(array: NDArray[Any]) -> memoryview:
    plain: Any = array.reshape(-1).view(np.uint8)
    return memoryview(plain)
