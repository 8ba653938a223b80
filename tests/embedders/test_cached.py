"""Questions are embedded once."""

import tracemalloc

import pytest

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.cached import MOST, Cached
from agentd.testing import HashEmbedder


async def test_a_question_is_embedded_once_and_texts_always():
    inner = HashEmbedder()
    cached = Cached(inner)
    first = await cached.embed(["a b", "c", "a b"], query=True)
    assert inner.texts == ["a b", "c"]
    assert first == await HashEmbedder().embed(["a b", "c", "a b"])
    assert await cached.embed(["c", "d"], query=True) == await HashEmbedder().embed(["c", "d"])
    assert inner.texts == ["a b", "c", "d"]
    await cached.embed(["c"])
    assert inner.texts[-1] == "c"
    assert (cached.model, cached.dimension) == (inner.model, inner.dimension)


@pytest.mark.parametrize("dimension", [8, 256, 3072])
async def test_the_oldest_questions_are_forgotten(dimension):
    inner = HashEmbedder(dimension=dimension)
    cached = Cached(inner, most=2 * (200 + 4 * dimension))
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text], query=True)
    assert inner.texts == ["a", "b", "c", "b"]


async def test_what_is_remembered_is_bounded_in_bytes_however_long_vectors_are():
    cached = Cached(HashEmbedder(dimension=3072))
    await cached.embed(["warm"], query=True)
    tracemalloc.start()
    try:
        for number in range(800):
            await cached.embed([f"question {number}"], query=True)
        assert tracemalloc.get_traced_memory()[0] < MOST + (MOST >> 3)
    finally:
        tracemalloc.stop()


async def test_a_failure_is_not_remembered():
    inner = HashEmbedder(broken=True)
    cached = Cached(inner)
    with pytest.raises(EmbedderFault):
        await cached.embed(["a"], query=True)
    inner.broken = False
    assert await cached.embed(["a"], query=True) == await HashEmbedder().embed(["a"])


async def test_any_text_has_a_place():
    cached = Cached(HashEmbedder())
    assert len(await cached.embed(["\ud800", "\0", ""], query=True)) == 3
