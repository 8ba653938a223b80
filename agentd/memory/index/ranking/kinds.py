"""What a question is like, told by its vector.

Logistic regressions over the vectors of a model, fitted by `benchmarks/fit.py`: whether a question asks
how something stands now, and whether one like it has an answer in what is indexed. They read meaning and
no words, so they hold in every language that the model knows, and for that model alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MOST = 2.5
PARTS = ("state", "answerable", "far")
FILE = Path(__file__).with_name("kinds.npz")

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is known of one model. Regressions: a weight for every number of a vector, then the bias.
    `far`: the cosine below which a text may be too far from a question to be about it, and the slope there.
    """

    state: Floats
    answerable: Floats
    far: Floats

    def asks_state(self, vector: Floats) -> float:
        """The probability, 0..1, that a question asks how something stands now."""
        return float(1.0 / (1.0 + np.exp(-_odds(self.state, vector))))

    def has_answer(self, vector: Floats) -> float:
        """The log-odds that a question like it has an answer, by `has_answer`."""
        return has_answer(self.answerable, vector)

    def about(self, nearest: float) -> float:
        """What is left of the probability of an answer, 0..1, where the nearest text has this cosine."""
        least, slope = self.far
        return float(about(np.float64(nearest), float(least), float(slope)))


def has_answer(answerable: Floats, vector: Floats) -> float:
    """The log-odds that a question has an answer, by a regression: at most MOST for or against, as a list
    of words is no question, and what was found should still be able to outweigh how it is asked.
    """
    return max(-MOST, min(MOST, _odds(answerable, vector)))


def about(
    nearest: NDArray[np.float64] | np.float64, least: float, slope: float
) -> NDArray[np.float64]:
    """1 for cosines from `least` on; below, twice a logistic curve that has its middle there."""
    odds = np.clip(slope * (nearest - least), -30.0, 30.0)
    return np.minimum(1.0, 2.0 / (1.0 + np.exp(-odds)))


def kinds_of(model: str) -> Kinds | None:
    """Those of a model; None for one that they were not fitted to."""
    return _shipped().get(model)


def read_kinds(path: Path) -> dict[str, Kinds]:
    """Those of all models in a file; none where there is no file."""
    if not path.exists():
        return {}
    with np.load(path) as file:
        names = sorted({name.rsplit("/", 1)[0] for name in file.files})
        return {name: Kinds(*(file[f"{name}/{part}"] for part in PARTS)) for name in names}


@cache
def _shipped() -> dict[str, Kinds]:
    return read_kinds(FILE)


def _odds(weights: Floats, vector: Floats) -> float:
    return float(np.clip(weights[:-1] @ vector + weights[-1], -30.0, 30.0))
