"""Exact words are masked in every form in which they were stored, and nothing else is touched."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.erasure import (
    MASK,
    Erasure,
    Excerpt,
    PlacedWords,
    UntracedFact,
    join_erasures,
    mask_spans,
    offset_after_masking,
    sentences_in,
)
from agentd.core.spans import merge_spans, within

LONDON = Erasure(spans=("I live in London.", "The user lives in London."))
ROW = "sessions/main.jsonl:4"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Hi. I live in London. And you?", f"Hi. {MASK}. And you?"),
        ("Since I live\nin  LONDON it rains", f"Since {MASK} it rains"),
        ("noted: “the user lives in London”", f"noted: “{MASK}”"),
        ("My flight to London is BA283 on May 4 at 9:40", None),
        ("The London client wants the offer by Friday, 88k", None),
        ("I live in Londonderry", None),
        ("I live in **London**", None),
        ("", None),
        (MASK, None),
    ],
)
def test_only_the_words_themselves_are_masked(text, left):
    assert LONDON.masked(text) == (text if left is None else left)
    assert LONDON.stands_in(text) == (left is not None)
    assert not LONDON.stands_in(LONDON.masked(text))


words = st.lists(
    st.sampled_from(
        ["tea", "my", "is", "Rex", "dog", "a,", "Zürich.", "小红", "“so”", "3\n", "–", "x's"]
    ),
    max_size=30,
)


@given(words, words, words)
def test_nothing_outside_the_words_changes(before, inside, after):
    said = "Agnieszka's tea " + " ".join(inside)
    erasure = Erasure(spans=(said,))
    text = " ".join([*before, said, *after])
    spans = erasure.found(text)
    assert spans
    kept, done = "", 0
    for start, end in spans:
        kept += text[done:start]
        done = end
    kept += text[done:]
    assert erasure.masked(text).replace(MASK, "") == kept
    assert "Agnieszka" not in erasure.masked(text)
    assert erasure.masked(erasure.masked(text)) == erasure.masked(text)


@given(st.text(), st.text(min_size=1), st.text())
def test_a_text_without_the_words_stays_as_it_is(before, span, after):
    erasure = Erasure(spans=(f"Quastel {span}",))
    text = before + after
    if "quastel" not in text.casefold():
        assert erasure.masked(text) == text


def test_a_mark_counts_at_its_place_alone():
    erasure = Erasure(marks=(PlacedWords(ROW, "tea"),))
    assert erasure.masked("tea, please: Tea", ROW) == f"{MASK}, please: {MASK}"
    assert erasure.masked("tea, please", "sessions/main.jsonl:5") == "tea, please"
    assert erasure.masked("tea, please") == "tea, please"
    assert not erasure.stands_in("tea")


def test_a_mark_with_a_start_is_one_occurrence():
    erasure = Erasure(marks=(PlacedWords(ROW, "Yes", 5),))
    assert erasure.masked("Yes. Yes, yes", ROW, begins=0) == f"Yes. {MASK}, yes"
    assert erasure.masked("Yes, yes", ROW, begins=5) == f"{MASK}, yes"
    assert erasure.masked("Yes. Yes", ROW) == "Yes. Yes", "it is not said where the text begins"
    done = erasure.masked("Yes. Yes, yes", ROW, begins=0)
    assert erasure.masked(done, ROW, begins=0) == done, "it may be done again"


def test_a_mark_is_found_although_other_words_of_its_row_were_masked_since():
    text = "I live in London. Tea. The rest is about something else. Tea?"
    erasure = Erasure(marks=(PlacedWords(ROW, "Tea", text.index("Tea")),))
    shorter = text.replace("I live in London", MASK)
    assert erasure.masked(shorter, ROW, begins=0) == shorter.replace("Tea.", f"{MASK}.")


def test_a_sentence_goes_whole_when_the_user_says_so():
    erasure = Erasure(sentences=("live in london",))
    text = "- [ ] I live in London, near the park. Fine.\nlive\nin London\n"
    assert erasure.masked(text) == f"- [ ] {MASK} Fine.\n{MASK}\n{MASK}\n"


def test_a_line_without_end_loses_the_part_that_says_it_and_no_more():
    text = " ".join(f"{n}" for n in range(40_000))
    masked = Erasure(sentences=("Rex",)).masked(f"{text} Rex {text}")
    assert masked.count(MASK) == 1
    assert len(masked) > 2 * len(text) - 3000


def test_the_mask_itself_is_never_masked():
    erasure = Erasure(spans=("forgotten",), sentences=("forgotten",))
    assert erasure.masked(f"{MASK} was Forgotten", ROW).count("[") == 1


def test_overlapping_words_are_masked_together():
    erasure = Erasure(spans=("my dog Rex", "Rex barks a lot"))
    assert erasure.masked("so my dog Rex barks a lot, yes") == f"so {MASK}, yes"


def test_many_words_are_found_by_their_longest():
    spans = tuple(f"the number {n} is Quastel{n}" for n in range(500))
    erasure = Erasure(spans=(*spans, "我的妹妹叫小红"))
    text = "So the number 77 is QUASTEL77 and 我的妹妹叫小红. The number 77 stays."
    assert erasure.masked(text) == f"So {MASK} and {MASK}. The number 77 stays."


@pytest.mark.parametrize("name", ["Renée", "Łukasz", "小黑", "Ольга", "Straße", "فريد"])
def test_names_of_all_scripts_are_found_behind_the_escapes_of_json(name):
    erasure = Erasure(spans=(f"called {name} now",))
    row = json.dumps([{"text": f'Say "called {name}\nnow".', f"called {name} now": 3}])
    assert erasure.glimpsed(row)
    assert erasure.within(json.loads(row)) == [{"text": f'Say "{MASK}".', MASK: 3}]
    assert not erasure.glimpsed(json.dumps("called otherwise now"))


def test_a_glimpse_sees_the_marks_of_a_place():
    erasure = Erasure(marks=(PlacedWords(ROW, "tea"),))
    assert erasure.glimpsed('["tea"]', ROW)
    assert not erasure.glimpsed('["tea"]')


def test_it_survives_json_and_what_an_older_agentd_began_goes_by_sentences():
    at = datetime(2026, 5, 4, 9, 40, tzinfo=UTC)
    erasure = Erasure(
        ("a b c",),
        (PlacedWords(ROW, "tea", 3), PlacedWords("alerts:5", "x")),
        ("s",),
        ("k3f9",),
        (UntracedFact("k3f9", "a b c", "c", ("q",), (ROW,), at), UntracedFact("x", "y")),
    )
    assert Erasure.from_json(json.loads(json.dumps(erasure.as_json()))) == erasure
    old = {"phrases": ["I live in Ulm."], "values": [["Ulm", []]]}
    assert Erasure.from_json(old) == Erasure(sentences=("I live in Ulm.",))


def test_several_are_one():
    one, other = Erasure(("a",), (PlacedWords("x:1", "b"),)), Erasure(("a", "c"), ids=("i",))
    assert join_erasures([one, other]) == Erasure(
        ("a", "c"), (PlacedWords("x:1", "b"),), ids=("i",)
    )


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=4))
def test_a_place_in_a_text_moves_with_what_is_masked_before_it(text, parts):
    spans = merge_spans((s, min(s + n, len(text))) for s, n in parts if s < len(text))
    masked = mask_spans(text, spans)
    for at, letter in enumerate(text):
        if not any(start <= at < end for start, end in spans):
            assert masked[offset_after_masking(at, spans)] == letter
    assert offset_after_masking(len(text), spans) == len(masked)


def test_what_lies_in_a_part_is_counted_from_there():
    assert within([(2, 6), (8, 9), (20, 22)], 4, 10) == ((0, 2), (4, 5))


def test_sentences_stand_without_their_bullets():
    text = "# Day\n- tea. And more!\n\n  * x"
    assert [text[a:b] for a, b in sentences_in(text)] == ["# Day", "tea.", "And more!", "x"]


@pytest.mark.parametrize(
    "filler",
    ["a", "word ", ".", ". ", "! \n", "\n", " ", "\\n", "-", "x.", "\u4e00", "\u200b", "live "],
)
def test_the_time_is_linear_in_the_length(filler):
    text = (filler * 450_000)[:450_000]
    started = time.monotonic()
    assert LONDON.masked(f"{text}\n") == f"{text}\n"
    assert MASK in LONDON.masked(f"{text} I live in London\n")
    assert MASK in Erasure(sentences=("Quastel",)).masked(f"{text} Quastel\n")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("kind", ["spans", "sentences"])
@pytest.mark.parametrize("words", ["Rex has a collar", "Rëx hat ein Halsband"])
def test_words_are_found_in_a_long_text_wherever_they_stand(kind, words):
    erasure = Erasure(**{kind: (words,)})
    spread = words.upper().replace(" ", "\n\n ")
    around = [f"Line {n}: Rex and Rëx.\n" for n in range(1_000)]
    for at in (0, 500, 1_000):
        text = "".join([*around[:at], f"{spread}!\n", *around[at:]])
        begin = text.index(spread)
        assert [text[a:b] for a, b in erasure.found(text)] == [
            text[a + begin : b + begin] for a, b in erasure.found(f"{spread}!\n")
        ]
        assert not erasure.stands_in(erasure.masked(text))


def test_of_an_excerpt_only_its_parts_go_wherever_all_of_it_stands():
    erasure = Erasure(excerpts=(Excerpt("I live in Ulm with Ann", ("live in Ulm",)),))
    assert erasure.masked("So: I LIVE in  Ulm with Ann!") == f"So: I {MASK} with Ann!"
    assert erasure.masked("You live in Ulm") == "You live in Ulm"
    assert erasure.glimpsed("I live in Ulm with Ann")


def test_an_excerpt_whose_parts_are_not_in_it_goes_whole():
    erasure = Erasure(excerpts=(Excerpt("I live in Ulm with Ann", ("Bonn",)),))
    assert erasure.masked("I live in Ulm with Ann.") == f"{MASK}."


def test_what_an_older_agentd_began_has_no_excerpts():
    data = Erasure(spans=("a b c",)).as_json()
    del data["excerpts"]
    assert Erasure.from_json(data) == Erasure(spans=("a b c",))
