"""The embedder that ships with agentd: a table of word vectors, summed. No network, no model
runtime.

`scripts/distil_static.py` makes the table from a sentence transformer. The table is memory-mapped:
processes share its pages, and only the rows of words that occur are loaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.wordpiece import WordPiece

PACKAGED = Path(__file__).with_name("static_minilm")
CURE = "Reinstall agentd (pip install --force-reinstall --no-deps agentd), then restart it."
# The beginning tells what a text is about; a chunk is seldom longer than a paragraph.
LONGEST_TEXT = 20_000
# Texts for one hop to a thread: a few milliseconds, so that a cancelled caller's thread is soon
# free.
TEXTS_AT_ONCE = 256


class StaticEmbedder:
    """A text's vector is the sum of its words' rows, scaled to length 1. Made by `load`."""

    def __init__(
        self,
        model: str,
        pieces: WordPiece,
        table: npt.NDArray[np.uint8],
        scales: npt.NDArray[np.float32],
    ) -> None:
        self._model = model
        self._pieces = pieces
        self._table = table
        self._scales = scales

    @property
    def model(self) -> str:
        """The identity of the vectors: name, digest of the table, dimension."""
        return self._model

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return 2 * int(self._table.shape[1])

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Compute one vector for each text, in a thread; zeros for a text without a word of the
        table.

        Only the first `LONGEST_TEXT` characters of a text count.
        """
        vectors: list[bytes] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = texts[start : start + TEXTS_AT_ONCE]
            vectors += await asyncio.to_thread(self._embed_part, part)
        return vectors

    def _embed_part(self, texts: Sequence[str]) -> list[bytes]:
        return [
            self._vector(text[:LONGEST_TEXT]).astype("<f4", copy=False).tobytes() for text in texts
        ]

    def _vector(self, text: str) -> npt.NDArray[np.float32]:
        rows = self._pieces.rows(text)
        if not rows:
            return np.zeros(self.dimension, np.float32)
        pairs = self._table[rows]  # two numbers of 4 bits in a byte
        numbers = np.stack([pairs & 15, pairs >> 4], -1).reshape(len(rows), -1).astype(np.float32)
        total: npt.NDArray[np.float32] = self._scales[rows] @ (numbers - 8)
        length = np.sqrt(total @ total)
        return total / length if length > 0 else total


def load(folder: Path = PACKAGED) -> StaticEmbedder:
    """Load the model in `folder`, after checking every file against its digest. Blocking, 0.1 s.

    Raises EmbedderFault when a file is missing or has another digest.
    """
    try:
        card: dict[str, Any] = json.loads((folder / "model.json").read_bytes())
        for name, digest in card["sha256"].items():
            if _digest(folder / name) != digest:
                raise EmbedderFault(f"{folder / name} is not the file that was shipped.", cure=CURE)
        vocabulary = (folder / "vocabulary.txt").read_text("utf-8").split("\n")
        table = np.load(folder / "table.npy", mmap_mode="r")
        scales = np.load(folder / "scales.npy")
        return StaticEmbedder(card["model"], WordPiece(vocabulary), table, scales)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise EmbedderFault(f"The model in {folder} cannot be read: {error}.", cure=CURE) from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
