"""How facts are chosen and ordered for a turn.

Thresholds were measured on 40 questions that one of 200 facts answers, and 60 messages that no fact
is about (`python -m benchmarks facts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.ranking import fusion, selection

Floats = NDArray[np.float32]

THRESHOLD = 0.35  # cosine, on the scale of sentence transformers
# Added to the threshold for models that give unrelated texts higher cosines, by the prefix of the
# model's identity.
SHIFTS = {"static-": 0.07}
MARGIN = 0.05  # by how much a fact must exceed the candidate threshold to be shown in a turn
COVER = 0.2  # by how much less cosine suffices for a fact that holds all words of the text
COVER_ALONE = 0.42  # least share of the words without vectors
KNOWN_LEAST = 200  # least number of facts assumed in computing the rarity of words
SAID = 0.5  # least share of the best fact's cover; facts below it match only common words
WEAK = 0.01  # trust in a match of such words

BOOST = 0.1  # largest boost by worth: rank 7 may pass rank 1, rank 8 never
TRADE = 0.7  # relevance against novelty in maximal marginal relevance


def threshold(model: str, wanted: float = THRESHOLD) -> float:
    """Convert `wanted`, a cosine on the scale of sentence transformers, to the scale of this
    model.
    """
    return wanted + next((by for name, by in SHIFTS.items() if model.startswith(name)), 0.0)


def relation(cosine: Floats | None, cover: Floats, least: float) -> Floats:
    """Return by how much each fact exceeds the threshold of a turn; a fact below 0 is not shown.

    `cover` is the share of the text's words that a fact holds, weighted by rarity; `cosine` is None
    without vectors; `least` is the model's threshold.
    """
    if cosine is None:
        return (cover - np.float32(COVER_ALONE)).astype(np.float32)
    return (cosine + np.float32(COVER) * cover - np.float32(least + MARGIN)).astype(np.float32)


def rarity(frequencies: Sequence[int], facts: int) -> Floats:
    """Return the idf weights of words, given in how many of the facts each occurs."""
    held = np.asarray(frequencies, np.float32)
    size = max(facts, KNOWN_LEAST)
    return np.log1p((size - held + 0.5) / (held + 0.5)).astype(np.float32)


def is_said(cover: Floats) -> NDArray[np.bool_]:
    """Return which facts the words of a text name, given the share of the words that each holds. A
    fact that holds far less than the best one matches only common words.
    """
    most = np.float32(cover.max(initial=0.0))
    said: NDArray[np.bool_] = (cover > 0.0) & (cover >= np.float32(SAID) * most)
    return said


def scores(retrieved: Sequence[Floats], worths: Floats, weak: int = 0) -> Floats:
    """Return scores by reciprocal rank fusion, raised by what facts are worth, so that worth
    decides ties and near ties.

    A retriever gives each fact a score, `-inf` where it did not find it; the last `weak` retrievers
    count only among facts that no other found. A fact of rank 1 always stays before one of rank 8
    in the same retrievers.
    """
    trust = [1.0] * (len(retrieved) - weak) + [WEAK] * weak
    boosts = np.float32(1.0) + np.float32(BOOST) * worths
    return (fusion.rrf(retrieved, trust) * boosts).astype(np.float32)


def diversify(
    relevance: Floats, rows: Floats, trade: float = TRADE, most: int | None = None
) -> list[int]:
    """Order all candidates, or the first `most`, by maximal marginal relevance with the cosines of
    unit rows as similarity; a row of zeros resembles nothing. The most relevant comes first; equals
    keep their order.
    """
    return selection.mmr(relevance, selection.by_cosine(rows), trade, most)
