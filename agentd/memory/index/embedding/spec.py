"""The first message to an embedder process: which model to load, and how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import asdict

Backend = Literal["sentence-transformers", "onnx", "multilingual", "both"]


class ModelSpec(Struct, frozen=True):
    """A model, its location, and how to run it."""

    backend: Backend
    identity: str  # a name that changes whenever the vectors may change
    source: str  # a folder, an .onnx file, a manifest, or a name on the hub
    dimension: int
    revision: str = ""
    download: str = ""  # the folder for downloads from the hub; "" for a local model
    threads: int = 1
    memory_limit_mb: int = 4000
    idle: float = 600.0  # seconds without work until the process ends
    timeout: float = 60.0  # seconds for one batch
    query_prefix: str = ""
    text_prefix: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the fields for a frame's head."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Build the spec from a frame's head."""
        return cls(**values)
