"""A sentence-transformers model. Imported only by the embedder process: it loads torch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.windows import embed_whole

SPECIAL_TOKENS = 4  # most special tokens that a model adds around a text


class TorchModel:
    """A model that runs on the CPU with `threads` threads."""

    def __init__(self, source: str, threads: int) -> None:
        """Raises EmbedderFault for a folder without a sentence-transformers model."""
        torch.set_num_threads(threads)
        try:
            self.net = SentenceTransformer(
                source,
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except (OSError, ValueError, KeyError) as error:
            raise EmbedderFault(
                f"{source} holds no model that can be loaded: {str(error)[:200]}",
                cure="Name a folder with a sentence-transformers model in safetensors format.",
            ) from error
        self._tokenizer = whole_tokenizer(self.net)
        self._limit = int(self.net.max_seq_length or 256) - SPECIAL_TOKENS

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.net.get_embedding_dimension() or 0)

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """Return one row of length 1 for each text; `query` selects the model's prompt for
        queries.
        """
        encode = self.net.encode_query if query else self.net.encode_document

        def rows(windows: list[str]) -> npt.NDArray[np.float32]:
            found = encode(windows, normalize_embeddings=True, show_progress_bar=False)
            return np.asarray(found, np.float32)

        return embed_whole(texts, self._tokenizer, self._limit, rows, self.dimension)


def whole_tokenizer(net: SentenceTransformer) -> Tokenizer:
    """Return the model's tokenizer with truncation and padding off.

    Raises EmbedderFault if it is of a kind that cannot be configured so.
    """
    backend = getattr(net.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EmbedderFault(
            "The model's tokenizer is of a kind that agentd cannot use.",
            cure="Name a model that has a tokenizer.json.",
        )
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
