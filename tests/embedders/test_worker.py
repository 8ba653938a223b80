"""A model in another process: whatever the process does, who asks gets vectors or an
EmbedderFault.
"""

import asyncio
import math
import os
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agentd.core.errors import EmbedderFault
from agentd.core.search import Chunk, Source
from agentd.core.times import parse_duration
from agentd.memory.index.embedding import worker as workers
from agentd.memory.index.search.backfill import Backfill, ChunkBacklog
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.patient_embedder import PatientEmbedder
from agentd.testing import MemoryChunks
from tests.waiting import until


async def fault(worker, *texts):
    with pytest.raises(EmbedderFault) as caught:
        await worker.embed(texts)
    return caught.value


async def gone(pid: int) -> bool:
    await until(lambda: not Path(f"/proc/{pid}/stat").exists(), "the process is gone")
    return True


async def test_every_text_gets_its_vector_of_length_one_in_order(serving):
    texts = [f"text {number} {'x' * (number * 37 % 50)}" for number in range(100)]
    async with serving() as worker:
        together = await worker.embed(texts)
        alone = [(await worker.embed([text]))[0] for text in texts]
    assert together == alone
    assert len(set(together)) > 10
    assert all(math.hypot(*struct.unpack("<4f", row)) == pytest.approx(1) for row in together)


async def test_batches_hold_few_texts_of_like_length(serving, told):
    texts = ["long " * 800] * 3 + ["brief"] * 40
    async with serving() as worker:
        await worker.embed(texts)
    batches = [request["texts"] for request in told("asked")]
    assert [len(batch) for batch in batches] == [32, 9, 1, 1]
    assert batches[0] == ["brief"] * 32


async def test_the_process_has_its_title_and_no_secret(serving, told, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-SENTINEL")
    async with serving() as worker:
        await worker.embed(["a"])
        place = Path(f"/proc/{worker.pid}")
        assert place.joinpath("comm").read_text().strip() == "agentd-embedder"
        assert place.joinpath("cmdline").read_bytes().strip(b"\0") == b"agentd-embedder"
        assert b"SENTINEL" not in place.joinpath("environ").read_bytes()
    (start,) = told("starts")
    assert start["environ"]["HF_HUB_OFFLINE"] == start["environ"]["TRANSFORMERS_OFFLINE"] == "1"
    assert start["environ"]["OMP_NUM_THREADS"] == "1"
    assert "sk-SENTINEL" not in str(start)


async def test_no_process_runs_before_the_first_text_or_after_the_end(serving):
    async with serving() as worker:
        assert worker.pid is None
        await worker.embed([])
        assert worker.pid is None
        await worker.embed(["a"])
        pid = worker.pid
    assert pid is not None
    assert await gone(pid)


async def test_it_may_be_run_again(serving):
    async with serving() as worker:
        before = await worker.embed(["a"])
    async with asyncio.TaskGroup() as group:
        run = group.create_task(worker.run())
        await asyncio.sleep(0)
        assert await worker.embed(["a"]) == before
        run.cancel()


async def test_who_asked_is_told_when_a_flaw_ends_it(tmp_path, clock, fake):
    spec = workers.ModelSpec("onnx", "fake-4", "fine", 4)
    worker = workers.Worker(spec, {"NO_ENVIRONMENT": "\0"}, tmp_path, clock, fake)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(10):
        assert "has stopped" in (await fault(worker, "a")).message
    with pytest.raises(ValueError, match="null byte"):
        await running


async def test_a_killed_process_costs_its_batch_and_a_pause(serving, clock, told):
    async with serving() as worker:
        told_so = await fault(worker, "crash")
        assert "SIGKILL" in told_so.message
        assert "The next try comes in 1s" in (await fault(worker, "b")).message
        await clock.advance(1.1)
        assert len(await worker.embed(["crash", "b"])) == 2
    assert [request["texts"] for request in told("asked")] == [["crash"], ["b", "crash"]]
    assert len(told("starts")) == 2


async def test_a_process_that_is_killed_between_two_batches_is_told_and_replaced(serving, clock):
    async with serving() as worker:
        before = await worker.embed(["a"])
        os.kill(worker.pid, signal.SIGKILL)
        with suppress(EmbedderFault):  # the daemon may know already that it is gone
            await worker.embed(["a"])
        await clock.advance(1.1)
        assert await worker.embed(["a"]) == before


async def test_a_text_that_kills_every_process_does_not_keep_the_others_from_their_vectors(
    serving, clock, told
):
    store, stored = MemoryChunks(), {}

    async def tell(model, vectors):
        stored.update(vectors)

    texts = [*(f"text {number}" for number in range(40)), "poison", "the last"]
    chunks = [
        Chunk("a.md", line, line, text, Source.NOTES, "main") for line, text in enumerate(texts, 1)
    ]
    await store.replace("a.md", "d", [entry(chunk) for chunk in chunks])
    async with serving() as worker:
        backlog = ChunkBacklog(store, worker.model, tell)
        backfill = Backfill(PatientEmbedder(worker, clock), backlog)
        for _ in range(60):
            if await backfill.fill():
                break
            await clock.advance(1)
        (problem,) = backfill.problems()
    assert (problem.code, len(stored)) == ("text_not_embedded", 41)
    assert "a.md:41" in problem.text
    assert len(told("starts")) < 10


async def test_the_pause_doubles_with_each_failure_and_ends_with_a_success(serving, clock):
    async with serving("broken") as worker:
        pauses = []
        for _ in range(12):
            assert "the model is broken" in (await fault(worker, "a")).message
            again = await fault(worker, "a")
            pauses.append(
                parse_duration(again.message.split()[-1].removesuffix(".")).total_seconds()
            )
            assert again.cure == "mend it"
            await clock.advance(pauses[-1] + 0.1)
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("garbage", "a frame of"),
        ("short", "numbers"),
        ("nan", "not finite"),
        ("other", "another question"),
        ("raise", "ValueError: no"),
    ],
)
async def test_nonsense_is_refused_and_the_process_replaced(serving, clock, told, text, words):
    async with serving() as worker:
        await worker.embed(["a"])
        pid = worker.pid
        assert words in (await fault(worker, text)).message
        assert await gone(pid)
        await clock.advance(1.1)
        assert len(await worker.embed(["a"])) == 1
        assert worker.pid != pid
    assert len(told("starts")) == 2


