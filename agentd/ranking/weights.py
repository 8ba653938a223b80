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
            "nearness": 1.26, "nearness_covered": -0.86, "nearness_around": 0.71, "keyword": -2.91,
            "cover": 5.49, "wide_cover": 3.32, "answers": 2.52, "asks": -4.44, "date": 4.93,
            "exact": 1.35,
        },
        "keywords": {
            "keyword": 2.58, "cover": 2.54, "wide_cover": 4.99, "answers": 2.63, "asks": -2.42,
            "date": 4.9, "exact": 0.86,
        },
    },
    certainty={"both": (-2.24, 0.32), "keywords": (-2.85, 0.33)},
    confidence={
        "kind": (-0.43, {"best": 0.38, "cover": 0.59, "apart": -0.23, "kind": 1.3}),
        "both": (-3.15, {"best": 0.5, "cover": 3.69, "apart": 0.14}),
        "keywords": (-3.63, {"best": 0.72, "cover": 0.75}),
    },
)  # fmt: skip
