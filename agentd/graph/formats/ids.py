"""Short names of hashes that are unique within one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import TypeVar

from agentd.domain.concept import SIZE, Digest

LEAST_DIGITS = 8

_Kind = TypeVar("_Kind", bound=Digest)


class Ids(Enum):
    """How a text names concepts and contexts: by the first digits of their hashes, which another
    agentd can check, or by ordinal numbers, which are shorter and mean nothing outside the text.
    """

    HASHES = auto()
    ORDINALS = auto()


def names(hashes: Sequence[_Kind], ids: Ids) -> Mapping[_Kind, str]:
    """A name for each, in their order. Ordinals count from 1 and have at most seven digits; of a hash
    as many hexadecimal digits count as no other of these begins with, at least eight.
    """
    if ids is Ids.ORDINALS:
        return {digest: str(number) for number, digest in enumerate(hashes, start=1)}
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}
