"""Classifies a question by its vector.

Logistic regressions over the vectors of a model, fitted by `benchmarks/fit.py`, tell whether a
question asks for a present state, and whether one like it has an answer in what is indexed. They
use meaning and no words, so they hold in every language that the model knows, but only for that
model.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

MOST = 2.5
PARTS = ("state", "answerable", "far")
FILE = Path(__file__).with_name("kinds.npz")

Floats = NDArray[np.float32]


class KindClassifiers(Struct, frozen=True):
    """The classifiers for one model. A regression has a weight for each number of a vector, then
    the bias. `far` is the cosine below which the nearest text may be too far from a question to be
    about it, and the slope of the curve there.
    """

    state: Floats
    answerable: Floats
    far: Floats

    def asks_state(self, vector: Floats) -> float:
        """Return the probability, 0..1, that a question asks for a present state."""
        return float(1.0 / (1.0 + np.exp(-_odds(self.state, vector))))

    def has_answer(self, vector: Floats) -> float:
        """Return the log-odds that a question like this has an answer, see `has_answer`."""
        return has_answer(self.answerable, vector)

    def about(self, nearest: float) -> float:
        """Return the factor, 0..1, for the probability of an answer when the nearest text has this
        cosine.
        """
        least, slope = self.far
        return float(about(np.float64(nearest), float(least), float(slope)))


def has_answer(answerable: Floats, vector: Floats) -> float:
    """Return the log-odds that a question has an answer, by a regression, limited to ±MOST: a list
    of words is no question, and what was found must be able to outweigh the wording.
    """
    return max(-MOST, min(MOST, _odds(answerable, vector)))


def about(
    nearest: NDArray[np.float64] | np.float64, least: float, slope: float
) -> NDArray[np.float64]:
    """Return 1 for cosines from `least` on; below, twice a logistic curve with its midpoint at
    `least`.
    """
    odds = np.clip(slope * (nearest - least), -30.0, 30.0)
    return np.minimum(1.0, 2.0 / (1.0 + np.exp(-odds)))


def kinds_of(model: str) -> KindClassifiers | None:
    """Return the classifiers of a model; None for a model that they were not fitted to."""
    return _shipped_kinds().get(model)


def read_kinds(path: Path) -> dict[str, KindClassifiers]:
    """Return the classifiers in a file, by model; empty if there is no file."""
    if not path.exists():
        return {}
    with np.load(path) as file:
        names = sorted({name.rsplit("/", 1)[0] for name in file.files})
        return {
            name: KindClassifiers(*(file[f"{name}/{part}"] for part in PARTS)) for name in names
        }


@cache
def _shipped_kinds() -> dict[str, KindClassifiers]:
    return read_kinds(FILE)


def _odds(weights: Floats, vector: Floats) -> float:
    return float(np.clip(weights[:-1] @ vector + weights[-1], -30.0, 30.0))
