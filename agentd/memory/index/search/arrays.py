"""Named arrays in one file, read back as views of it that need no memory until they are looked at.

The file is for its owner alone, appears whole or not at all, and says which `mark` it belongs to. All of it
has checksums: what is torn, damaged or cut short is told when it is opened.
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
_HEAD = struct.Struct("<QI")  # bytes of the table that follows, and their checksum
_ALIGNED = 64
_PIECE = 1 << 20  # bytes that are read at once
_MOST_TABLE = 1 << 20
_STRINGS = 20_000  # that are read at once: others get the interpreter in between


class Unusable(ValueError):
    """The file is not to be used; `str` says why."""


def write(path: Path, mark: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write them to a file that is made anew. Raises OSError."""
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
    """The arrays of the file as they were written. Changing them changes no file. Raises Unusable, also
    for a file of another mark, FileNotFoundError if there is none.
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
    """Let what was looked at of arrays as they were read take no memory until it is looked at again.
    Nothing of them may have been changed.
    """
    for array in arrays.values():
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap):
            base.obj.madvise(mmap.MADV_DONTNEED)
            return


def of_strings(strings: Sequence[str]) -> NDArray[np.uint8]:
    """Strings as an array."""
    blocks = (
        json.dumps(strings[first : first + _STRINGS]) for first in range(0, len(strings), _STRINGS)
    )
    return np.frombuffer("\n".join(blocks).encode(), np.uint8)


def strings(array: NDArray[np.uint8]) -> list[str]:
    """The strings of an array."""
    return [one for block in array.tobytes().splitlines() for one in json.loads(block)]


def inside(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part, to stand among those of others."""
    return {f"{name}.{own}": array for own, array in arrays.items()}


def part(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part, as they were before."""
    lead = f"{name}."
    return {
        full.removeprefix(lead): array for full, array in arrays.items() if full.startswith(lead)
    }


def _table(file: Any) -> tuple[int, dict[str, Any]]:
    """Where the arrays begin, and what is told of them."""
    lead = file.read(len(_MAGIC) + _HEAD.size)
    if len(lead) < len(_MAGIC) + _HEAD.size or not lead.startswith(_MAGIC):
        raise Unusable("it is none of this version's")
    size, sum_ = _HEAD.unpack(lead[len(_MAGIC) :])
    told = file.read(size) if size <= _MOST_TABLE else b""
    if len(told) != size or zlib.crc32(told) != sum_:
        raise Unusable("its beginning is damaged")
    return _start(size), json.loads(told)


def _start(size: int) -> int:
    """Where arrays begin behind a table of so many bytes."""
    end = len(_MAGIC) + _HEAD.size + size
    return end + -end % _ALIGNED


def _sum(file: Any, first: int, size: int) -> int:
    """The checksum of a part of the file. It is read, not mapped: where the disk fails that is an error,
    and looking at a mapped page of it would end the process.
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
