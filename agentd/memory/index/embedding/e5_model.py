"""multilingual-e5-small, run by onnxruntime. Imported only by the embedder process.

The model's vectors lie in a narrow cone, grouped by language. Two fixed corrections are applied:
the mean of all vectors is subtracted, and the axes along which languages differ are projected out.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.e5_files import E5Files
from agentd.memory.index.embedding.e5_weights import WIDTH, E5Weights, Floats, PackedWeights, Tensor
from agentd.memory.index.embedding.onnx_model import session
from agentd.memory.index.embedding.unigram import UnigramTokenizer, UnigramVocabulary
from agentd.memory.index.embedding.windows import embed_whole

_PREFIXES = {True: "query:", False: "passage:"}  # as in the model's training


class ModelWeights(Protocol):
    """The weights of the model, from either file format."""

    def vocabulary(self) -> UnigramVocabulary:
        """Read the tokenizer's vocabulary from the file; it is not kept in memory."""

    @property
    def positions(self) -> Floats:
        """The position embeddings, one row for each position in a text."""

    def rows(self, ids: Sequence[int]) -> Floats:
        """Return the word embeddings of these token ids, one row each."""

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the weights of the graph by name."""


class E5Model:
    """Computes one vector for each text; queries and texts get different prefixes."""

    def __init__(self, files: E5Files, threads: int) -> None:
        """Raises EmbedderFault for files that are missing, changed, or of another format."""
        files.check()
        try:
            load = PackedWeights if files.weights.suffix == ".npz" else E5Weights
            self._weights: ModelWeights = load(files.weights)
            self._session = session(files.net, threads, self._weights.tensors())
            vocabulary = self._weights.vocabulary()
            turn = np.load(files.turn)
        except (OSError, ValueError, KeyError, struct.error, BadZipFile, RuntimeError) as error:
            raise EmbedderFault(
                f"{files.weights} cannot be loaded: {str(error)[:200]}", cure=files.cure
            ) from error
        self._mean, self._axes = turn[0], turn[1:]
        self._tokenizer = UnigramTokenizer(vocabulary)
        self._end, self._padding = vocabulary.end, vocabulary.padding
        self._prefix = {
            query: self._tokenizer.encode(text).ids[:-1] for query, text in _PREFIXES.items()
        }
        self._limit = len(self._weights.positions) - 1 - max(map(len, self._prefix.values()))
        self.dimension = WIDTH

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """Return one row of length 1 for each text, or of zeros for a blank text."""
        composed = [unicodedata.normalize("NFC", text) for text in texts]
        encode = partial(self._encode, prefix=self._prefix[query])
        found = embed_whole(composed, self._tokenizer, self._limit, encode, WIDTH)
        is_blank = ~found.any(axis=1)
        found -= self._mean
        found -= (found @ self._axes.T) @ self._axes
        found[is_blank] = 0
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found

    def _encode(self, windows: list[str], prefix: list[int]) -> npt.NDArray[np.float32]:
        read = [self._tokenizer.encode(it, add_special_tokens=False).ids for it in windows]
        encodings = [[*prefix, *ids[: self._limit], self._end] for ids in read]
        shape = (len(windows), max(map(len, encodings)))
        ids = np.full(shape, self._padding, np.int64)
        mask = np.zeros(shape, np.int32)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding
            mask[row, : len(encoding)] = 1
        pieces = self._weights.rows(ids.ravel().tolist()).reshape(*shape, WIDTH)
        inputs = {"pieces": pieces + self._weights.positions[: shape[1]], "mask": mask}
        states: npt.NDArray[np.float32] = self._session.run(None, inputs)[0]
        weights = mask[:, :, None].astype(np.float32)
        found: npt.NDArray[np.float32] = (states * weights).sum(1) / weights.sum(1)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found
