"""Python objects to values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from agentd.domain.concept import Digest
from agentd.graph.zero.faults import LimitReached, WrongValue
from agentd.graph.zero.values import MAX_DEPTH, Array, Confidence, Hash32, Map, Value

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def value_of(plain: object, depth: int = 0) -> Value:
    """The value that a Python object stands for: dicts with names as keys, lists and tuples, scalars,
    hashes, values themselves. Raises WrongValue for others and for what the language cannot hold (a
    whole number of more than 64 bits, a float that is not finite, half of a surrogate pair), and
    LimitReached.
    """
    if depth > MAX_DEPTH:
        raise LimitReached(f"a value is nested deeper than {MAX_DEPTH}")
    match plain:  # what is frequent comes first: to be told an Array or a Map takes longest
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
    """The number, if it fits into 64 bits. Raises WrongValue."""
    if not INT_MIN <= number <= INT_MAX:
        raise WrongValue("a whole number does not fit into 64 bits")
    return int(number)


def real(number: float) -> float:
    """The number, if it is finite. Raises WrongValue."""
    if not math.isfinite(number):
        raise WrongValue("a number is not finite")
    return float(number)


def text(characters: str) -> str:
    """The text, if it can be written as UTF-8. Raises WrongValue."""
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
