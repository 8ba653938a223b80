"""Words are compared in one form, and found in the original."""

from __future__ import annotations

import json
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.spans import shift_spans
from agentd.core.text import FoldedText, plain, stretches, trim_punctuation


def found(words: str, text: str) -> list[str]:
    wanted = trim_punctuation(FoldedText(words).text)
    return [text[start:end] for start, end in FoldedText(text).places(wanted)]


@pytest.mark.parametrize(
    ("words", "text", "there"),
    [
        ("i live in london", "Well, I LIVE\n  in London!", ["I LIVE\n  in London"]),
        ("don't go", "I don’t go", ["don’t go"]),
        ("the “old” one", 'the "old" one', ['the "old" one']),
        ("1990-2000", "1990–2000", ["1990–2000"]),
        ("rex", "R\u200be\u00adx barks", ["R\u200be\u00adx"]),
        ("rené", "Rene\u0301 x", ["Rene\u0301"]),
        ("Straße", "STRASSE 5", ["STRASSE"]),
        ("office", "oﬃce", ["oﬃce"]),
        ("rexú", "Rexu\u200b\u0301 x", ["Rexu\u200b\u0301"]),
        ("小红", "我的妹妹叫小红。", ["小红"]),
        ("rex", "Rexford prex rex-t _rex_ (REX)", ["rex", "rex", "REX"]),
        ("london", "Londoner", []),
        ("tea", "tea tea", ["tea", "tea"]),
        ("é x", r"\u00e9\nx", [r"\u00e9\nx"]),
        ("😀 a", r"\ud83d\ude00 a", [r"\ud83d\ude00 a"]),
        ("said 'no'", r"said \"no\" twice", [r"said \"no"]),
        ("one two", r"one\\ntwo", [r"one\\ntwo"]),
    ],
)
def test_words_are_found_as_they_were_written(words, text, there):
    assert found(words, text) == there


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_was_escaped_by_json_is_found(before, after):
    text = json.dumps(f"{before} Quastel likes nuts {after}")
    assert found("quastel likes nuts", text)


@given(st.text(alphabet="ab \n\u0301é—-'’\\nu\u200b中", max_size=80))
def test_places_are_parts_that_fold_to_the_words(text):
    folded = FoldedText(text)
    for words in {trim_punctuation(part) for part in folded.text.split(" ")} - {""}:
        for start, end in folded.places(words):
            assert 0 <= start < end <= len(text)
            assert words in FoldedText(text[start:end]).text


@given(st.text(max_size=200))
def test_the_quick_form_never_misses_what_is_there(text):
    for word in FoldedText(text).text.split(" "):
        if word.isalnum() and word.isascii():
            assert word in plain(text)


def test_a_text_of_many_characters_folds_like_each_of_them():
    """What has another form is looked for in the text, and not asked of each letter."""
    codes = map(chr, (*range(0xD800), *range(0xE000, 0x10000), *range(0xE0000, 0xE0200)))
    lone = [one for one in codes if not unicodedata.combining(one) and one != "\\"]
    apart = " ".join(f"a{one}a" for one in lone)
    assert plain(apart) == " ".join(plain(f"a{one}a") for one in lone)


def test_what_nobody_sees_and_kinds_of_quotes_count_for_nothing():
    unseen = "".join(map(chr, (0xAD, 0x200B, 0xFEFF, *range(0xE0000, 0xE0200))))
    assert plain(f"Re{unseen}x’s “tea”–time é") == "rex's 'tea'-time é"


@pytest.mark.parametrize(
    "filler", ["word ", "é ", "中", "\\", "\\n", "\u0301", "a", '{"a": "\\u00e9"} ']
)
def test_a_long_text_takes_time_in_proportion(filler):
    text = (filler * 450_000)[:450_000]
    started = time.monotonic()
    assert found("quastel", f"{text} Quastel")
    assert time.monotonic() - started < 10


LINES = st.one_of(
    st.lists(st.text(alphabet="ab\tçß…Й中´\u0301\u00a8\u200b\\", max_size=6), max_size=14),
    st.lists(st.sampled_from(["", "a", "B", "ab", "ç a", "中"]), max_size=14),
).map("\n".join)


@given(LINES, st.data())
def test_words_stand_nowhere_but_in_the_stretches_where_one_of_them_does(text, data):
    whole = FoldedText(text)
    told = whole.text.split(" ")
    first = data.draw(st.integers(0, len(told) - 1))
    end = data.draw(st.integers(first + 1, len(told)))
    words = trim_punctuation(" ".join(told[first:end]))
    for key in words.split():
        near = stretches(text, {key: len(words.split())})
        there = [s for a, b in near for s in shift_spans(FoldedText(text[a:b]).places(words), a)]
        assert there == list(whole.places(words))


def test_of_a_long_text_the_lines_around_a_word_are_taken_apart_alone():
    lines = [f"line {n} of many" for n in range(1_000)]
    lines[500:500] = ["", "Rex", "", "barks"]
    text = "\n".join(lines)
    ((start, end),) = stretches(text, {"rex": 2})
    assert text[start:end] == "line 499 of many\n\nRex\n\nbarks\nline 500 of many"


def test_a_letter_that_is_compared_for_itself_makes_no_blank_and_is_not_nothing():
    for code in range(0x10000):
        letter = chr(code)
        if stretches(letter, {}) == () and not letter.isspace():
            assert plain(letter).split() == [plain(letter)]
            assert not unicodedata.combining(letter)
