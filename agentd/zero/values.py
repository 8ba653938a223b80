"""The values of the `.0` language: ten kinds that are never taken for one another.

Null, Bool, Int, Float, String and Bytes are Python's own types; Array, Map, Hash32 and Confidence
are classes of this module. An Array or Map knows its size and depth, so that neither grows without
bound, however often a part of it is shared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias, overload

from msgspec import Struct

from agentd.core.graph import Digest
from agentd.zero.faults import LimitReached, WrongValue

# Whole numbers have 64 bits.
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

MAX_SIZE = 16 * 1024 * 1024  # of one value, about its bytes when written out
MAX_DEPTH = 64
ENTRY = 64  # size of one entry of an Array or Map, beside its key and value
_SCALAR = 8
_WORDS = {None: b"n", True: b"t", False: b"f"}


class Hash32(Digest, frozen=True):
    """A SHA-256 hash as a value."""


class Confidence(Struct, frozen=True):
    """A degree of certainty in [0, 1]. Raises ValueError outside of it."""

    value: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a confidence lies between 0 and 1, not at {self.value}")


class Array(Sequence["Value"]):
    """An immutable sequence of values. Raises LimitReached when it would be too large
    or too deep.
    """

    __slots__ = ("_digest", "_items", "depth", "size")

    def __init__(self, items: Sequence[Value] = ()) -> None:
        self._items = tuple(items)
        self.size, self.depth = _measure(self._items)
        self._digest = b""

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Array: ...
    def __getitem__(self, index: int | slice) -> Value | Array:
        return Array(self._items[index]) if isinstance(index, slice) else self._items[index]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Array({list(self._items)!r})"

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the Array's encoding."""
        if not self._digest:
            parts = [b"a", len(self._items).to_bytes(8), *map(_part, self._items)]
            self._digest = sha256(b"".join(parts)).digest()
        return self._digest


class Map(Mapping[str, "Value"]):
    """An immutable mapping of names to values; equality ignores the order. Raises LimitReached like
    Array.
    """

    __slots__ = ("_digest", "_items", "depth", "size")

    def __init__(self, items: Mapping[str, Value] | None = None) -> None:
        self._items = dict(items) if items else {}
        size, self.depth = _measure(self._items.values())
        self.size = _check_size(size + sum(map(len, self._items)))
        self._digest = b""

    def __getitem__(self, key: str) -> Value:
        return self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Map) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Map({self._items!r})"

    @property
    def entries(self) -> dict[str, Value]:
        """The dict of all entries, for fast reading; it must not be changed."""
        return self._items

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the Map's encoding, ordered by key."""
        if not self._digest:
            parts = [b"m", len(self._items).to_bytes(8)]
            for key in sorted(self._items):
                parts += (_part(key), _part(self._items[key]))
            self._digest = sha256(b"".join(parts)).digest()
        return self._digest


Value: TypeAlias = bool | int | float | str | bytes | Array | Map | Hash32 | Confidence | None
_NAMES = {
    type(None): "Null",
    bool: "Bool",
    int: "Int",
    float: "Float",
    str: "String",
    bytes: "Bytes",
    Array: "Array",
    Map: "Map",
    Hash32: "Hash32",
    Confidence: "Confidence",
}


def kind_of(value: Value) -> str:
    """Return the name of the value's kind, such as `Int`."""
    return _NAMES[type(value)]


def is_truthy(value: Value) -> bool:
    """Return False for Null, false, 0, 0.0, a Confidence of 0 and anything empty, else True; a
    Hash32 is true.
    """
    match value:
        case Hash32():
            return True
        case Confidence(sure):
            return sure > 0.0
        case _:
            return bool(value)


def is_same(one: Value, other: Value) -> bool:
    """Whether both values are of one kind and equal: 1 is not 1.0, nor true."""
    return type(one) is type(other) and encode(one) == encode(other)


def encode(value: Value) -> bytes:
    """Return the bytes that represent a value in hashes and signatures: kind, length where it
    varies, and content. An Array or Map is represented by its SHA-256, so shared parts are encoded
    once.
    """
    return _part(value)


