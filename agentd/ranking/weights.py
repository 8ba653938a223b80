"""The weights of ranking, fitted by `python -m benchmarks.fit`.

`structured.features` and `confidence.evidence` say what each of them weighs, docs/retrieval.md what each
fit finds in the collection that it did not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """`structured`: of features, for searches with (`both`) and without (`keywords`) vectors.
    `certainty`: for the same, bias and slope of the log-odds that a unit of a structured score answers.
    `confidence`: bias and weights of the log-odds that a query has an answer at all, by what is known.
    """

    structured: Mapping[str, Mapping[str, float]]
    certainty: Mapping[str, tuple[float, float]]
    confidence: Mapping[str, tuple[float, Mapping[str, float]]]


FITTED = Weights(
    structured={
        "both": {
            "nearness": 1.23, "nearness_covered": -0.83, "nearness_around": 0.68, "keyword": -2.84,
            "cover": 5.5, "wide_cover": 3.32, "answers": 2.49, "asks": -4.39, "date": 4.79,
            "exact": 1.47,
        },
        "keywords": {
            "keyword": 2.58, "cover": 2.54, "wide_cover": 4.99, "answers": 2.63, "asks": -2.42,
            "date": 4.9, "exact": 0.86,
        },
    },
    certainty={"both": (-2.23, 0.32), "keywords": (-2.85, 0.33)},
    confidence={
        "kind": (-0.52, {"best": 0.41, "cover": 0.43, "apart": -0.19, "kind": 1.28}),
        "both": (-3.24, {"best": 0.55, "cover": 3.45, "apart": 0.06}),
        "keywords": (-3.63, {"best": 0.72, "cover": 0.75}),
    },
)  # fmt: skip
