"""What the daemon gets, and what it does not have to load for it."""

import os
import subprocess
import sys

import pytest

from agentd.app.assembly import memory
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.config import Config
from agentd.core.errors import EmbedderFault
from agentd.core.paths import daemon_places
from agentd.core.turn import Origin, Usage
from agentd.engine.budget import Budget, BudgetSettings, TokenPrice
from agentd.memory.index.embedding import lazy_static
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, ModelSettings
from agentd.memory.index.embedding.export import Exporter, clean
from agentd.memory.index.embedding.places import are_installed
from agentd.testing import MemoryLedger

IMPORTS = """
import asyncio, sys
from pathlib import Path
import agentd.app.application
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
from agentd.testing import FakeClock

HEAVY = {"torch", "sentence_transformers", "transformers", "onnxruntime", "onnx", "tokenizers",
         "huggingface_hub", "numpy"}

async def main():
    for provider in ("auto", "sentence-transformers", "onnx", "openai", "static"):
        settings = EmbedderSettings(provider=provider)
        environ = {"OPENAI_API_KEY": "sk-x"}
        async with open_embedders(settings, environ, Path(sys.argv[1]), FakeClock()) as embedders:
            assert [(e.model, e.dimension) for e in embedders.chain]
            assert embedders.status()["why"]

asyncio.run(main())
print(sorted(HEAVY & {name.split(".")[0] for name in sys.modules}))
"""


EMBEDS = """
import asyncio, os, sys
from pathlib import Path
import agentd.app.application
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
from agentd.testing import FakeClock

HEAVY = {"torch", "sentence_transformers", "transformers", "onnxruntime", "onnx", "tokenizers"}

async def main():
    async with (
        open_embedders(EmbedderSettings(), os.environ, Path(sys.argv[1]), FakeClock()) as embedders,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(work()) for work in embedders.work]
        (row,) = await embedders.chain[0].embed(["where is the key?"], query=True)
        print(embedders.chain[0].model, len(row))
        for task in tasks:
            task.cancel()

asyncio.run(main())
print(sorted(HEAVY & {name.split(".")[0] for name in sys.modules}))
"""


def printed(script: str, state) -> list[str]:
    command = [sys.executable, "-c", script, str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_choosing_loads_no_library_of_a_model(tmp_path):
    assert printed(IMPORTS, tmp_path)[-1] == "[]"


def test_the_daemon_gets_the_sentence_models_vectors_without_loading_its_libraries(tmp_path):
    *_, made, loaded = printed(EMBEDS, tmp_path)
    assert made.startswith("all-MiniLM-L6-v2-8199be6f699a+multilingual-e5-small-packed-")
    assert made.endswith(" 3072")
    assert loaded == "[]"


async def test_static_vectors_are_the_best_where_nothing_else_is(tmp_path, clock):
    settings = EmbedderSettings(provider="static")
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        assert len(embedders.chain) == 1
        assert embedders.work == ()
        assert embedders.chain
        (row,) = await embedders.chain[0].embed(["a cat"])
        assert len(row) == 4 * embedders.chain[0].dimension
        assert embedders.status() == {"provider": "static", "why": "configured"}


async def test_none_means_none(tmp_path, clock):
    settings = EmbedderSettings(provider="none")
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        assert embedders.chain == ()
        assert embedders.problems() == ()


async def test_a_service_has_static_vectors_behind_it(tmp_path, clock, service):
    model = ModelSettings(base_url=service.url, model="m", dimension=3)
    settings = EmbedderSettings(provider="openai", embedder=model)
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        best, first = embedders.chain
        assert len((await best.embed(["a"], query=True))[0]) == 12
        await best.embed(["a"], query=True)
        assert first.model.startswith("static")
    assert len(service.requests) == 1


async def test_what_a_service_reads_is_in_the_ledger_under_its_own_name(tmp_path, clock, service):
    model = ModelSettings(base_url=service.url, model="m-1", dimension=3)
    search = Config().memory_search.model_copy(update={"provider": "openai", "embedder": model})
    config = Config(memory_search=search)
    environ = {"AGENTD_HOME": str(tmp_path)}
    budget = Budget(BudgetSettings(prices={"m": TokenPrice(input=2.0, output=0.0)}))
    runtime = RuntimeContext(config, daemon_places(environ), clock, environ, budget)
    ledger = MemoryLedger(clock)
    async with memory.open_embedders(runtime, ledger) as embedders:
        await embedders.chain[0].embed(["a", "b"])
        await embedders.chain[0].embed(["c"], query=True)
        await embedders.chain[0].embed(["c"], query=True)  # known by now
    (charge, _) = await ledger.entries()
    assert (charge.session, charge.origin, charge.model) == ("", Origin.EMBEDDING, "m-1")
    assert (charge.usage, charge.cost_usd) == (Usage(10), pytest.approx(20e-6))


async def test_what_cannot_be_had_is_a_problem_and_static_vectors_stand_in(tmp_path, clock):
    settings = EmbedderSettings(provider="openai")
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        (problem,) = embedders.problems()
        assert problem.code == "embedder_unavailable"
        assert "OPENAI_API_KEY" in problem.cure
        assert embedders.chain
        assert embedders.chain[0].model.startswith("static")


def test_a_packaged_model_without_its_card_is_told(tmp_path):
    with pytest.raises(EmbedderFault, match="cannot be read"):
        lazy_static.packaged_static(tmp_path / "model.json")


@pytest.mark.skipif(are_installed("torch"), reason="torch is installed")
async def test_an_export_without_torch_says_what_to_install(tmp_path):
    with pytest.raises(EmbedderFault) as caught:
        await Exporter(ModelSettings(), os.environ, tmp_path).export()
    assert "agentd-daemon[embeddings,onnx]" in caught.value.cure


def test_only_a_download_sees_the_way_to_the_network(tmp_path):
    environ = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "ANTHROPIC_API_KEY": "sk-a",
        "HF_TOKEN": "hf-a",
        "CREDENTIALS_DIRECTORY": "/run/credentials",
        "AGENTD_HOME": "/home/a",
    }
    offline = clean(environ, tmp_path, 1)
    online = clean(environ, tmp_path, 1, is_online=True)
    assert "HTTPS_PROXY" not in offline
    assert offline["HF_HUB_OFFLINE"] == offline["TRANSFORMERS_OFFLINE"] == "1"
    assert online["HTTPS_PROXY"] == "http://proxy"
    assert "HF_HUB_OFFLINE" not in online
    for name in ("ANTHROPIC_API_KEY", "HF_TOKEN", "CREDENTIALS_DIRECTORY", "AGENTD_HOME"):
        assert name not in offline
        assert name not in online
