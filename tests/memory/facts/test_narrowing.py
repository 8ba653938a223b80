"""Which of the user's words go with a forgotten fact, where they say something else besides."""

from __future__ import annotations

import pytest

from agentd.core.erasure import Erasure, Excerpt, Mark, Sought
from agentd.core.fact import Besides
from agentd.memory.facts.narrowing import narrowed, passages

ROW = "sessions/main.jsonl:3"
SAID = "I live in Lyon with my husband Bertrand"


def of(quote: str, value: str = "Lyon", text: str = "The user lives in Lyon.") -> Erasure:
    """A fact whose evidence is the quote, from the sixth character of a row on."""
    sought = Sought("k3f9", text, value, (quote,))
    return Erasure((text, quote), (Mark(ROW, quote, 6),), ids=("k3f9",), sought=(sought,))


def test_only_the_words_go_that_say_it_and_in_copies_of_the_quote_too():
    less, besides = narrowed(of(SAID), [Mark(ROW, "live in Lyon")])
    assert besides == ()
    assert less.marks == (Mark(ROW, "live in Lyon", 8),)
    assert less.excerpts == (Excerpt(SAID, ("live in Lyon",)),)
    assert less.sought[0].quotes == ("live in Lyon",)
    assert less.masked(f"Noted: {SAID}.") == "Noted: I [forgotten] with my husband Bertrand."
    assert less.masked("Does my aunt live in Lyon?") == "Does my aunt live in Lyon?"
    assert Erasure.from_json(less.as_json()) == less


@pytest.mark.parametrize(
    ("quote", "marks", "text"),
    [
        (SAID, None, ""),
        (SAID, [], ""),
        (SAID, [Mark("sessions/main.jsonl:4", "live in Lyon")], ""),
        (SAID, [Mark(ROW, "live in")], "I [forgotten] [forgotten] with my husband Bertrand"),
        (
            "I live in Lyon, and Lyon's trams please Bertrand",
            [Mark(ROW, "I live in Lyon")],
            "[forgotten], and [forgotten] trams please Bertrand",
        ),
    ],
)
def test_what_cannot_be_told_apart_goes_and_is_told(quote, marks, text):
    erasure = of(quote)
    assert narrowed(erasure, marks) == (erasure, (Besides(ROW, text),))


def test_a_quote_that_is_all_marked_goes_and_nothing_is_told():
    erasure = of(SAID)
    assert narrowed(erasure, [Mark(ROW, SAID)]) == (erasure, ())


@pytest.mark.parametrize("quote", ["I live in Lyon", "Lyon", "We LIVE in Lyon!"])
def test_nobody_is_asked_about_a_quote_that_says_the_fact_alone(quote):
    assert passages(of(quote)) == ()
    assert narrowed(of(quote), None) == (of(quote), ())


def test_without_a_value_a_word_of_the_sentence_tells():
    erasure = of("I fear heights, and heights fear Bertrand", "", "The user fears heights.")
    less, besides = narrowed(erasure, [Mark(ROW, "I fear heights")])
    assert less == erasure
    assert besides[0].text == "[forgotten], and [forgotten] [forgotten] Bertrand"
