"""Small homes: some of the texts of a collection and a question that they answer, or do not.

Authors write their questions for all that they wrote. Most people have written little, and ask all
the same; so texts are drawn from each collection, by chance or in a row, with the answer of one of
its questions among them, or without it, and with a question of another author in place of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from agentd.memory.index.search.searcher import Searcher
from benchmarks.collections import Collection, Question

Floats = NDArray[np.float32]

SIZES = (2, 5, 12, 40, 150, 600)
ANSWERED = 0.5  # of the questions
FOREIGN = 0.5  # of the others: those of another author
IN_A_ROW = 0.5  # of the homes; the texts of the others are drawn one by one
TRIES = 3  # for each home that is wanted: some questions have too long answers, or no text is left


class Indexed(Struct, frozen=True):
    """A collection that can be searched, with the vectors of its questions; None without
    vectors.
    """

    of: Collection
    searcher: Searcher
    vectors: Sequence[Floats | None]


class Home(Struct, frozen=True):
    """`size` texts, searched for a question; `question.needed` is empty where they do not answer
    it.
    """

    author: str
    size: int
    searcher: Searcher
    question: Question
    vector: Floats | None
    answers: Sequence[int]  # which of the texts


def drawn(some: Sequence[Indexed], each: int, seed: int = 7) -> Iterator[Home]:
    """`each` homes, or somewhat fewer, of every size and author; the same ones for the same
    `seed`.
    """
    random = np.random.default_rng(seed)
    for author in dict.fromkeys(one.of.author for one in some):
        own = [one for one in some if one.of.author == author]
        others = [one for one in some if one.of.author != author]
        for size in SIZES:
            large = [one for one in own if len(one.of.chunks) > size]
            made = 0
            for _ in range(TRIES * each if large else 0):
                home = _home(large[random.integers(len(large))], others, size, random)
                if home is not None:
                    yield home
                    made += 1
                if made == each:
                    break


def _home(
    one: Indexed, others: Sequence[Indexed], size: int, random: np.random.Generator
) -> Home | None:
    """A home of texts of this collection; None where chance made none."""
    answered = random.random() < ANSWERED
    foreign = bool(others) and not answered and random.random() < FOREIGN
    source = others[random.integers(len(others))] if foreign else one
    number = random.integers(len(source.of.questions))
    asked, vector = source.of.questions[number], source.vectors[number]
    if not asked.needed:
        return None
    answers = [] if foreign else sorted({n for p in asked.needed for n in source.of.holding(p)})
    if len(answers) > size:
        return None
    rest = np.setdiff1d(np.arange(len(one.of.chunks)), answers)
    chosen = _some(rest, size - (len(answers) if answered else 0), random)
    if answered:
        chosen = np.concatenate([chosen, answers])
    if not len(chosen):
        return None
    chosen = np.sort(chosen).astype(np.int64)
    question = asked if answered else replace(asked, needed=())
    within = np.flatnonzero(np.isin(chosen, answers)).tolist()
    return Home(one.of.author, size, _searcher(one, chosen), question, vector, within)


def _some(rest: NDArray[np.int64], count: int, random: np.random.Generator) -> NDArray[np.int64]:
    count = min(count, len(rest))
    if random.random() < IN_A_ROW:
        first = random.integers(len(rest) - count + 1)
        return rest[first : first + count]
    return random.choice(rest, count, replace=False)


def _searcher(one: Indexed, chosen: NDArray[np.int64]) -> Searcher:
    searcher = Searcher()
    vectors = None
    if one.searcher.vectors is not None:
        vectors = one.searcher.vectors.rows(chosen)
    searcher.add([one.of.chunks[number] for number in chosen], vectors)
    return searcher
