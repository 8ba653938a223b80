"""Small homes: some of the texts of a collection and a question that they answer, or do not.

Authors write their questions for all that they wrote. Most people have written little, and ask all
the same; so texts are drawn from each collection, by chance or in a row, with the answer of one of
its questions among them, and that question is asked, one whose answer is not among them, and one of another
author.
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

SIZES = (3, 10, 30, 100, 300)
IN_A_ROW = 0.5  # of the homes; the texts of the others are drawn one by one
TRIES = 3  # for each home that is wanted: some questions have too long answers


class Indexed(Struct, frozen=True):
    """A collection that can be searched, with the vectors of its questions; None without
    vectors.
    """

    of: Collection
    searcher: Searcher
    vectors: Sequence[Floats | None]


class Home(Struct, frozen=True):
    """`size` texts, searched for a question; `question.needed` is empty where they do not answer
    it. `foreign`: another author wrote the question.
    """

    author: str
    size: int
    searcher: Searcher
    question: Question
    vector: Floats | None
    answers: Sequence[int]  # which of the texts
    foreign: bool


def drawn(some: Sequence[Indexed], each: int, seed: int = 7) -> Iterator[Home]:
    """`each` homes, or somewhat fewer, of every size and author, once for each of its three
    questions; the same ones for the same `seed`.
    """
    random = np.random.default_rng(seed)
    for author in dict.fromkeys(one.of.author for one in some):
        own = [one for one in some if one.of.author == author]
        others = [one for one in some if one.of.author != author]
        for size in SIZES:
            large = [one for one in own if len(one.of.chunks) > size]
            made = 0
            for _ in range(TRIES * each if large else 0):
                asked = list(_homes(large[random.integers(len(large))], others, size, random))
                yield from asked
                made += bool(asked)
                if made == each:
                    break


def _homes(
    one: Indexed, others: Sequence[Indexed], size: int, random: np.random.Generator
) -> Iterator[Home]:
    """Texts of this collection, once for each question; nothing where chance chose one whose answer
    is too long.
    """
    asked = int(random.integers(len(one.of.questions)))
    answers = _answers(one, asked)
    if not 0 < len(answers) <= size:
        return
    rest = np.setdiff1d(np.arange(len(one.of.chunks)), answers)
    chosen = np.sort(np.concatenate([_some(rest, size - len(answers), random), answers]))
    chosen = chosen.astype(np.int64)
    searcher = _searcher(one, chosen)

    def home(source: Indexed, number: int, *, answered: bool) -> Home:
        question, vector = source.of.questions[number], source.vectors[number]
        within = np.flatnonzero(np.isin(chosen, answers)).tolist() if answered else []
        question = question if answered else replace(question, needed=())
        foreign = source is not one
        return Home(one.of.author, size, searcher, question, vector, within, foreign)

    yield home(one, asked, answered=True)
    others_own = random.permutation(len(one.of.questions)).tolist()
    lacking = next((number for number in others_own if _lacks(one, number, chosen)), None)
    if lacking is not None:
        yield home(one, lacking, answered=False)
    if others:
        source = others[random.integers(len(others))]
        yield home(source, int(random.integers(len(source.of.questions))), answered=False)


def _answers(one: Indexed, number: int) -> list[int]:
    """Which texts of the collection answer a question."""
    needed = one.of.questions[number].needed
    return sorted({at for places in needed for at in one.of.holding(places)})


def _lacks(one: Indexed, number: int, chosen: NDArray[np.int64]) -> bool:
    """Whether a question has answers, and none of them is among these texts."""
    answers = _answers(one, number)
    return bool(answers) and not np.isin(answers, chosen).any()


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
