"""The real model: meaning, the process around it, its export. Large, so only with
EXTRAS=embeddings.
"""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from agentd.memory.index.embedding import places
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.choice import choose
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, ModelSettings
from agentd.testing import FakeClock

pytestmark = [
    pytest.mark.skipif(
        not places.are_installed("torch", "sentence_transformers", places.PACKAGED),
        reason="torch is not installed (EXTRAS=embeddings)",
    ),
    pytest.mark.timeout(300),
]
needs_onnx = pytest.mark.skipif(
    not places.are_installed("onnx", "onnxruntime"), reason="onnx is not installed (EXTRAS=onnx)"
)
NEAR = ("Anna has adopted a puppy.", "the invoice is due on Friday", "how to bake bread")
ASKED = ("who got a young dog?", "when must the bill be paid?", "making a loaf at home")


FILLER = "The meeting about the budget was moved again. " * 60
LONG = (FILLER, f"{FILLER}{NEAR[0] * 20}", "", NEAR[0])


async def embed(state: Path, *batches: tuple[tuple[str, ...], bool], provider: str = "auto"):
    """The vectors of batches of texts or queries as the daemon gets them, and who made them."""
    settings = EmbedderSettings(provider=provider)
    async with (
        open_embedders(settings, os.environ, state, FakeClock()) as embedders,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(work()) for work in embedders.work]
        assert embedders.problems() == ()
        assert embedders.chain
        made = [await embedders.chain[0].embed(texts, query=query) for texts, query in batches]
        for task in tasks:
            task.cancel()
    found = [np.array([np.frombuffer(row, "<f4") for row in rows]) for rows in made]
    return found, embedders.status()["provider"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """What the model makes of NEAR, ASKED and LONG: it takes seconds to load, so once."""
    state = tmp_path_factory.mktemp("state")
    batches = (NEAR, False), (ASKED, True), (LONG, False)
    found, provider = asyncio.run(embed(state, *batches, provider="sentence-transformers"))
    assert provider == "sentence-transformers"
    return found


async def test_the_model_that_comes_along_has_nearly_the_same_vectors(tmp_path, original):
    batches = (NEAR, False), (ASKED, True), (LONG, False)
    made, provider = await embed(tmp_path, *batches, provider="onnx")
    assert provider == "onnx"
    for ours, theirs in zip(made[:2], original[:2], strict=True):
        assert np.sum(ours * theirs, axis=1).min() > 0.998
    assert np.sum(made[2] * original[2], axis=1) == pytest.approx([1, 1, 0, 1], abs=0.01)


def test_what_means_the_same_is_near(original):
    texts, asked, _ = original
    assert texts.shape == (3, 384)
    assert np.linalg.norm(texts, axis=1) == pytest.approx(1)
    assert (asked @ texts.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_the_end_of_a_long_text_counts(original):
    _, _, texts = original
    assert texts[1] @ texts[3] > texts[0] @ texts[3] + 0.1
    assert not texts[2].any()


@needs_onnx
async def test_an_export_gives_nearly_the_same_vectors_and_is_then_preferred(tmp_path, original):
    settings = EmbedderSettings()
    async with open_embedders(settings, os.environ, tmp_path, FakeClock()) as embedders:
        made = await embedders.exporter.export()
    assert made["agreement"] >= 0.98
    spec = choose(settings, {}, Path(made["folder"]).parent).spec
    assert spec is not None
    assert spec.source == made["folder"]
    (exported,), provider = await embed(tmp_path, (NEAR, False))
    assert provider == "onnx"
    assert np.sum(exported * original[0], axis=1).min() > 0.97
    assert {path.stat().st_mode & 0o777 for path in Path(made["folder"]).iterdir()} == {0o600}


async def test_a_folder_that_holds_no_model_is_told(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text('{"hidden_size": 8}')
    settings = EmbedderSettings(embedder=ModelSettings(model=str(tmp_path / "own")))
    async with (
        open_embedders(settings, os.environ, tmp_path, FakeClock()) as embedders,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(work()) for work in embedders.work]
        assert embedders.chain
        with pytest.raises(Exception, match="holds no model"):
            await embedders.chain[0].embed(["a"])
        for task in tasks:
            task.cancel()
