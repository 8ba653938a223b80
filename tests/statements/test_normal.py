"""One spelling for the same words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.statements.normal import normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes tea.", "the user likes tea"),
        ("The user likes tea.", "User likes tea"),
        ("The user's dog", "user's dog."),
        ("The user’s dog", "The user's dog"),
        ("  The  user\tlikes\ntea !", "the user likes tea"),
        ("Ｔｈｅ user likes ｔｅａ", "the user likes tea"),
        ("STRASSE", "straße"),
        ("cafe\u0301", "caf\u00e9"),
        ("tea\u200b", "tea"),
        ("“tea”", '"tea"'),
        ("a–b", "a-b"),
    ],
)
def test_spellings_that_say_the_same_are_one(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("likes tea", "likes coffee"),
        ("port 80", "port 8.0"),
        ("resume", "résumé"),
        ("C", "C++"),
        ("-5", "5"),
    ],
)
def test_other_words_stay_apart(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text(max_size=300))
def test_normalising_again_changes_nothing(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)
