"""Fetches a model from the hub, once. Imported only by the embedder process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.places import hub_marker
from agentd.memory.index.embedding.spec import ModelSpec

WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
UNWANTED = ("onnx/*", "openvino/*", "*/onnx/*")
_EVERY = 2.0  # seconds between two reports of progress


def fetch(spec: ModelSpec, tell: Callable[[str], None]) -> str:
    """Return the folder with the model, after downloading it if necessary. Raises EmbedderFault."""
    cache = Path(spec.download)
    marker = hub_marker(cache, spec.source, spec.revision)
    if marker.is_file():
        return str(json.loads(marker.read_bytes())["folder"])
    try:
        files = HfApi().model_info(spec.source, revision=spec.revision or None, files_metadata=True)
        total = sum(file.size or 0 for file in files.siblings or [] if _is_wanted(file.rfilename))
        with _Watch(cache, total, tell):
            folder: str = snapshot_download(
                spec.source,
                revision=files.sha,
                cache_dir=cache,
                allow_patterns=list(WANTED),
                ignore_patterns=list(UNWANTED),
                token=False,
            )
    except Exception as error:  # the exceptions of its HTTP client change with versions
        raise EmbedderFault(
            f"{spec.source} cannot be fetched from the hub: {str(error)[:200]}",
            cure="Check the name and the network, or let model name a folder.",
        ) from error
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps({"folder": folder, "commit": files.sha}), encoding="utf-8")
    return folder


def _is_wanted(name: str) -> bool:
    path = Path(name)
    return any(map(path.match, WANTED)) and not any(map(path.match, UNWANTED))


class _Watch:
    """Reports how much of a download has arrived, from another thread."""

    def __init__(self, folder: Path, total: int, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._total = total
        self._tell = tell
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._before = _size(folder)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(_EVERY):
            here = (_size(self._folder) - self._before) >> 20
            self._tell(f"fetched {here} of {self._total >> 20} MB")


def _size(folder: Path) -> int:
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                found += path.stat().st_size
    return found
