"""The weights of structured fusion: `both` with a vector leg, `keywords` without one.

Fitted by a listwise softmax on conversations and on an invented year of notes, one table for every
embedder, and rounded. `structured.features` says what each of them weighs.
"""

from __future__ import annotations

from collections.abc import Mapping

STRUCTURED: Mapping[str, Mapping[str, float]] = {
    "both": {
        "keyword": 0.2, "window": 0.3, "cover": 1.7, "window_cover": 0.6, "wide_cover": 3.2,
        "cosine": 2.7, "meaning": 2.9, "meaning_sure": -2.2, "meaning_near": 0.9, "prev": -0.6,
        "next": -0.8, "prev2": 0.7, "next2": 0.1, "answers": 2.0, "asked": 1.8, "question": -1.3,
        "file": 0.6, "length": 3.5, "speaker": 1.1, "when": 1.9, "amount": 1.1, "date": 3.5,
        "date_both": 1.1, "exact": 1.0, "pairs": 0.1,
    },
    "keywords": {
        "keyword": 1.6, "window": 1.2, "cover": 1.6, "window_cover": -0.1, "wide_cover": 4.1,
        "prev": -0.4, "next": -0.4, "prev2": 0.5, "next2": 0.1, "answers": 2.0, "asked": 1.0,
        "question": -0.9, "file": 0.8, "length": 2.2, "speaker": 1.3, "when": 2.0, "amount": 1.5,
        "date": 3.2, "date_both": 1.3, "exact": 0.7, "pairs": 0.1,
    },
}  # fmt: skip

# Bias and slope of the log-odds that a unit of a structured score answers the query: fitted on the
# same questions, and on those of one conversation asked of another.
CERTAINTY: Mapping[str, tuple[float, float]] = {"both": (-5.3, 0.5), "keywords": (-6.5, 0.7)}

# Bias, and weights of the best cosine and the widest cover, of the log-odds that a query's topic is
# spoken of: fitted on the same questions, and on questions about other things.
TOPIC = (-8.7, 13.6, 6.1)
