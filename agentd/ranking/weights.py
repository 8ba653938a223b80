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
        "kind": (-0.61, {"best": 0.49, "cover": 0.19, "apart": -0.42, "kind": 1.68}),
        "both": (-1.79, {"best": 0.07, "cover": 2.26, "apart": 4.92}),
        "keywords": (-1.56, {"best": 0.19, "cover": 2.08}),
    },
)  # fmt: skip
