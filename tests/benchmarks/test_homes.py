"""Small homes, cut out of larger collections."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit import ready
from benchmarks.homes import SIZES, drawn
from tests.benchmarks.test_fit import collection


@pytest.fixture(scope="module")
def some():
    found = []
    for seed, author in enumerate(("ann", "ben")):
        of = collection(author, 60)
        random = np.random.default_rng(seed)
        texts, questions = random.normal(size=(2, len(of.chunks), 8)).astype(np.float32)
        found.append(ready(of, texts, questions))
    return found


def test_the_same_homes_are_drawn_again(some):
    first, again = (
        [(one.size, one.question.id, one.answers) for one in drawn(some, 5)] for _ in "ab"
    )
    assert first == again
    assert first != [(one.size, one.question.id, one.answers) for one in drawn(some, 5, seed=8)]


def test_a_home_holds_the_answer_or_nothing_of_it(some):
    seen = set()
    for home in drawn(some, 30):
        asker, number = home.question.id.split("-")
        corpus = home.searcher.corpus
        places = [corpus.place(slot)[:2] for slot in range(len(home.searcher))]
        held = [at for at, place in enumerate(places) if place == (f"{asker}.md", int(number))]
        assert held == list(home.answers)
        assert bool(held) == bool(home.question.needed)
        assert 0 < len(places) <= home.size
        seen.add((home.size, bool(home.answers), home.question.id.startswith(home.author)))
    sizes = [size for size in SIZES if size < 60]
    assert seen >= {(size, True, True) for size in sizes}
    assert seen >= {(size, False, own) for size in sizes for own in (True, False)}
