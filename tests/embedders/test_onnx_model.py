"""A net in ONNX format: its vectors, its limits, and the real process around it."""

import asyncio
import json
import os
import struct

import numpy as np
import pytest

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.export import clean
from agentd.memory.index.embedding.onnx_files import sha256
from agentd.memory.index.embedding.spec import ModelSpec
from agentd.memory.index.embedding.worker import Worker
from agentd.testing import FakeClock
from tests.embedders.tiny_net import make_net

for package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(package, reason="the extra onnx is not installed (EXTRAS=onnx)")


@pytest.fixture
def folder(tmp_path):
    return make_net(tmp_path / "tiny")


@pytest.fixture
def net(folder):
    from agentd.memory.index.embedding.onnx_model import OnnxModel

    return OnnxModel(folder / "model.onnx", 1)


def test_a_vector_is_the_mean_over_the_tokens_and_not_over_the_padding(net):
    rows = net.embed(["cat", "cat dog", "cat dog dog dog"], query=False)
    assert net.dimension == 3
    assert rows[0].tolist() == [1, 0, 0]
    assert rows[1] == pytest.approx([0.5**0.5, 0.5**0.5, 0])
    assert rows[2] == pytest.approx(np.array([1, 3, 0]) / 10**0.5)
    assert np.array_equal(rows[0], net.embed(["cat"], query=True)[0])


def test_a_blank_text_has_no_direction(net):
    assert net.embed(["", " \n"], query=False).tolist() == [[0, 0, 0]] * 2
    assert net.embed(["", "cat"], query=False)[1].tolist() == [1, 0, 0]


def test_nothing_of_a_long_text_is_lost(net):
    (row,) = net.embed(["cat cat cat cat dog dog dog dog"], query=False)
    assert row == pytest.approx([0.5**0.5, 0.5**0.5, 0])


def test_windows_end_between_words_and_keep_to_the_limit(net):
    from agentd.memory.index.embedding.windows import MOST_WINDOWS, windows

    text = "cat dog house tree cat " * 3
    parts = windows(text, net._tokenizer, 4)
    assert [part.split() for part in parts] == [text.split()[at : at + 4] for at in (0, 4, 8, 12)]
    assert len(windows("cat " * 1000, net._tokenizer, 4)) == MOST_WINDOWS


@pytest.mark.parametrize("text", ["\0", "🎉 cat", "日本語", "a" * 20_000, "' \" \\", "\u202ecat"])
def test_any_text_has_a_vector(net, text):
    assert np.isfinite(net.embed([text], query=False)).all()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_told(folder, name):
    from agentd.memory.index.embedding.onnx_model import OnnxModel

    (folder / name).write_bytes(b"nonsense")
    with pytest.raises(EmbedderFault, match="cannot be loaded"):
        OnnxModel(folder, 1)


async def test_the_real_process_serves_it_and_refuses_a_changed_export(folder, tmp_path):
    card = {"model": "tiny", "dimension": 3, "limit": 4}
    card["sha256"] = {name: sha256(folder / name) for name in ("model.onnx", "tokenizer.json")}
    (folder / "manifest.json").write_text(json.dumps(card))
    clock, models = FakeClock(), tmp_path / "models"
    spec = ModelSpec("onnx", "tiny-3", str(folder), 3)
    worker = Worker(spec, clean(os.environ, models, 1), models, clock)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(worker.run())
        rows = await worker.embed(["dog", "cat"])
        assert [struct.unpack("<3f", row) for row in rows] == [(0, 1, 0), (1, 0, 0)]
        os.kill(worker.pid, 9)
        (folder / "model.onnx").write_bytes(b"changed")
        with pytest.raises(EmbedderFault):
            await worker.embed(["dog"])
        await clock.advance(2)
        with pytest.raises(EmbedderFault, match="not the file that its manifest names"):
            await worker.embed(["dog"])
        run.cancel()