def digest(value: Value) -> bytes:
    """Return the SHA-256 that identifies a value: 32 bytes."""
    return value.digest if isinstance(value, Array | Map) else sha256(_part(value)).digest()


def shallow_size(value: Value) -> int:
    """Return the value's own size, without the contents of its entries."""
    if isinstance(value, str | bytes):
        return _SCALAR + len(value)
    if isinstance(value, Array | Map):
        return _SCALAR + ENTRY * len(value)
    return _SCALAR


def _measure(items: Iterable[Value]) -> tuple[int, int]:
    size = depth = 0
    for item in items:
        size += ENTRY
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, (float, int)):
            size += _SCALAR
        elif isinstance(item, (Array, Map)):
            size += item.size
            depth = max(depth, item.depth)
        else:
            size += _SCALAR
    if depth >= MAX_DEPTH:
        raise LimitReached(f"a value is nested deeper than {MAX_DEPTH}")
    return _check_size(size), depth + 1


def _check_size(size: int) -> int:
    if size > MAX_SIZE:
        raise LimitReached(
            f"a value would take {size} bytes, and {MAX_SIZE} is the most",
            cure="keep less in one value, or share it between several",
        )
    return size


def _part(value: Value) -> bytes:
    match value:
        case str():
            raw = value.encode()
            return b"s" + len(raw).to_bytes(8) + raw
        case float():
            return b"d" + struct.pack(">d", value + 0.0)  # + 0.0 makes -0.0 zero
        case None | bool():
            return _WORDS[value]
        case int():
            return b"i" + value.to_bytes(8, signed=True)
        case Hash32(value=raw):
            return b"h" + raw
        case Array() | Map():
            return b"v" + value.digest
        case bytes():
            return b"b" + len(value).to_bytes(8) + value
        case Confidence(sure):
            return b"c" + struct.pack(">d", sure + 0.0)


EMPTY = Map()


def value_of(plain: object, depth: int = 0) -> Value:
    """Convert a Python object: dicts with String keys, lists and tuples, scalars, hashes, and
    values themselves. Raises WrongValue for others and for what the language cannot represent (a
    whole number of more than 64 bits, a float that is not finite, a lone surrogate), and
    LimitReached.
    """
    if depth > MAX_DEPTH:
        raise LimitReached(f"a value is nested deeper than {MAX_DEPTH}")
    match plain:  # frequent kinds come first; the abstract Mapping is the slowest to test
        case str():
            return text(plain)
        case float():
            return real(plain)
        case None | bool() | bytes() | Hash32() | Confidence() | Array() | Map():
            return plain
        case int():
            return whole(plain)
        case Digest(value=raw):
            return Hash32(raw)
        case Mapping():
            return Map({_name(key): value_of(item, depth + 1) for key, item in plain.items()})
        case list() | tuple():
            return Array([value_of(item, depth + 1) for item in plain])
        case _:
            raise WrongValue(f"a {type(plain).__name__} is no value of the language")


def whole(number: int) -> int:
    """Return the number if it fits into 64 bits. Raises WrongValue otherwise."""
    if not INT_MIN <= number <= INT_MAX:
        raise WrongValue("a whole number does not fit into 64 bits")
    return int(number)


def real(number: float) -> float:
    """Return the number if it is finite. Raises WrongValue otherwise."""
    if not math.isfinite(number):
        raise WrongValue("a number is not finite")
    return float(number)


def text(characters: str) -> str:
    """Return the text if it can be encoded as UTF-8. Raises WrongValue otherwise."""
    if not characters.isascii():
        try:
            characters.encode()
        except UnicodeEncodeError as error:
            raise WrongValue("a text holds half of a surrogate pair") from error
    return str(characters)


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise WrongValue(f"a key of a Map is a String, not a {type(key).__name__}")
    return text(key)


def share_of(value: Value) -> float | None:
    """Return a number from 0 to 1 of any numeric kind as a float; None for others."""
    if isinstance(value, Confidence):
        return value.value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return None
