import asyncio
import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
import tomli

from agentd.core.errors import EmbedderFault
from agentd.core.ports import Embedder
from agentd.memory.index.embedding.static import LONGEST_TEXT, PACKAGED, StaticEmbedder, load

ROOT = Path(__file__).resolve().parents[2]

# The first numbers of vectors of the shipped model.
KNOWN = {
    "The cat sleeps.": [0.0718, 0.0106, -0.0809, 0.0238, -0.0792],
    "How do I get onto the wifi?": [0.1410, 0.0604, -0.1589, 0.1963, 0.0758],
    "naïve Café 24h": [-0.0873, 0.0654, 0.0019, -0.0876, 0.0989],
}

# What the teacher, all-MiniLM-L6-v2, says of pairs of sentences (cosine).
TEACHER = [
    ("The cat is sleeping on the sofa.", "A kitten naps on the couch.", 0.698),
    ("The invoice was paid twice by mistake.", "There was an accounting error.", 0.502),
    ("The server ran out of disk space.", "The machine's storage is full.", 0.447),
    ("The cat is sleeping on the sofa.", "The invoice was paid twice by mistake.", -0.075),
    ("The server ran out of disk space.", "We hiked up the volcano at sunrise.", 0.041),
]

ODD = ["", " ", "\0", "🙂🙃", "\ud800", "a\udfff b", "?!", "a" * 100_000, "é" * 30, "日本語 テスト",
       "word " * 20_000, "\x1b[31m", "0" * 5_000, "%s {x} \\"]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load()


async def vectors(embedder: Embedder, *texts: str) -> np.ndarray:
    rows = await embedder.embed(texts)
    return np.stack([np.frombuffer(row, "<f4") for row in rows])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGED, tmp_path / "model"))


@pytest.mark.parametrize("text", KNOWN)
async def test_the_shipped_model_gives_known_vectors(embedder: Embedder, text: str) -> None:
    (vector,) = await vectors(embedder, text)
    assert vector[:5] == pytest.approx(KNOWN[text], abs=1e-3)


async def test_vectors_have_the_promised_size_and_length_one(embedder: Embedder) -> None:
    found = await vectors(embedder, "tea without sugar", "the flight leaves at six")
    assert found.shape == (2, embedder.dimension) == (2, 256)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize(("left", "right", "cosine"), TEACHER)
async def test_it_agrees_with_its_teacher(
    embedder: Embedder, left: str, right: str, cosine: float
) -> None:
    a, b = await vectors(embedder, left, right)
    assert float(a @ b) == pytest.approx(cosine, abs=0.2)


async def test_questions_find_notes_that_share_hardly_a_word_with_them(embedder: Embedder) -> None:
    lines = Path(__file__).with_name("paraphrases.tsv").read_text("utf-8").splitlines()
    notes, questions = zip(*(line.split("\t") for line in lines), strict=True)
    scores = await vectors(embedder, *questions) @ (await vectors(embedder, *notes)).T
    before = (scores > scores.diagonal()[:, None]).sum(1)  # notes that rank above the right one
    assert len(lines) == 100
    assert (before == 0).mean() > 0.6
    assert (before < 3).mean() > 0.8


async def test_a_vector_does_not_depend_on_what_is_embedded_with_it(embedder: Embedder) -> None:
    texts = [f"note {number} about the garden and the {number % 7} cats" for number in range(600)]
    together = await embedder.embed(texts)
    alone = [(await embedder.embed([text], query=True))[0] for text in texts[::50]]
    assert list(together[::50]) == alone


async def test_several_threads_at_once_give_the_same_vectors() -> None:
    shared, texts = load(), [f"unseen{chr(97 + n % 26)}word {n}" for n in range(500)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(shared.embed(texts)) for _ in range(4)]
    expected = await load().embed(texts)
    assert all(task.result() == expected for task in tasks)


async def test_no_text_is_too_odd(embedder: Embedder) -> None:
    found = await vectors(embedder, *ODD)
    lengths = np.linalg.norm(found, axis=1)
    assert np.isfinite(found).all()
    assert ((abs(lengths - 1) < 1e-5) | (lengths == 0)).all()


@pytest.mark.parametrize("text", ["", "?!", "\ud800", "🙂"])
async def test_a_text_without_words_is_all_zero(embedder: Embedder, text: str) -> None:
    (vector,) = await vectors(embedder, text)
    assert not vector.any()


async def test_only_the_beginning_of_a_long_text_counts(embedder: Embedder) -> None:
    beginning = "garden " * (LONGEST_TEXT // 7 + 1)
    a, b = await vectors(
        embedder, beginning[:LONGEST_TEXT], beginning[:LONGEST_TEXT] + " taxes" * 999
    )
    assert (a == b).all()


async def test_nothing_asked_is_nothing_given(embedder: Embedder) -> None:
    assert list(await embedder.embed([])) == []


@pytest.mark.parametrize("name", ["table.npy", "scales.npy", "vocabulary.txt"])
def test_a_damaged_file_is_refused_with_a_cure(copy: Path, name: str) -> None:
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    with pytest.raises(EmbedderFault, match=name) as caught:
        load(copy)
    assert "Reinstall" in caught.value.cure


@pytest.mark.parametrize("name", ["table.npy", "model.json"])
def test_a_missing_file_is_refused_with_a_cure(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(EmbedderFault, match="cannot be read") as caught:
        load(copy)
    assert caught.value.cure


@pytest.mark.parametrize("card", ["", "[]", "{}", '{"sha256": {}}', '{"sha256": []}', "\ud800"])
def test_a_card_of_another_shape_is_refused(copy: Path, card: str) -> None:
    (copy / "model.json").write_bytes(card.encode("utf-8", "surrogatepass"))
    with pytest.raises(EmbedderFault):
        load(copy)


def test_the_model_is_named_after_its_table(embedder: Embedder) -> None:
    card = json.loads((PACKAGED / "model.json").read_text())
    assert embedder.model == card["model"]
    assert card["sha256"]["table.npy"].startswith(embedder.model.rpartition("-")[2])


def test_the_model_is_small_and_carries_its_licence() -> None:
    files = {path.name: path.stat().st_size for path in PACKAGED.iterdir()}
    assert sum(files.values()) < 10_000_000
    assert files["LICENSE"]
    assert files["NOTICE"]


def test_every_file_of_the_model_goes_into_the_wheel() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["agentd"]
    for path in PACKAGED.iterdir():
        name = path.relative_to(ROOT / "agentd").as_posix()
        assert any(fnmatch(name, pattern) for pattern in patterns)


def test_the_embedder_fits_the_port() -> None:
    fits: type[Embedder] = StaticEmbedder
    assert fits is StaticEmbedder
