"""Fits what ranking weighs: `AGENTD_MEMBENCH=DIR python -m benchmarks.fit` prints the table
`FITTED` of `agentd/memory/index/ranking/fusion.py`, and writes the regressions of
`agentd/memory/index/ranking/kinds.npz` for the model that made the vectors, and to `left_out.json`
and `left_out.npz` beside this what is found without each author. With `kinds` it leaves the weights
and writes the regressions of that model alone: the weights are those of the embedder of a fresh
installation.

Every question becomes a list of candidates with their features
(`agentd.memory.index.ranking.structured`), of which some answer it. A listwise softmax gives those
the probability. A logistic curve over the best scores is the certainty. Two logistic regressions
over the questions' vectors tell their kind (`agentd.memory.index.ranking.kinds`), and one over the
evidence of a search how likely there is an answer, together with what is too far from a question to
be about it. Both see homes of few texts (`benchmarks.homes`), too. Each author's collections count
the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from pprint import pformat

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from agentd.core.ports import Embedder
from agentd.core.search import SearchOptions
from agentd.memory.index.ranking import confidence, structured
from agentd.memory.index.ranking.fusion import FITTED, Weights
from agentd.memory.index.ranking.kinds import (
    FILE,
    MOST,
    PARTS,
    KindClassifiers,
    about,
    kinds_of,
    read_kinds,
)
from agentd.memory.index.search.searcher import Searcher
from agentd.memory.index.search.units import embedded_text
from benchmarks import embedder
from benchmarks.collections import Collection, Question, collections
from benchmarks.homes import Indexed, drawn

Floats = NDArray[np.float32]

BOTH = (
    "nearness", "nearness_covered", "nearness_around", "keyword", "cover", "wide_cover", "answers",
    "asks", "date", "exact",
)  # fmt: skip
KEYWORDS = ("keyword", "cover", "wide_cover", "answers", "asks", "date", "exact")
WEIGHTS, KINDS = Path(__file__).with_name("left_out.json"), Path(__file__).with_name("left_out.npz")
STEPS = 400
RATE = 0.05
SHRINK = 3e-3  # of the squared weights, of features of one standard deviation
LOOSE, TIGHT = 1 / 3, 3.0  # of those of the kinds, and of the confidence
FOLDS = 5
# What tells whether there is an answer, by what is known of a query.
EVIDENCE = {
    "kind": ("best", "chance", "kind"),
    "both": ("best", "cover", "apart"),
    "keywords": ("best", "cover"),
}
HOMES = 60  # of each size and author
USUAL = 0.7  # of the questions in a home have an answer
START = (20.0, 0.25)  # of the fit: slope and cosine of `about`
_BATCH = 64


class Listed(Struct, frozen=True):
    """One question's candidates: features by name, which of them answer, and the found cosines."""

    columns: Mapping[str, Floats]
    answers: NDArray[np.bool_]
    cosines: Floats
    vector: Floats | None
    question: Question
    texts: int


class Fit(Struct, frozen=True):
    """What was fitted to some collections."""

    weights: Weights
    kinds: KindClassifiers | None  # None: nothing is known of the model


async def indexed(of: Collection, made_by: Embedder | None) -> Indexed:
    """The collection with vectors of this embedder, or with words alone."""
    if made_by is None:
        searcher = Searcher()
        searcher.add(of.chunks)
        return Indexed(of, searcher, [None] * len(of.questions))
    texts = await embedded(made_by, map(embedded_text, of.chunks))
    vectors = await embedded(made_by, (one.text for one in of.questions), query=True)
    return ready(of, texts, vectors)


def ready(of: Collection, texts: Floats, questions: Floats) -> Indexed:
    """The collection with vectors that are there already."""
    searcher = Searcher(texts.shape[1])
    searcher.add(of.chunks, texts)
    return Indexed(of, searcher, list(questions))


async def embedded(made_by: Embedder, texts: Iterable[str], *, query: bool = False) -> Floats:
    """The vectors of texts, a row each."""
    wanted, rows = list(texts), list[bytes]()
    for first in range(0, len(wanted), _BATCH):
        rows += await made_by.embed(wanted[first : first + _BATCH], query=query)
    return np.stack([np.frombuffer(row, "<f4") for row in rows])


