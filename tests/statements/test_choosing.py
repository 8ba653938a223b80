from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.statements.choosing import is_none, places, says_only

REX = "The user's dog is called Rex."


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("2", (1,)),
        ("#2", (1,)),
        ("no. 2", (1,)),
        ("number 2 please", (1,)),
        ("forget the first one", (0,)),
        ("the last", (2,)),
        ("die zweite", (1,)),
        ("both", (0, 1, 2)),
        ("all of them", (0, 1, 2)),
        ("4", ()),
        ("0", ()),
        ("tell me 2 jokes", ()),
        ("what is 2?", ()),
        ("thanks", ()),
        ("", ()),
        ("2 " * 200, ()),
    ],
)
def test_a_place_in_a_list_is_named_by_number_or_word(text, named):
    assert places(text, 3) == named


@pytest.mark.parametrize("text", ["no", "none of them", "keep both", "nein", "never mind"])
def test_none_of_them_is_an_answer(text):
    assert is_none(text)


@pytest.mark.parametrize("text", ["note this", "Rex", "now tell me a joke", ""])
def test_anything_else_is_not_none(text):
    assert not is_none(text)


@pytest.mark.parametrize("text", ["Rex", "the dog", "the one called Rex", "my dog Rex"])
def test_words_of_a_sentence_name_it(text):
    assert says_only(text, REX)


@pytest.mark.parametrize("text", ["Max", "tell me about Rex", "Rex?", "thanks", "the one", ""])
def test_other_words_do_not(text):
    assert not says_only(text, REX)


@given(st.text(), st.integers(0, 20))
def test_any_text_can_be_looked_at(text, count):
    assert all(0 <= place < count for place in places(text, count))
    assert is_none(text) in {True, False}
    assert says_only(text, text) in {True, False}
