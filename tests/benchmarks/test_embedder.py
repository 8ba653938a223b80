"""The embedder that benchmarks measure is one, whether a daemon is told of it or it is made
here.
"""

from __future__ import annotations

import tomllib

from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
from benchmarks import embedder


def test_what_is_measured_is_the_embedder_of_a_fresh_installation(monkeypatch):
    monkeypatch.delenv("EMBEDDER", raising=False)
    assert embedder.settings().provider == EmbedderSettings().provider


def test_a_daemon_is_told_of_the_embedder_that_is_made_without_one(monkeypatch):
    monkeypatch.setenv("EMBEDDER", "onnx")
    monkeypatch.setenv("EMBEDDER_MODEL", '/models/"quoted" é')
    told = tomllib.loads(embedder.as_toml())["memory_search"]
    assert EmbedderSettings.model_validate(told) == embedder.settings()
    assert (told["provider"], told["embedder"]["model"]) == ("onnx", '/models/"quoted" é')


async def test_the_embedder_that_ships_makes_vectors(monkeypatch):
    monkeypatch.delenv("EMBEDDER", raising=False)
    async with embedder.opened() as made:
        assert made is not None
        (vector,) = await made.embed(["tea"], query=True)
    assert len(vector) == 4 * made.dimension