def fitted(some: Sequence[Indexed], words: Sequence[Indexed]) -> Fit:
    """What is fitted to collections with vectors (`some`) and without (`words`)."""
    both, alone = ([_listed(one) for one in each] for each in (some, words))
    tables = {
        "both": _softmax(_by_author(some, both), BOTH),
        "keywords": _softmax(_by_author(words, alone), KEYWORDS),
    }
    curves = {
        name: _certainty([one for each in listed for one in each], tables[name])
        for name, listed in (("both", both), ("keywords", alone))
    }
    asked = [one for each in both for one in each if one.vector is not None]
    vectors = np.stack([one.vector for one in asked if one.vector is not None])
    small, plain = (_in_homes(each) for each in (some, words))
    near, by_words = ([one for each in homes.values() for one in each] for homes in (small, plain))
    asks_state = np.array([one.question.asks_state for one in asked])
    state = _curve(vectors, asks_state, LOOSE)
    answerable = _curve(vectors, _truth(asked), 1 / LOOSE)
    told = _kinds_unseen(vectors, _truth(asked))
    alike, far = _with_kind(some, both, told, small, tables["both"])
    sure = {
        "kind": alike,
        "both": _confidence(_evidence(near, tables["both"]), _truth(near), "both"),
        "keywords": _confidence(
            _evidence(by_words, tables["keywords"]), _truth(by_words), "keywords"
        ),
    }
    return Fit(Weights(tables, curves, sure), KindClassifiers(state, answerable, far))


def _in_homes(some: Sequence[Indexed]) -> dict[str, list[Listed]]:
    """What small homes have for the questions that are asked there, by author."""
    found: dict[str, list[Listed]] = {}
    for home in drawn(some, HOMES):
        one = _of(home.searcher, home.question, home.vector, home.answers)
        if len(one.answers) and _is_whole(one):
            found.setdefault(home.author, []).append(one)
    return found


def _with_kind(
    some: Sequence[Indexed],
    listed: Sequence[Sequence[Listed]],
    told: Sequence[float],
    homes: Mapping[str, Sequence[Listed]],
    table: Mapping[str, float],
) -> tuple[tuple[float, dict[str, float]], Floats]:
    """The bias and weights of the evidence where the kinds of questions are `told`, and from which
    cosine on the nearest text is too far to be surely about a question with the slope of `about`
    below: fitted together, as each is a factor of the confidence.

    Whatever is asked in a home was written as a question with an answer, so there its kind says
    nothing, and is left out. An author's homes count as much as the questions about all that he
    wrote, of which those with an answer and those without count the same.
    """
    authors = [one.of.author for one, each in zip(some, listed, strict=True) for _ in each]
    own = [one for each in listed for one in each]
    few = [(author, one) for author, each in homes.items() for one in each]
    every = [*own, *(one for _, one in few)]
    found = _evidence(every, table, [*told, *(0.0 for _ in few)])
    right = _truth(every)
    groups = [(author, False) for author in authors] + [(author, True) for author, _ in few]
    counts = np.array(
        [
            (USUAL if yes else 1 - USUAL) if few_texts else 0.5
            for (_, few_texts), yes in zip(groups, right, strict=True)
        ]
    )
    keys = [(*group, bool(yes)) for group, yes in zip(groups, right, strict=True)]
    sizes = Counter(keys)
    counts /= np.array([sizes[key] for key in keys])
    nearest = np.array([one.cosines.max() for one in every], np.float64)
    names = EVIDENCE["kind"]
    values = np.array([[one[name] for name in names] for one in found])
    *weights, bias, slope, least = _curve_and_about(values, nearest, right, counts / counts.sum())
    rounded = {n: round(float(weight), 2) for n, weight in zip(names, weights, strict=True)}
    far = np.array([round(float(least), 3), round(float(slope), 1)], np.float32)
    return (round(float(bias), 2), rounded), far


