"""Texts as terms."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.search import words
from agentd.memory.index.search.query import parse
from agentd.memory.index.search.spelling import Spelling


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What's my dog's name?", ["dog", "name"]),
        ("Running runs", ["run", "run"]),
        ("dark-mode", ["dark-mode", "dark", "mode"]),
        ("parseQuery", ["parsequeri", "pars", "queri"]),
        ("café CAFÉ cafe\u0301", ["cafe", "cafe", "cafe"]),
        ("東京タ", ["東京", "京タ"]),
        ("京", ["京"]),
        ("the of and", []),
        ("x 7", ["x", "7"]),
        ("tea 😀! ❤️❤ 👍🏽", ["tea", "u1f600", "u2764", "u2764", "u1f44d"]),
        ("🇩🇪🇫🇷", ["u1f1e91f1ea", "u1f1eb1f1f7"]),
        ("👩‍🚀", ["u1f469", "u1f680"]),
        ("→ § … ™ 🏽", []),
    ],
)
def test_a_text_has_its_terms(text, terms):
    assert words.terms(text) == terms


@pytest.mark.parametrize("word", ["AB12", "a/b.py", "fooBar", "48213", "v1.2", "user@host"])
def test_names_made_for_machines_are_identifiers(word):
    assert words.is_identifier(word)


@pytest.mark.parametrize("word", ["house", "2026", "don't", "東京", "Anna"])
def test_words_and_years_are_none(word):
    assert not words.is_identifier(word)


@given(st.text())
def test_any_text_has_terms_and_costs(text):
    assert all(0 < len(term) <= words.MAX_TERM * 3 for term in words.terms(text))
    assert words.count_tokens(text) >= 0
    parse(text)


def test_blanks_count_as_one_before_a_query_is_cut():
    assert parse(" " * 100_000 + "\n kettle\t\n" + " " * 100_000 + "roof").terms == (
        "kettl",
        "roof",
    )
    assert words.query_part("a" * 20_000) == "a" * 10_000


def test_a_query_tells_what_it_wants():
    asked = parse('how many times did you say "red herring" about AB-12 before?')
    assert ("red", "herring") in asked.exact
    assert ("ab-12",) in asked.exact


@pytest.mark.parametrize("wrong", ["tomatos", "tmoatoes", "tomatoess", "tomaoes", "tomstoes"])
def test_the_nearest_known_word_comes_first(wrong):
    spelling = Spelling()
    spelling.learn(["tomatoes", "potatoes", "potato", "tornado", "market"])
    assert spelling.near(wrong)[0][0] == "tomatoes"


@pytest.mark.parametrize("other", ["zeppelin", "to", "x" * 30, "", "1234567"])
def test_a_word_near_to_none_stays_alone(other):
    spelling = Spelling()
    spelling.learn(["tomatoes", "market"])
    assert spelling.near(other) == []


@given(st.text("abZ09_-./:@#+' \n!\x1c", max_size=40))
def test_plain_letters_are_read_as_among_others(text):
    assert words.raw_words(f"{text} é") == [*words.raw_words(text), "é"]


def test_reading_ever_new_words_takes_no_more_memory_than_reading_some():
    def read(start: int, end: int) -> None:
        for number in range(start, end):
            words.terms(f"word{number:x}y parse{number:x}Query {'long' * (number % 999)}")

    read(0, 3 * words.CACHED // 2)
    tracemalloc.start()
    try:
        read(3 * words.CACHED // 2, 6 * words.CACHED)
        assert tracemalloc.get_traced_memory()[0] < 400 * 2 * words.CACHED
    finally:
        tracemalloc.stop()
