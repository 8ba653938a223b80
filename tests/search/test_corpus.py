"""Units as columns, and their order in files."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.search import Chunk, Source
from agentd.memory.index.search import words
from agentd.memory.index.search.corpus import NOBODY, Corpus, is_evergreen
from agentd.memory.index.search.entries import entry


def chunk(line, text="words", path="memory/a.md", day=date(2026, 1, 2), **more):
    return Chunk(path, line, line, text, Source.NOTES, "main", day, **more)


def corpus(*chunks):
    made = Corpus()
    traits = [entry(one).traits for one in chunks]
    made.add(chunks, [words.terms(one.text) for one in chunks], traits)
    return made


@given(st.permutations(range(8)), st.sets(st.integers(0, 7), max_size=7))
def test_neighbours_are_those_of_the_file_in_any_order_of_insertion(order, gone):
    made = corpus(*(chunk(line) for line in order))
    made.remove([order.index(line) for line in gone])
    left = [order.index(line) for line in sorted(set(range(8)) - gone)]
    for at, slot in enumerate(left):
        around = made.around(np.array([slot]), 1)[0].tolist()
        before = left[at - 1] if at else NOBODY
        after = left[at + 1] if at + 1 < len(left) else NOBODY
        assert around == [before, slot, after]


def test_files_are_strangers():
    made = corpus(chunk(1), chunk(2, path="memory/b.md"))
    assert made.around(np.array([0, 1]), 1).tolist() == [[NOBODY, 0, NOBODY], [NOBODY, 1, NOBODY]]


def test_speakers_are_known_by_each_of_their_names():
    made = corpus(chunk(1, speaker="Anna Berg"), chunk(2, speaker="Anna Lind"), chunk(3))
    assert len(made.speakers("anna")) == 2
    assert len(made.speakers("berg")) == 1
    assert made.speakers("carl") == frozenset()


def test_what_is_undated_or_kept_in_mind_does_not_age():
    assert is_evergreen(chunk(1, path="MEMORY.md"))
    assert is_evergreen(chunk(1, path="@work/MEMORY.md"))
    assert is_evergreen(chunk(1, path="memory/topics.md", day=None))
    assert not is_evergreen(chunk(1, path="memory/x/2026-01-02.md"))
    assert not is_evergreen(chunk(1, path="sessions/main.jsonl"))
    made = corpus(chunk(1), chunk(2, day=None))
    ages = made.ages(np.array([0, 1]), date(2026, 1, 12))
    assert ages[0] == 10.0
    assert np.isnan(ages[1])


def test_only_what_nobody_wrote_here_falls_below_the_floor_of_importance():
    given_ = (1.0, 0.6, 0.3, 0.1, 0.0)
    made = corpus(*(chunk(line, importance=value) for line, value in enumerate(given_, 1)))
    weights = made.importance(np.arange(len(given_))).tolist()
    assert weights == pytest.approx([1.0, 0.92, 0.86, 0.4, 0.0])
