"""What an index says that it holds in memory is what it does hold."""

from __future__ import annotations

import gc
import tracemalloc
from datetime import date

import numpy as np
import pytest

from agentd.core.search import Chunk, Source, StoredChunk
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.in_memory import Mirror

COUNT = 1_023  # of which four fill a block of vectors
LIVES = (  # the dimension of vectors, if any, and words of each unit: what takes the most differs
    (0, "milk"),
    (0, "word{0}x parse{0}Query memory/{0}.md"),
    (256, "tea"),
)


def rows(start: int, text: str) -> list[StoredChunk]:
    """Units of a hundred to a file, as a store gives them: nothing of one is in another."""
    found = []
    for number in range(start, start + COUNT):
        said = f"{text.format(number)} letters {'abcdefghij'[number % 10] * 5}"
        chunk = Chunk(
            *(f"memory/{number // 100}.md", number % 100, number % 100, said),
            *(Source.NOTES, "main", date(2026, 11, 21)),
        )
        read = entry(chunk)
        found.append(StoredChunk(number, chunk, read.terms, read.traits))
    return found


def put(mirror: Mirror, rows: list[StoredChunk], dimension: int) -> None:
    mirror.add(rows)
    if dimension:
        vector = np.full(dimension, 0.5, "<f2").tobytes()
        mirror.put_vectors("m", [(row.id, vector) for row in rows])


@pytest.mark.parametrize(("dimension", "text"), LIVES)
def test_the_bytes_of_an_index_are_those_that_it_takes(dimension: int, text: str) -> None:
    parts = [rows(1 + part * COUNT, text) for part in range(4)]
    put(Mirror(), parts[0], dimension)  # what is imported, and kept whatever is searched
    tracemalloc.start()
    try:
        mirror = Mirror()
        for part in parts:
            put(mirror, part, dimension)
        mirror.remove(range(1, 1 + COUNT // 2))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert mirror.nbytes == pytest.approx(taken, rel=0.03)
