"""Fits the weights of structured fusion: `MEMBENCH=DIR python -m benchmarks.fit` prints a table.

Every question becomes a list of candidates with their features (`agentd.ranking.structured`), of
which some answer it. A listwise softmax gives those the probability; its weights, rounded, are
`STRUCTURED` in `agentd/ranking/weights.py`, and a logistic curve over its scores is `CERTAINTY`.
The conversations of DIR and the `dev` questions of the invented year are fitted together, the latter
counted twice; `test` is not looked at. `CERTAINTY` and `TOPIC` see the questions of each conversation
asked of another one as well, which speaks of none of that. The shipped table was fitted to the
packaged vectors and to those of the transformer that they come from, so expect figures near it, not
the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentd.domain.search import SearchOptions
from agentd.embedders.static import load
from benchmarks import retrieval, year
from benchmarks.workspace_year.reading import questions

STEPS = 400
RATE = 0.05
SHRINK = 1e-3  # of the squared weights
YEAR_COUNTS = 2


@dataclass(frozen=True, slots=True)
class Listed:
    """One question's candidates: features by name, and which of them answer."""

    columns: dict[str, np.ndarray]
    answers: np.ndarray


def fitted(listed: Sequence[Listed], names: Sequence[str]) -> np.ndarray:
    """The weights, in the order of `names`, that make answers likeliest (Adam, full batches)."""
    some = [one for one in listed if one.answers.any()]
    longest = max(len(one.answers) for one in some)
    table = np.zeros((len(some), longest, len(names)), np.float32)
    wanted = np.zeros((len(some), longest), np.float32)
    outside = np.ones((len(some), longest), np.bool_)
    for row, one in enumerate(some):
        count = len(one.answers)
        table[row, :count] = np.stack([one.columns[name] for name in names], axis=1)
        wanted[row, :count] = one.answers / one.answers.sum()
        outside[row, :count] = False
    weights, mean, square = (np.zeros(len(names)) for _ in range(3))
    for step in range(1, STEPS + 1):
        scores = np.where(outside, -np.inf, table @ weights)
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        slope = np.tensordot(likely - wanted, table, axes=2) / len(some) + SHRINK * weights
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        scale = np.sqrt(square / (1 - 0.99**step)) + 1e-8
        weights = weights - RATE * (mean / (1 - 0.9**step)) / scale
    return weights


def certainty(listed: Sequence[Listed], weights: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Bias and slope of the log-odds that the best candidate of a question answers it."""
    tables = [np.stack([one.columns[name] for name in names], axis=1) @ weights for one in listed]
    best = np.array([scores.max() for scores in tables])
    right = np.array([one.answers[s.argmax()] > 0 for one, s in zip(listed, tables, strict=True)])
    return _curve(best[:, None], right)


def topic(known: Sequence[Listed], foreign: Sequence[Listed]) -> np.ndarray:
    """Bias, weight of the best cosine and weight of the widest cover, of the log-odds that a question
    is one of `known`.
    """
    listed = [*known, *foreign]
    sides = [[one.columns[name].max() for name in ("cosine", "wide_cover")] for one in listed]
    return _curve(np.array(sides), np.arange(len(listed)) < len(known))


def found(known: Sequence[Listed], foreign: Sequence[Listed], name: str) -> Iterator[str]:
    """The lines of the table `name`: weights, certainty, and with vectors the topic. `known` can be
    answered, `foreign` are about other things.
    """
    known, foreign = ([one for one in some if len(one.answers)] for some in (known, foreign))
    names = list(known[0].columns)
    weights = fitted(known, names)
    rounded = {n: round(float(w), 1) for n, w in zip(names, weights, strict=True)}
    yield f'STRUCTURED["{name}"] = {rounded}'
    yield f'CERTAINTY["{name}"] = {_tuple(certainty([*known, *foreign], weights, names))}'
    if "cosine" in names:
        yield f"TOPIC = {_tuple(topic(known, foreign))}"


def _curve(values: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Bias and slopes of a logistic curve (Newton's method)."""
    sides = np.hstack([np.ones((len(values), 1)), values])
    curve = np.zeros(sides.shape[1])
    ridge = 1e-6 * np.eye(len(curve))
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(sides @ curve, -30, 30)))
        bend = (sides * (chance * (1 - chance))[:, None]).T @ sides + ridge
        curve -= np.linalg.solve(bend, sides.T @ (chance - right) + ridge @ curve)
    return curve


def _tuple(numbers: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(number), 1) for number in numbers)


def _conversations(talks: Sequence[retrieval.Talk]) -> Iterator[Listed]:
    for talk in talks:
        lines = {
            turn["id"]: (turn["jsonl"], turn["jsonl_line"]) for turn in talk.conversation.turns
        }
        options = SearchOptions(today=talk.today)
        for asked, vector in _questions(talk):
            slots, columns = talk.searcher.features(asked["query"], vector, options)
            gold = {lines[turn] for turn in asked["gold_turns"]}
            places = [(talk.chunks[at].path, talk.chunks[at].start_line) for at in slots]
            yield Listed(columns, np.array([place in gold for place in places], float))


def _foreign(talks: Sequence[retrieval.Talk]) -> Iterator[Listed]:
    """The questions of each conversation, asked of the next one."""
    for talk, other in zip(talks, [*talks[1:], *talks[:1]], strict=True):
        options = SearchOptions(today=other.today)
        for asked, vector in _questions(talk):
            slots, columns = other.searcher.features(asked["query"], vector, options)
            yield Listed(columns, np.zeros(len(slots)))


def _questions(talk: retrieval.Talk) -> Iterator[tuple[Any, np.ndarray | None]]:
    for asked, vector in zip(talk.conversation.queries, talk.vectors, strict=True):
        if asked["category"] != "adversarial":
            yield asked, vector


def _of_year(built: year.Year, *, vectors: bool) -> Iterator[Listed]:
    for asked in questions():
        if asked.split == "dev" and asked.gold:
            vector = built.vectors[asked.id] if vectors else None
            options = SearchOptions(today=asked.now.date())
            slots, columns = built.searcher.features(asked.query, vector, options)
            units = [built.by_slot[slot] for slot in slots.tolist()]
            right = [
                any(u.path == g.path and u.start_line <= g.line <= u.end_line for g in asked.gold)
                for u in units
            ]
            yield Listed(columns, np.array(right, float))


async def tables(folder: Path) -> None:
    """Print the weights, the certainty and the topic: with vectors, then without."""
    built = await year.built()
    for name, vectors in (("both", True), ("keywords", False)):
        talks = await retrieval.talks(folder, "sessions", load() if vectors else None)
        known = [*_conversations(talks), *list(_of_year(built, vectors=vectors)) * YEAR_COUNTS]
        for line in found(known, list(_foreign(talks)), name):
            print(line, flush=True)


if __name__ == "__main__":
    if not os.environ.get("MEMBENCH"):
        sys.exit("MEMBENCH names no folder of conversations")
    asyncio.run(tables(Path(os.environ["MEMBENCH"])))
