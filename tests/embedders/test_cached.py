"""Questions are embedded once."""

import pytest

from agentd.embedders.cached import Cached
from agentd.errors import EmbedderFault
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


async def test_the_oldest_questions_are_forgotten():
    inner = HashEmbedder()
    cached = Cached(inner, most=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text], query=True)
    assert inner.texts == ["a", "b", "c", "b"]


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
