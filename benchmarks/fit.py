"""Fits the weights of structured fusion: `MEMBENCH=DIR python -m benchmarks.fit` prints a table.

Every question becomes a list of candidates with their features (`agentd.ranking.structured`), of
which some answer it. A listwise softmax gives those the probability; its weights, rounded, are
`STRUCTURED` in `agentd/ranking/weights.py`, and a logistic curve over its scores is `CERTAINTY`.
The conversations of DIR and the `dev` questions of the invented year are fitted together, the latter
counted twice; `test` is not looked at. The shipped table was fitted to the packaged vectors and to
those of the transformer that they come from, so expect figures near it, not the same. `CERTAINTY`
and `TOPIC` were fitted to questions of one conversation asked of another as well.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from agentd.domain.search import SearchOptions
from agentd.embedders.static import load
from agentd.ranking import structured
from agentd.search.searcher import Searcher
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
    sides = np.stack([np.ones_like(best), best], axis=1)
    curve = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-sides @ curve))
        bend = (sides * (chance * (1 - chance))[:, None]).T @ sides + 1e-6 * np.eye(2)
        curve -= np.linalg.solve(bend, sides.T @ (chance - right))
    return curve


def _columns(
    searcher: Searcher, query: str, vector: np.ndarray | None, today: date
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    asked = searcher._proposer.asked(query, vector, SearchOptions(today=today))  # noqa: SLF001 - features are no part of an answer
    slots = searcher._proposer.propose(asked, searcher.vectors).slots  # noqa: SLF001 - the same
    evidence = searcher._gatherer.evidence(asked, slots, searcher.vectors)  # noqa: SLF001 - the same
    return slots, structured.features(evidence)


async def _conversations(folder: Path, *, vectors: bool) -> list[Listed]:
    out = []
    for talk in await retrieval.talks(folder, "sessions", load() if vectors else None):
        lines = {
            turn["id"]: (turn["jsonl"], turn["jsonl_line"]) for turn in talk.conversation.turns
        }
        for asked, vector in zip(talk.conversation.queries, talk.vectors, strict=True):
            if asked["category"] != "adversarial":
                slots, columns = _columns(talk.searcher, asked["query"], vector, talk.today)
                gold = {lines[turn] for turn in asked["gold_turns"]}
                places = [(talk.chunks[at].path, talk.chunks[at].start_line) for at in slots]
                out.append(Listed(columns, np.array([place in gold for place in places], float)))
    return out


async def _year(*, vectors: bool) -> list[Listed]:
    built = await year.built()
    return list(_asked_of(built, vectors=vectors)) * YEAR_COUNTS


def _asked_of(built: year.Year, *, vectors: bool) -> Iterator[Listed]:
    for asked in questions():
        if asked.split == "dev" and asked.gold:
            vector = built.vectors[asked.id] if vectors else None
            slots, columns = _columns(built.searcher, asked.query, vector, asked.now.date())
            units = [built.by_slot[slot] for slot in slots.tolist()]
            right = [
                any(u.path == g.path and u.start_line <= g.line <= u.end_line for g in asked.gold)
                for u in units
            ]
            yield Listed(columns, np.array(right, float))


async def tables(folder: Path) -> None:
    """Print the weights and the certainty for both cases, with vectors and without."""
    for name, vectors in (("both", True), ("keywords", False)):
        listed = await _conversations(folder, vectors=vectors) + await _year(vectors=vectors)
        listed = [one for one in listed if len(one.answers)]
        names = list(listed[0].columns)
        weights = fitted(listed, names)
        print(f'"{name}":', {n: round(float(w), 1) for n, w in zip(names, weights, strict=True)})
        bias, slope = certainty(listed, weights, names)
        print("certainty:", (round(float(bias), 1), round(float(slope), 1)), flush=True)


if __name__ == "__main__":
    if not os.environ.get("MEMBENCH"):
        sys.exit("MEMBENCH names no folder of conversations")
    asyncio.run(tables(Path(os.environ["MEMBENCH"])))
