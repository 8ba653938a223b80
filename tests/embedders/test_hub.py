"""A model from the hub is fetched once, without what is not needed, and without anybody's token."""

import subprocess
import sys

import pytest

from agentd.memory.index.embedding.export import clean
from agentd.memory.index.embedding.places import hub_marker
from tests.embedders.hub_server import COMMIT, NAME, a_hub

pytest.importorskip("huggingface_hub", reason="the extra onnx is not installed (EXTRAS=onnx)")

FETCH = """
import sys
from agentd.memory.index.embedding.hub import fetch
from agentd.memory.index.embedding.spec import ModelSpec
from agentd.core.errors import EmbedderFault

spec = ModelSpec("sentence-transformers", "tiny", sys.argv[1], 4, download=sys.argv[2])
try:
    print(fetch(spec, lambda text: print(text, file=sys.stderr)))
except EmbedderFault as fault:
    print("fault:", fault.message, fault.cure)
"""


@pytest.fixture
def fetching(tmp_path):
    """What fetching prints, in a process with the environment of an embedder's."""

    def fetching(endpoint: str, name: str = NAME, *, is_online: bool = True) -> str:
        environ = {"HF_ENDPOINT": endpoint, "HF_TOKEN": "hf_SENTINEL", "PYTHONPATH": "."}
        done = subprocess.run(
            [sys.executable, "-c", FETCH, name, str(tmp_path / "hub")],
            env=clean(environ, tmp_path, 1, is_online=is_online),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return fetching


def test_a_model_is_fetched_once_and_without_what_is_not_needed(fetching, tmp_path):
    with a_hub() as (hub, endpoint):
        folder = fetching(endpoint)
        assert COMMIT in folder
        assert sorted(hub.fetched) == ["config.json", "model.safetensors"]
        assert "SENTINEL" not in "".join(hub.headers)
    assert hub_marker(tmp_path / "hub", NAME, "").is_file()
    assert fetching("http://127.0.0.1:9", is_online=False) == folder


def test_a_name_that_the_hub_does_not_know_is_told(fetching):
    with a_hub() as (_, endpoint):
        told = fetching(endpoint, "someone/else")
    assert told.startswith("fault: someone/else cannot be fetched")


def test_a_hub_that_cannot_be_reached_is_told(fetching):
    assert "cannot be fetched" in fetching("http://127.0.0.1:9")
