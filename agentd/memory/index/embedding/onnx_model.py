"""A model in ONNX format, run by onnxruntime. Imported only by the embedder process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.bert import BertTokenizer
from agentd.memory.index.embedding.onnx_files import VOCABULARY, OnnxFiles
from agentd.memory.index.embedding.windows import Tokenizer, embed_whole


def session(
    net: Path, threads: int, weights: Mapping[str, npt.NDArray[Any]] | None = None
) -> onnxruntime.InferenceSession:
    """Load the network in the file; `weights` are the initializers that the file leaves out, by
    name.

    onnxruntime raises bare exceptions for bad files.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena never frees what the longest batch took, 80 MB
    options.log_severity_level = 4
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(str(net), options, providers=["CPUExecutionProvider"])


_USUAL_LIMIT = 256  # tokens that a model reads, if its files do not say
_SPECIAL = 2  # special tokens that BERT adds around a text


class OnnxModel:
    """A network over token ids. If it returns a vector for each token, their mean is taken."""

    def __init__(self, source: Path, threads: int) -> None:
        """Raises EmbedderFault for files that are missing, changed, or of another format."""
        files = OnnxFiles.at(source)
        files.check()
        try:
            self._session = session(files.model, threads)
            self._tokenizer, self._limit, self._padding = _tokenizer(files)
        except Exception as error:  # both libraries raise bare exceptions for bad files
            raise EmbedderFault(
                f"{files.model} cannot be loaded: {str(error)[:200]}",
                cure=files.cure,
            ) from error
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self.dimension = self._encode(["probe"]).shape[1]

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """Return one row of length 1 for each text."""
        return embed_whole(texts, self._tokenizer, self._limit, self._encode, self.dimension)

    def _encode(self, windows: list[str]) -> npt.NDArray[np.float32]:
        encodings = [self._tokenizer.encode(window).ids for window in windows]
        shape = (len(windows), max(map(len, encodings)))
        ids = np.full(shape, self._padding, np.int64)
        mask = np.zeros(shape, np.int64)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding
            mask[row, : len(encoding)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found: npt.NDArray[np.float32] = np.asarray(
            self._session.run(None, {name: known[name] for name in self._inputs})[0], np.float32
        )
        if found.ndim == 3:
            weights = mask[:, :, None].astype(np.float32)
            found = (found * weights).sum(1) / weights.sum(1)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found


def _tokenizer(files: OnnxFiles) -> tuple[Tokenizer, int, int]:
    """Return the tokenizer, how many tokens of a text the model reads at once, and the id of the
    padding.
    """
    if files.tokenizer.name == VOCABULARY:
        return BertTokenizer.from_file(files.tokenizer), files.limit - _SPECIAL, 0
    from tokenizers import Tokenizer as Library

    found = Library.from_file(str(files.tokenizer))
    special = found.num_special_tokens_to_add(is_pair=False)
    limit, padding = _limit(files, found) - special, _padding(found)
    found.no_truncation()
    found.no_padding()
    return found, limit, padding


def _limit(files: OnnxFiles, tokenizer: Any) -> int:
    settings = files.model.parent / "sentence_bert_config.json"
    if files.limit:
        return files.limit
    if settings.is_file():
        return int(json.loads(settings.read_bytes()).get("max_seq_length") or _USUAL_LIMIT)
    return int((tokenizer.truncation or {}).get("max_length", _USUAL_LIMIT))


def _padding(tokenizer: Any) -> int:
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    for token in ("[PAD]", "<pad>"):
        if (number := tokenizer.token_to_id(token)) is not None:
            return int(number)
    return 0
