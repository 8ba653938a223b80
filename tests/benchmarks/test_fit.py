"""Fitting what ranking weighs, and judging it."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from agentd.core.search import Chunk, Ranked, Source
from agentd.memory.index.ranking import structured
from agentd.memory.index.ranking.fusion import FITTED
from benchmarks import search_quality
from benchmarks.collections import Collection, Question
from benchmarks.fit import BOTH, KEYWORDS, fitted, ready

DAY = date(2026, 11, 20)
SAID = ("the red kettle is dented", "Ann sings on Mondays", "the roof leaks again", "tea at four")


def collection(author: str, count: int = 40) -> Collection:
    """Questions that share a word with their answer, every fourth without one; every third asks for
    a state.
    """
    chunks = [
        Chunk(f"{author}.md", n, n, f"{SAID[n % 4]} {author}{n}", Source.NOTES, "", DAY)
        for n in range(1, count + 1)
    ]
    asked = [
        Question(
            f"{author}-{n}",
            "paraphrase",
            f"what about {author}{n}?",
            DAY,
            () if n % 4 == 0 else (((f"{author}.md", n),),),
            asks_state=n % 3 == 0,
        )
        for n in range(1, count + 1)
    ]
    return Collection(
        author, author, chunks, asked, {(f"{author}.md", n): [n - 1] for n in range(1, count + 1)}
    )


@pytest.fixture(scope="module")
def fit():
    some = []
    for seed, author in enumerate(("ann", "ben")):
        random = np.random.default_rng(seed)
        of = collection(author)
        texts = random.normal(size=(len(of.chunks), 24)).astype(np.float32)
        questions = texts + 0.4 * random.normal(size=texts.shape).astype(np.float32)
        for row, one in zip(questions, of.questions, strict=True):
            row[0], row[1] = 3.0 * one.asks_state, 3.0 * bool(one.needed)
        some.append(ready(of, texts, questions))
    words = [ready(one.of, np.ones((len(one.of.chunks), 1), np.float32), []) for one in some]
    words = [type(one)(one.of, one.searcher, [None] * len(one.of.questions)) for one in words]
    return fitted(some, words), some


def test_every_weight_that_ranking_looks_for_is_fitted(fit):
    found = fit[0].weights
    assert {name: set(table) for name, table in found.structured.items()} == {
        "both": set(BOTH),
        "keywords": set(KEYWORDS),
    }
    assert set(found.certainty) == set(FITTED.certainty)
    assert {name: set(table) for name, (_, table) in found.confidence.items()} == {
        name: set(table) for name, (_, table) in FITTED.confidence.items()
    }


def test_the_fitted_weights_put_answers_first(fit):
    found, some = fit
    figures = search_quality.figures(some, found)
    assert figures["all", "hit@3"] > 0.95
    assert figures["all", "AUROC"] > 0.9


def test_what_a_question_is_like_is_read_from_its_vector(fit):
    kinds = fit[0].kinds
    asked = [pair for one in fit[1] for pair in zip(one.of.questions, one.vectors, strict=True)]
    told = [kinds.asks_state(v) >= 0.5 for _, v in asked]
    assert np.mean([t == q.asks_state for t, (q, _) in zip(told, asked, strict=True)]) > 0.9


def test_the_names_of_features_are_those_of_the_weights(fit):
    _, columns, _ = fit[1][0].searcher.features(
        "kettle", fit[1][0].vectors[0], search_quality.DEFAULT
    )
    assert set(BOTH) <= set(columns)
    assert np.isfinite(structured.score(columns, FITTED.structured["both"])).all()


def hits(*slots: int) -> list[Ranked]:
    return [Ranked((slot,), 0.5, 10) for slot in slots]


def test_marks_are_those_of_the_lines_that_are_needed():
    of = collection("ann", 8)
    asked = Question("x", "changed", "?", DAY, ((("ann.md", 2),),), (("ann.md", 1),))
    tokens = [400] * 8
    right = search_quality.mark(of, asked, hits(1, 0), tokens)
    assert (right.hit3, right.within, right.ndcg, right.newest) == (1.0, 1.0, 1.0, 1.0)
    late = search_quality.mark(of, asked, hits(0, 2, 1), tokens)
    assert (late.hit3, late.within, late.newest) == (1.0, 0.0, 0.0)
    assert search_quality.mark(of, asked, [], tokens).hit3 == 0.0


def test_the_chance_to_tell_questions_apart():
    assert search_quality.auroc([0.9, 0.8], [0.1]) == 1.0
    assert search_quality.auroc([0.5], [0.5]) == 0.5
