"""Where sentences end, and whose they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.providers.offline.language.relations import canonical, is_single, normalise
from agentd.providers.offline.language.sentences import HOLE, order, own_words, sentences, split


def test_sentences_end_where_people_end_them():
    text = "My doctor is Dr. Kim. She is at Elm St. 5, e.g. on v1.2 days! Am 3. Mai?\n- new line"
    assert list(split(text)) == [
        "My doctor is Dr. Kim.",
        "She is at Elm St. 5, e.g. on v1.2 days!",
        "Am 3. Mai?",
        "new line",
    ]


@given(st.text())
def test_a_sentence_is_what_stands_at_its_place(text):
    for sentence in sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("> quoted\nmine", "mine"),
        ("```\ncode\n```\nmine", "mine"),
        ("“I live in Rome, he wrote.” mine", "mine"),
        ("mine\nOn Mon, May 3, Tom wrote:\nhis", "mine"),
        ('my cat is "Mia"', "my cat is  Mia"),
    ],
)
def test_only_the_writers_own_words_are_left(text, left):
    own = own_words(text)
    assert len(own) == len(text)
    assert own.replace(HOLE, "").strip() == left


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Please remember that tea is green", "tea is green"),
        ("denk daran, dass Oma kommt", "Oma kommt"),
        ("Merk dir nichts davon.", None),
        ("Remember, I keep it in the shed", None),
        ("Do you remember my name?", None),
        ("remember it", ""),
    ],
)
def test_an_order_to_remember_is_told_from_other_words(text, asked):
    assert order(text) == asked


def test_relations_have_one_name_and_one_value_or_many():
    assert canonical("dislikes") == ("likes", True)
    assert canonical("no longer home") == ("home", True)
    assert is_single("home")
    assert is_single("wife name")
    assert not is_single("sister name")
    assert not is_single("likes")
    assert normalise(" “Don’t stop!” ") == normalise("don't STOP")
