"""How facts are chosen for a turn: whether they have to do with it, and which come first.

What was measured: 40 questions that one of 200 facts answers, and 60 messages that no fact is about
(`python -m benchmarks facts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.ranking import fusion, selection

Floats = NDArray[np.float32]

THRESHOLD = 0.35  # cosine, on the scale of sentence transformers
# What is added to it for models whose unrelated texts lie nearer: their identities begin so.
SHIFTS = {"static-": 0.07}
MARGIN = 0.05  # more than what makes a candidate, before a turn is told of it
COVER = 0.2  # of the cosine that a fact need not have which holds all of the words asked for
COVER_ALONE = 0.42  # share of the words where there is no vector
KNOWN_LEAST = 200  # facts: with fewer, how rare a word is says nothing yet
SAID = 0.5  # of the best fact's share of the words: what holds less has only common ones
WEAK = 0.01  # what such words count for

BOOST = 0.1  # of a score, at most: rank 7 may pass rank 1, rank 8 never
TRADE = 0.7  # between how well a fact fits and how new it is beside the others


def threshold(model: str, wanted: float = THRESHOLD) -> float:
    """The cosine that `wanted` on the scale of sentence transformers is for this model."""
    return wanted + next((by for name, by in SHIFTS.items() if model.startswith(name)), 0.0)


def relation(cosine: Floats | None, cover: Floats, least: float) -> Floats:
    """How much more each fact has to do with a text than a turn asks for; below 0 it is not shown.

    `cover` is the share of the text's words that a fact holds, by their weight; `cosine` is None
    without vectors, `least` the model's threshold.
    """
    if cosine is None:
        return (cover - np.float32(COVER_ALONE)).astype(np.float32)
    return (cosine + np.float32(COVER) * cover - np.float32(least + MARGIN)).astype(np.float32)


def rarity(frequencies: Sequence[int], facts: int) -> Floats:
    """The weight of words by how many of the facts hold them."""
    held = np.asarray(frequencies, np.float32)
    size = max(facts, KNOWN_LEAST)
    return np.log1p((size - held + 0.5) / (held + 0.5)).astype(np.float32)


def is_said(cover: Floats) -> NDArray[np.bool_]:
    """Which facts the words of a text name, by the share of them that each holds: those that hold
    far less than the best have only what many have in common.
    """
    most = np.float32(cover.max(initial=0.0))
    said: NDArray[np.bool_] = (cover > 0.0) & (cover >= np.float32(SAID) * most)
    return said


def scores(retrieved: Sequence[Floats], worths: Floats, weak: int = 0) -> Floats:
    """Reciprocal rank fusion with what facts are worth on top, which decides ties and near ties.

    A retriever gives each fact a score, `-inf` where it did not find it; the last `weak` ones count only
    among facts that no other found. Whatever two facts are worth, the one of rank 1 in the same ones
    stays before that of rank 8.
    """
    trust = [1.0] * (len(retrieved) - weak) + [WEAK] * weak
    boosts = np.float32(1.0) + np.float32(BOOST) * worths
    return (fusion.rrf(retrieved, trust) * boosts).astype(np.float32)


def varied(
    relevance: Floats, rows: Floats, trade: float = TRADE, most: int | None = None
) -> list[int]:
    """All candidates, or the first `most`, by maximal marginal relevance, with the cosines of unit rows
    as likeness; a row of zeros is like nothing. The first is the most relevant; equals keep their order.
    """
    return selection.mmr(relevance, selection.by_cosine(rows), trade, most)
