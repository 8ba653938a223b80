"""The sentence model for English by itself: the real weights in the real process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from msgspec.structs import replace

from agentd.memory.index.embedding.choice import choose
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
from agentd.memory.index.embedding.export import clean
from agentd.memory.index.embedding.worker import Worker
from agentd.testing import FakeClock

NOTES = ("Anna has adopted a puppy.", "the invoice is due on Friday", "how to bake bread")
ASKED = ("who got a young dog?", "when must the bill be paid?", "making a loaf at home")
FILLER = "The meeting about the budget was moved again. " * 60


@asynccontextmanager
async def running(folder, **changes) -> AsyncIterator[Worker]:
    """The embedder of a daemon that was told to use it."""
    spec = choose(EmbedderSettings(provider="onnx"), {}, folder).spec
    assert spec is not None
    spec = replace(spec, **changes)
    worker = Worker(spec, clean(os.environ, folder, 1), folder, FakeClock())
    async with asyncio.TaskGroup() as group:
        run = group.create_task(worker.run())
        yield worker
        run.cancel()


def rows(found) -> np.ndarray:
    return np.array([np.frombuffer(row, "<f4") for row in found])


async def test_what_means_the_same_is_near_without_a_shared_word(tmp_path):
    async with running(tmp_path) as worker:
        notes = rows(await worker.embed(NOTES))
        asked = rows(await worker.embed(ASKED, query=True))
        assert worker.dimension == notes.shape[1] == 384
        assert np.linalg.norm(notes, axis=1) == pytest.approx(1)
        assert (asked @ notes.T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_the_end_of_a_long_text_counts_and_a_blank_one_has_no_direction(tmp_path):
    async with running(tmp_path) as worker:
        long, with_news, blank, news = rows(
            await worker.embed((FILLER, FILLER + NOTES[0] * 20, " ", NOTES[0]))
        )
    assert with_news @ news > long @ news + 0.1
    assert not blank.any()


async def test_a_text_has_one_vector_whatever_is_embedded_beside_it(tmp_path):
    async with running(tmp_path) as worker:
        (alone,) = rows(await worker.embed(NOTES[:1]))
        beside = rows(await worker.embed((NOTES[0], FILLER, "x")))[0]
    assert alone @ beside > 0.995  # its numbers are rounded for all of a batch at once


async def test_the_process_ends_when_it_is_idle_and_another_comes_when_it_is_needed(tmp_path):
    async with running(tmp_path, idle=0.2) as worker:
        before = await worker.embed(NOTES)
        pid = worker.pid
        async with asyncio.timeout(60):
            while worker.pid is not None:
                await asyncio.sleep(0.05)
        assert await worker.embed(NOTES) == before
        assert worker.pid not in (None, pid)
