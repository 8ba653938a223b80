"""Small homes, cut out of larger collections."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from agentd.core.search import SearchOptions
from agentd.memory.index.search.units import embedded_text
from benchmarks import embedder
from benchmarks.collections import year
from benchmarks.fit import Fit, embedded, left_out, ready
from benchmarks.homes import SIZES, Home, drawn
from benchmarks.search_quality import auroc
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
        assert len(places) == home.size
        assert home.foreign == (not home.question.id.startswith(home.author))
        seen.add((home.size, bool(home.answers), not home.foreign))
    sizes = [size for size in SIZES if size < 60]
    assert seen >= {(size, True, True) for size in sizes}
    assert seen >= {(size, False, own) for size in sizes for own in (True, False)}


TEXTS = 310  # of the year of notes: as many as are embedded in a few seconds
APART = 0.8  # .69 before the confidence knew how many texts were searched


def confidence(home: Home, fit: Fit) -> float:
    home.searcher.weights, home.searcher.kinds = fit.weights, fit.kinds
    options = SearchOptions(today=home.question.today)
    return home.searcher.search(home.question.text, home.vector, options).confidence


async def test_an_answer_among_ten_texts_is_surer_than_none_among_three_hundred() -> None:
    """With the weights that were fitted without this author."""
    whole = year()
    at = {place: [n for n in held if n < TEXTS] for place, held in whole.at.items()}
    part = replace(whole, chunks=whole.chunks[:TEXTS], at=at)
    asked = [one for one in part.questions if any(part.holding(p) for p in one.needed)]
    part = replace(part, questions=asked)
    async with embedder.opened() as made:
        assert made is not None
        texts = await embedded(made, map(embedded_text, part.chunks))
        questions = await embedded(made, (one.text for one in asked), query=True)
        fit = left_out("year", made.model)
    assert fit is not None
    homes = list(drawn([ready(part, texts, questions)], 25))
    known = [confidence(one, fit) for one in homes if one.size == 10 and one.answers]
    unknown = [confidence(one, fit) for one in homes if one.size == 300 and not one.answers]
    assert auroc(known, unknown) >= APART