def _curve_and_about(
    values: NDArray[np.float64],
    nearest: NDArray[np.float64],
    right: NDArray[np.bool_],
    counts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Slopes and bias of a logistic curve, then slope and cosine of `about`, that make their
    product likeliest (Adam, full batches).
    """
    spread = values.std(axis=0) + 1e-6
    sides = np.hstack([values / spread, np.ones((len(values), 1))])
    width = sides.shape[1]
    scale = np.array([*(1.0 for _ in range(width)), START[0], 0.1])
    found = np.array([*(0.0 for _ in range(width)), *START]) / scale
    shrink = np.array([*(SHRINK for _ in range(width - 1)), 0.0])
    mean, square = np.zeros(width + 2), np.zeros(width + 2)
    for step in range(1, 2 * STEPS + 1):
        slope, least = found[width:] * scale[width:]
        curve = 1 / (1 + np.exp(-np.clip(sides @ found[:width], -30, 30)))
        near = about(nearest, least, slope)
        product = np.clip(curve * near, 1e-6, 1 - 1e-6)
        rise = counts * np.where(right, -1 / product, 1 / (1 - product)) * product
        bend = rise * np.where(near < 1, 1 - near / 2, 0.0)
        down = [
            *(sides.T @ (rise * (1 - curve)) + 2 * shrink * found[:width]),
            (bend * (nearest - least)).sum() * scale[width],
            -(bend * slope).sum() * scale[width + 1],
        ]
        mean = 0.9 * mean + 0.1 * np.array(down)
        square = 0.99 * square + 0.01 * np.array(down) ** 2
        size = np.sqrt(square / (1 - 0.99**step)) + 1e-9
        found = found - RATE / 2 * (mean / (1 - 0.9**step)) / size
    return np.asarray(found * scale / [*spread, 1.0, 1.0, 1.0], np.float64)


def _truth(some: Sequence[Listed]) -> NDArray[np.bool_]:
    return np.array([bool(one.question.needed) for one in some])


def _listed(one: Indexed) -> list[Listed]:
    listed = (
        _of(one.searcher, q, v, one.of.holding([place for places in q.needed for place in places]))
        for q, v in zip(one.of.questions, one.vectors, strict=True)
    )
    return [each for each in listed if len(each.answers) and _is_whole(each)]


def _is_whole(one: Listed) -> bool:
    """Whether a question that has a vector was searched with it: one of zeros says nothing."""
    return one.vector is None or "nearness" in one.columns


def _of(
    searcher: Searcher, asked: Question, vector: Floats | None, answers: Iterable[int]
) -> Listed:
    options = SearchOptions(today=asked.today)
    slots, columns, cosines = searcher.features(asked.text, vector, options)
    right = np.isin(slots, list(answers))
    return Listed(columns, right, cosines, vector, asked, len(searcher))


def _by_author(
    some: Sequence[Indexed], listed: Sequence[Sequence[Listed]]
) -> list[tuple[float, Listed]]:
    """Every question that has an answer among its candidates, weighted so that authors are
    equal.
    """
    authors: dict[str, list[Listed]] = {}
    for one, each in zip(some, listed, strict=True):
        authors.setdefault(one.of.author, []).extend(q for q in each if q.answers.any())
    return [(1.0 / len(each), one) for each in authors.values() for one in each]


def _softmax(some: Sequence[tuple[float, Listed]], names: Sequence[str]) -> dict[str, float]:
    """The weights that make answers likeliest (Adam, full batches), of two digits."""
    longest = max(len(one.answers) for _, one in some)
    table = np.zeros((len(some), longest, len(names)), np.float32)
    wanted = np.zeros((len(some), longest), np.float32)
    outside = np.ones((len(some), longest), np.bool_)
    for row, (_, one) in enumerate(some):
        count = len(one.answers)
        table[row, :count] = np.stack([one.columns[name] for name in names], axis=1)
        wanted[row, :count] = one.answers / one.answers.sum()
        outside[row, :count] = False
    spread = table[~outside].std(axis=0) + 1e-6
    table /= spread
    share = np.array([weight for weight, _ in some])
    share /= share.sum()
    weights, mean, square = (np.zeros(len(names)) for _ in range(3))
    for step in range(1, STEPS + 1):
        scores = np.where(outside, -np.inf, table @ weights)
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        slope = (
            np.tensordot((likely - wanted) * share[:, None], table, axes=2) + 2 * SHRINK * weights
        )
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        scale = np.sqrt(square / (1 - 0.99**step)) + 1e-8
        weights = weights - RATE * (mean / (1 - 0.9**step)) / scale
    return {n: round(float(w), 2) for n, w in zip(names, weights / spread, strict=True)}


def _certainty(some: Sequence[Listed], table: Mapping[str, float]) -> tuple[float, float]:
    """Bias and slope of the log-odds that the best candidate of a question answers it."""
    best, right = [], []
    for one in some:
        if len(one.answers):
            scores = structured.score(one.columns, table)
            best.append(scores.max())
            right.append(one.answers[scores.argmax()])
    slope, bias = _curve(np.array(best)[:, None], np.array(right), 1e-3)
    return round(float(bias), 2), round(float(slope), 2)


def _evidence(
    some: Sequence[Listed], table: Mapping[str, float], kinds: Sequence[float] | None = None
) -> list[dict[str, float]]:
    told = kinds if kinds is not None else [None] * len(some)
    return [
        confidence.evidence(
            structured.score(one.columns, table),
            one.cosines if len(one.cosines) else None,
            one.columns["cover"],
            one.texts,
            kind,
        )
        for one, kind in zip(some, told, strict=True)
    ]


def _confidence(
    some: Sequence[Mapping[str, float]], right: NDArray[np.bool_], known: str
) -> tuple[float, dict[str, float]]:
    names = EVIDENCE[known]
    values = np.array([[one[name] for name in names] for one in some])
    *weights, bias = _curve(values, right, TIGHT)
    return round(float(bias), 2), {
        n: round(float(w), 2) for n, w in zip(names, weights, strict=True)
    }


def _kinds_unseen(vectors: Floats, right: NDArray[np.bool_]) -> list[float]:
    """What regressions that did not see a question say of it."""
    told = np.zeros(len(right))
    for fold in range(FOLDS):
        out = np.arange(len(right)) % FOLDS == fold
        weights = _curve(vectors[~out], right[~out], 1 / LOOSE)
        told[out] = vectors[out] @ weights[:-1] + weights[-1]
    return [max(-MOST, min(MOST, float(one))) for one in told]


def _curve(values: NDArray[np.floating], right: NDArray[np.bool_], shrink: float) -> Floats:
    """Slopes and, last, the bias of a logistic curve (Newton); both outcomes count the same."""
    sides = np.hstack([values, np.ones((len(values), 1))]).astype(np.float64)
    right = right.astype(np.bool_)
    counts = np.where(right, 0.5 / max(right.sum(), 1), 0.5 / max((~right).sum(), 1)) * len(right)
    ridge = np.full(sides.shape[1], shrink)
    ridge[-1] = 1e-6
    curve = np.zeros(sides.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(sides @ curve, -30, 30)))
        bend = (sides * (counts * chance * (1 - chance))[:, None]).T @ sides + np.diag(ridge)
        step = np.linalg.solve(bend, sides.T @ (counts * (chance - right)) + ridge * curve)
        curve -= step
        if np.abs(step).max() < 1e-6:
            break
    return curve.astype(np.float32)


def shipped(model: str) -> Fit:
    """What ships, for vectors of this model."""
    return Fit(FITTED, kinds_of(model))


def left_out(author: str, model: str) -> Fit | None:
    """What was fitted to the collections of all other authors; None where nothing was."""
    if not WEIGHTS.exists():
        return None
    told = json.loads(WEIGHTS.read_text(encoding="utf-8")).get(author)
    if told is None:
        return None
    certainty = {name: (bias, slope) for name, (bias, slope) in told["certainty"].items()}
    sure = {name: (bias, by_name) for name, (bias, by_name) in told["confidence"].items()}
    kinds = read_kinds(KINDS).get(f"{author}/{model}")
    return Fit(Weights(told["structured"], certainty, sure), kinds)


async def _main(*, kinds_alone: bool) -> None:
    async with embedder.opened() as made:
        if made is None:
            sys.exit("EMBEDDER names none that makes vectors")
        some = [await indexed(one, made) for one in collections()]
    words = [await indexed(one, None) for one in collections()]
    fit = fitted(some, words)
    sys.stdout.write(f"FITTED = {pformat(fit.weights, width=100, sort_dicts=False)}\n")
    _keep(made.model, fit.kinds, FILE)
    unseen = {}
    for author in dict.fromkeys(one.of.author for one in some):
        others = fitted(
            [one for one in some if one.of.author != author],
            [one for one in words if one.of.author != author],
        )
        unseen[author] = asdict(others.weights)
        _keep(f"{author}/{made.model}", others.kinds, KINDS)
    if not kinds_alone:
        text = json.dumps(unseen, indent=1)
        WEIGHTS.write_text(f"{text}\n", encoding="utf-8")


def _keep(model: str, kinds: KindClassifiers | None, file: Path) -> None:
    """Put the kinds of a model beside those of others."""
    known = dict(np.load(file)) if file.exists() else {}
    if kinds is not None:
        known |= {f"{model}/{part}": getattr(kinds, part) for part in PARTS}
    np.savez(file, **known)


if __name__ == "__main__":
    asyncio.run(_main(kinds_alone=sys.argv[1:] == ["kinds"]))
