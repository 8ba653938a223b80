"""Short names of hashes that are unique within one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from agentd.domain.concept import SIZE, Digest

LEAST_DIGITS = 8

_Kind = TypeVar("_Kind", bound=Digest)


def names(hashes: Sequence[_Kind]) -> Mapping[_Kind, str]:
    """A name for each, in their order: as many of its hexadecimal digits as no other of these begins with,
    at least eight.
    """
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}
