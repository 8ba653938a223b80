"""The vector leg's word in the first ranks, where words alone may mislead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

AGREED = 0.7  # a hit that holds so much of the query, and means it, settles what is meant
APART = 0.35  # below this the query's words are not those of the answer
UNHEARD = 0.1  # below this the query's words tell nothing, and meaning is nearly all there is
TURNS = 120  # ranks that the legs then take in turn


def heard(
    meaning: NDArray[np.float32],
    cover: NDArray[np.float32],
    question: NDArray[np.float32],
    *,
    settled: bool,
) -> list[int]:
    """A new order of candidates given best first: behind the first come the ones that are nearest
    in meaning, two of them where no candidate both holds the query's words and means it, and every
    other one where none comes near to that, or four of five where there is nothing in it.
    Candidates that only ask have no voice: they hold the query's words and no answer. With
    `settled` (an identifier was found, days were named, misspelt words were mended) the order
    stays.
    """
    count = len(meaning)
    says = np.flatnonzero(question < 0.5)
    if settled or not len(says):
        return list(range(count))
    agreement = float((meaning * cover)[says].max())
    nearest = says[np.argsort(-meaning[says], kind="stable")].tolist()
    nearest = [at for at in nearest if at]
    if agreement >= AGREED:
        turns = nearest[:1]
    elif agreement >= APART:
        turns = nearest[:2]
    else:
        share = 4 if agreement < UNHEARD else 1
        turns = [*nearest[:2], *_in_turn(range(1, count), nearest[2:], share)][:TURNS]
    first = list(dict.fromkeys([0, *turns]))
    chosen = set(first)
    return [*first, *(at for at in range(count) if at not in chosen)]


def _in_turn(one: Sequence[int], other: Sequence[int], share: int) -> Iterator[int]:
    """One of the first, then `share` of the other, and so on until either is at its end."""
    for number, at in enumerate(one):
        yield at
        some = other[number * share : (number + 1) * share]
        yield from some
        if len(some) < share:
            return
