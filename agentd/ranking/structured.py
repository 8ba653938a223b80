"""Structured fusion: a unit is scored by itself, by its neighbours, its file and what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentd.ranking.weights import STRUCTURED

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

LONG = 80  # tokens; what is longer says no more
DEPTH = 200  # candidates among which meaning is told apart


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of n candidates, each with `reach` neighbours to both sides (w = 2·reach+1
    columns, the candidate in the middle). Missing neighbours have zeros.
    """

    impacts: Floats  # n × w × t: BM25 that each of t query terms adds
    idf: Floats  # t
    cosines: Floats | None  # n × w; None without a vector leg
    question: Flags  # n × w
    file: Ints  # n: number of the file
    length: Floats  # n: tokens
    speaker: Floats  # n: 1 where the speaker is one the query names, -1 where it is another
    when: Floats  # n: 1 where a time is told and the query asks for one
    amount: Floats  # n: the same for numbers
    date: Floats  # n: 0..1, how well the unit's day fits the time that the query names
    exact: Floats  # n: share of the quoted phrases and identifiers that it holds
    pairs: Floats  # n: idf-weighted share of the query's neighbouring terms that neighbour here


def score(columns: Mapping[str, Floats]) -> Floats:
    """The weighted sum of features."""
    weights = STRUCTURED["both" if "meaning" in columns else "keywords"]
    names = list(weights)
    table = np.stack([columns[name] for name in names])
    return np.array([weights[name] for name in names], np.float32) @ table


def features(e: Evidence) -> dict[str, Floats]:
    """Every feature of every candidate by the name of its weight, most of them 0..1. Those of the
    legs are scaled to the best candidate; `cover`s are idf-weighted shares of the query's terms.
    """
    middle = e.impacts.shape[1] // 2
    own = e.impacts[:, middle]
    near = e.impacts[:, middle - 1 : middle + 2]
    bm25 = e.impacts.sum(axis=2)
    keyword = np.minimum(bm25 / _most(bm25[:, middle]), 1.0)
    window = near.max(axis=1).sum(axis=1)
    idf = e.idf / _most(e.idf.sum(keepdims=True))
    out = {
        "keyword": keyword[:, middle],
        "window": window / _most(window),
        "cover": ((own > 0) * idf).sum(axis=1),
        "window_cover": ((near > 0).any(axis=1) * idf).sum(axis=1),
        "wide_cover": ((e.impacts > 0).any(axis=1) * idf).sum(axis=1),
    }
    both = keyword
    if e.cosines is not None:
        sure = out["cover"].max(initial=0.0)
        meaning = _meaning(e.cosines, middle)
        both = sure * keyword + (1.0 - sure) * meaning
        out["cosine"] = e.cosines[:, middle]
        out["meaning"] = meaning[:, middle]
        out["meaning_sure"] = meaning[:, middle] * sure
        out["meaning_near"] = np.maximum(meaning[:, middle - 1], meaning[:, middle + 1])
    out |= _around(both, e.question, middle)
    out["file"] = _prior(both[:, middle], e.file)
    out["length"] = np.log1p(np.minimum(e.length, LONG)) / np.log1p(LONG)
    out |= {"speaker": e.speaker, "when": e.when, "amount": e.amount, "date": e.date}
    out |= {"date_both": e.date * both[:, middle], "exact": e.exact, "pairs": e.pairs}
    return {name: column.astype(np.float32) for name, column in out.items()}


def _around(both: Floats, question: Flags, middle: int) -> dict[str, Floats]:
    """What the neighbours say: how strong they are, and whether one asks what the other answers."""
    before, after = both[:, middle - 1], both[:, middle + 1]
    return {
        "prev": before,
        "next": after,
        "prev2": both[:, : middle - 1].max(axis=1),
        "next2": both[:, middle + 2 :].max(axis=1),
        "answers": before * question[:, middle - 1],
        "asked": after * question[:, middle],
        "question": question[:, middle],
    }


def _meaning(cosines: Floats, middle: int) -> Floats:
    """Cosines scaled so that the best candidate has 1 and the 200th 0."""
    ranked = np.sort(cosines[:, middle])[::-1][:DEPTH]
    spread = ranked[:1] - ranked[-1:]
    scaled: Floats = (cosines - ranked[-1:]) / _most(spread)
    return np.clip(scaled, 0.0, 1.0)


def _most(values: Floats) -> np.float32:
    """The highest value, of use as a divisor."""
    return np.float32(max(float(values.max(initial=0.0)), 1e-6))


def _prior(both: Floats, file: Ints) -> Floats:
    """How strong a candidate's file is: the sum of its best, scaled to the best file's."""
    _, at = np.unique(file, return_inverse=True)
    order = np.argsort(-both)[:60]
    sums = np.bincount(
        at[order], weights=both[order], minlength=int(at.max()) + 1 if len(at) else 0
    )
    return (sums / max(float(sums.max(initial=0.0)), 1e-6))[at].astype(np.float32)
