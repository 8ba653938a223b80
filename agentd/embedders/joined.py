"""Several models as one: their vectors one behind the other, each with its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Model(Protocol):
    """What turns texts into vectors."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """One row of length 1 for each text, or of zeros."""


class Joined:
    """The cosine of two of its vectors is the weighted mean of the models' cosines."""

    def __init__(self, parts: Sequence[tuple[Model, float]]) -> None:
        self._parts = parts
        self.dimension = sum(model.dimension for model, _ in parts)

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """One row of length 1 for each text, of zeros where all models have none."""
        rows = [model.embed(texts, query=query) * weight**0.5 for model, weight in self._parts]
        found: npt.NDArray[np.float32] = np.concatenate(rows, axis=1).astype(np.float32)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found