async def test_a_process_that_hangs_is_killed(serving, clock):
    async with serving(timeout=1) as worker:
        await worker.embed(["a"])
        pid = worker.pid
        assert "no answer in time" in (await fault(worker, "hang")).message
        assert await gone(pid)


async def test_another_dimension_is_named_with_its_cure(serving):
    async with serving("five") as worker:
        told_so = await fault(worker, "a")
    assert "vectors of 5 numbers, not of 4" in told_so.message
    assert "dimension = 5" in told_so.cure


async def test_an_idle_process_ends_and_the_next_text_starts_another_at_once(serving, told):
    async with serving(idle=0.05) as worker:
        before = await worker.embed(["a"])
        assert await gone(worker.pid or 0)
        assert await worker.embed(["a"]) == before
        assert await gone(told("starts")[-1]["pid"])
    assert len(told("starts")) == 2


async def test_a_question_overtakes_texts_that_wait(serving, told, let_go):
    texts = [f"slow {number}" * 600 for number in range(6)]
    async with serving() as worker, asyncio.TaskGroup() as group:
        await worker.embed(["warm"])
        group.create_task(worker.embed(["slow", *texts]))
        await until(lambda: len(told("asked")) == 2, "the process is at work")
        question = group.create_task(worker.embed(["where?"], query=True))
        await asyncio.sleep(0)
        let_go()
        await question
        asked = [request["texts"] for request in told("asked")]
        assert ["where?"] in asked[:4]


async def test_who_leaves_early_disturbs_nobody(serving, told, let_go):
    async with serving() as worker:
        early = asyncio.ensure_future(worker.embed(["slow"]))
        await until(lambda: told("asked"), "the process is at work")
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early
        let_go()
        assert len(await worker.embed(["a", "b"])) == 2


async def test_prefixes_stand_before_questions_and_texts(serving, told):
    async with serving(query_prefix="query: ", text_prefix="passage: ") as worker:
        await worker.embed(["a"])
        await worker.embed(["b"], query=True)
    assert [request["texts"] for request in told("asked")] == [["passage: a"], ["query: b"]]


async def test_any_text_travels(serving):
    texts = ["", "\0", "\ud800 alone", "日本語", "🎉" * 100, "x" * 100_000]
    async with serving() as worker:
        assert len(await worker.embed(texts)) == len(texts)


async def test_after_the_end_there_is_a_fault_and_no_waiting(serving):
    async with serving() as worker:
        await worker.embed(["a"])
    assert "stopped" in (await fault(worker, "a")).message


async def test_what_still_waits_at_the_end_gets_a_fault(serving, told):
    async with serving() as worker:
        waiting = asyncio.ensure_future(asyncio.shield(fault(worker, "slow", "b" * 5999)))
        await until(lambda: told("asked"), "the process is at work")
    assert "stopped" in (await waiting).message


async def test_the_process_dies_with_its_parent(tmp_path, fake):
    script = tmp_path / "parent.py"
    script.write_text(
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from agentd.memory.index.embedding.worker import EmbedderProcess\n"
        "from agentd.memory.index.embedding.frames import Frame\n"
        "async def main():\n"
        "    child = await EmbedderProcess.start(dict(os.environ), Path('.'), sys.argv[1:])\n"
        "    await child.send(Frame({'source': 'fine', 'idle': 60}))\n"
        "    await child.receive()\n"
        "    await child.send(Frame({'id': 1, 'texts': ['hang'], 'query': False}))\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(script), *fake, stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    assert await gone(pid)


def test_the_real_command_is_the_worker_module():
    assert workers.COMMAND[0] == sys.executable
    assert workers.COMMAND[-1] == "agentd.memory.index.embedding.worker_main"
