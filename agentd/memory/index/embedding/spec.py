"""What an embedder process is told when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Backend = Literal["sentence-transformers", "onnx", "multilingual", "both"]


@dataclass(frozen=True, slots=True)
class Spec:
    """A model, where it is, and how it is run."""

    backend: Backend
    identity: str  # what the vectors depend on, in one word
    source: str  # a folder, an .onnx file, a manifest, or a name on the hub
    dimension: int
    revision: str = ""
    download: str = ""  # the folder for what is fetched from the hub; "" for a model that is here
    threads: int = 1
    memory_limit_mb: int = 4000
    idle: float = 600.0  # seconds without work until the process ends
    timeout: float = 60.0  # seconds for one batch
    query_prefix: str = ""
    text_prefix: str = ""

    def as_json(self) -> dict[str, Any]:
        """For the wire."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """From the wire."""
        return cls(**values)
