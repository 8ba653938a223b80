"""Embeds texts that are longer than a model's limit: by windows, whose vectors are averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

MOST_WINDOWS = 16  # the beginning tells what a text is about


class TokenIds(Protocol):
    """The tokens of a text."""

    @property
    def ids(self) -> list[int]:
        """The id of each token."""

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The start and end of each token in the text."""

    @property
    def word_ids(self) -> list[int | None]:
        """The number of each token's word."""


class Tokenizer(Protocol):
    """A tokenizer of the `tokenizers` library, or one of `bert.py` and `unigram.py`."""

    def encode(self, sequence: str, /, *, add_special_tokens: bool = True) -> TokenIds:
        """Return the tokens of the whole text."""


Encode = Callable[[list[str]], npt.NDArray[np.float32]]


def embed_whole(
    texts: Sequence[str], tokenizer: Tokenizer, limit: int, encode: Encode, dimension: int
) -> npt.NDArray[np.float32]:
    """Return a row of length 1 for each text, or of zeros for a blank one: the mean of its windows'
    vectors, weighted by their length. A window has at most `limit` tokens; `tokenizer` must not
    truncate; `encode` returns a row for each window.
    """
    parts = [windows(text, tokenizer, limit) for text in texts]
    found = np.zeros((len(texts), dimension), np.float32)
    flat = [window for part in parts for window in part]
    if not flat:
        return found
    vectors = encode(flat)
    weights = np.array([len(window) for window in flat], np.float32)
    owners = np.repeat(np.arange(len(texts)), [len(part) for part in parts])
    np.add.at(found, owners, vectors * weights[:, None])
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    found /= np.where(lengths > 0, lengths, 1)
    return found


def windows(text: str, tokenizer: Tokenizer, limit: int) -> list[str]:
    """Split a text between words into parts of at most `limit` tokens; no part for a blank text, at
    most MOST_WINDOWS + 1 for a long one.
    """
    if not text.strip():
        return []
    if len(text.encode("utf-8", "replace")) <= limit:  # no tokenizer makes more tokens than bytes
        return [text]
    encoding = tokenizer.encode(text, add_special_tokens=False)
    spans, words = encoding.offsets, encoding.word_ids
    cuts = [0]
    while len(spans) - cuts[-1] > limit and len(cuts) < MOST_WINDOWS:
        end = cuts[-1] + limit
        start_of_word = next(
            (at for at in range(end, cuts[-1], -1) if words[at] != words[at - 1]), end
        )
        cuts.append(start_of_word)
    cuts.append(min(len(spans), cuts[-1] + limit))
    pieces = [text[spans[a][0] : spans[b - 1][1]] for a, b in pairwise(cuts) if b > a]
    return [piece for piece in pieces if piece.strip()] or [text[:limit]]
