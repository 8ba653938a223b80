from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.chunking import lines, tokens, words
from agentd.memory.index.chunking.piece import Lines, cuts, tokens_in


def of(text: str) -> Lines:
    return Lines(text.split("\n"))


def test_lines_begin_at_a_heading_and_after_twenty():
    text = "intro\n# A\n" + "x\n" * 25 + "### deep\n## B\ny"
    assert [(p.first + 1, p.end) for p in lines.pieces(of(text))] == [
        (1, 1),
        (2, 21),
        (22, 28),
        (29, 30),
    ]


@pytest.mark.parametrize("count", [1, 799, 800, 801, 849, 1411, 1480, 1481, 1530, 4000])
def test_words_overlap_by_a_share_and_the_last_chunk_adds_something(count):
    text = "\n".join(f"word{n}" for n in range(count))
    found = [p.text.split() for p in words.pieces(of(text))]
    assert all(len(one) <= 800 + words.FEWEST - 1 for one in found)
    assert found[0][0] == "word0"
    for before, after in pairwise(found):
        assert after[0] == f"word{int(before[0][4:]) + 680}"
        assert len(set(after) - set(before)) >= words.FEWEST
    assert [w for one in found for w in one][-1] == f"word{count - 1}"
    if count <= 800:
        assert [p.text for p in words.pieces(of(text))] == [text]


def test_a_chunk_of_words_keeps_the_spaces_and_names_the_lines():
    text = "one  two\n\n\tthree four\nfive six"
    found = [(p.first, p.end, p.text) for p in words.pieces(of(text), most=3, overlap=0.0)]
    assert found == [(0, 3, "one  two\n\n\tthree"), (2, 4, "four\nfive six")]


def test_tokens_overlap_by_whole_lines():
    text = "\n".join(f"line {n:04} with some words in it" for n in range(300))
    found = list(tokens.pieces(of(text)))
    assert all(tokens_in(p.text) <= 400 for p in found)
    for before, after in pairwise(found):
        assert 60 <= tokens_in("\n".join(text.split("\n")[after.first : before.end])) <= 80
    assert (found[0].first, found[-1].end) == (0, 300)


def test_a_line_of_thousands_of_tokens_is_cut():
    found = list(tokens.pieces(of("short\n" + "many words of a long line. " * 500)))
    assert all(tokens_in(p.text) <= 400 for p in found)
    assert found[-1].end == 2


@given(st.text(alphabet=st.sampled_from("ab. \n漢。é\u2028x"), max_size=3000), st.integers(10, 60))
def test_cuts_are_in_order_small_and_leave_only_space_between(text, limit):
    place = 0
    for begin, end in cuts(text, limit):
        assert not text[place:begin].strip()
        assert 0 < tokens_in(text[begin:end]) <= limit
        place = end
    assert not text[place:].strip()


def test_where_words_are_letters_a_letter_is_a_token():
    assert tokens_in("four" * 5) == 5
    assert tokens_in("漢字漢字") == 4
    assert tokens_in("漢字漢字 abcd") == 6
