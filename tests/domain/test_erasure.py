"""Words are found in every form in which they were stored, and nothing else is touched."""

from __future__ import annotations

import json
import time

import pytest

from agentd.domain.erasure import MASK, Needles

REX = Needles(("The user's dog is called Rex.",), (("Rex", ()),))
MAX = Needles(("The user's dog is called Max.",), (("Max", ("dog", "name")),))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I like tea. My dog is Rex! And you?", f"I like tea. {MASK} And you?"),
        ("- [ ] walk REX\n- [ ] buy milk\n", f"- [ ] {MASK}\n- [ ] buy milk\n"),
        ("  * Ｒｅｘ\r\nnext\r\n", f"  * {MASK}\r\nnext\r\n"),
        ("Rex's bowl is blue", MASK),
        ("wir gehen mit Rexs Leine", MASK),
        ("R\u200be\u00adx barks", MASK),
        ("Dr. Miller saw Rex today. Fine.", f"{MASK} Fine."),
        ("**Rex**, the `rex`, (Rex)", MASK),
        ("Tyrannosaurus Rexford and prexy stay.", None),
        ("", None),
        (MASK, None),
    ],
)
def test_a_sentence_that_says_it_is_masked_and_the_rest_stays(text, left):
    assert REX.masked(text) == (text if left is None else left)
    assert REX.stand_in(text) == (left is not None)
    assert not REX.stand_in(REX.masked(text))


def test_a_word_that_is_common_needs_another_of_the_fact_in_its_sentence():
    assert MAX.masked("The dog loves Max. Use max 5 lines.") == f"{MASK} Use max 5 lines."
    assert MAX.masked("Both dogs: Max and Moritz") == MASK
    assert MAX.masked("His name was Max.") == MASK
    assert not MAX.stand_in("At the max.\nDogs are loud")


def test_a_whole_sentence_counts_over_line_ends_and_whatever_its_punctuation():
    told = Needles(("My bank is in Linz, near the bridge.",))
    assert (
        told.masked("Hi.\nmy BANK is in\nLinz near the *bridge*\nBye")
        == f"Hi.\n{MASK}\n{MASK}\nBye"
    )
    assert not told.stand_in("My bank is in Linz.")


@pytest.mark.parametrize("said", ["+43 660 5550142", "+43-660/555-0142", "436605550142"])
def test_a_number_is_found_however_it_is_grouped(said):
    needles = Needles((), (("+43 660 555 0142", ()),))
    assert needles.masked(f"Call {said} now. Bye.") == f"{MASK} Bye."
    assert not needles.stand_in("Call 1436605550142")


@pytest.mark.parametrize("text", ["zorblax77x", "#ZORBLAX77", "see_zorblax77_now", "xZorblax77"])
def test_a_telling_word_is_found_inside_others(text):
    assert Needles((), (("Zorblax77", ()),)).stand_in(text)


@pytest.mark.parametrize("name", ["Renée", "Łukasz", "小黑", "Ольга", "Straße", "فريد"])
def test_names_of_all_scripts_are_found_behind_the_escapes_of_json(name):
    needles = Needles((), ((name, ()),))
    for text in (name, name.upper(), json.dumps({"a": f"one\n{name}\tx"})):
        assert needles.stand_in(f"say {text} please")
    assert not needles.stand_in("ein anderer Satz 白 oder so")
    row = json.dumps([{"text": f'Say "{name}".\nMore.', name: 3}])
    assert needles.glimpsed(row)
    assert needles.within(json.loads(row)) == [{"text": f"{MASK}\nMore.", MASK: 3}]


def test_a_name_without_blanks_around_it_is_found_in_a_script_without_blanks():
    assert Needles((), (("小黑", ()),)).masked("我的狗叫小黑。你好。") == f"{MASK}你好。"


def test_a_glimpse_never_misses_what_is_said():
    assert MAX.glimpsed("Max")
    assert not MAX.stand_in("Max")
    assert not MAX.glimpsed("nothing of it")


def test_it_survives_json():
    assert Needles.from_json(json.loads(json.dumps(MAX.as_json()))) == MAX


@pytest.mark.parametrize(
    "filler",
    ["a", "word ", ".", ". ", "! \n", "\n", " ", "\\n", "-", "x.", "\u4e00", "\u200b", "dog "],
)
def test_the_time_is_linear_in_the_length(filler):
    text = (filler * 400_000)[:400_000]
    started = time.monotonic()
    assert MAX.masked(f"{text}\n") == f"{text}\n"
    assert MASK in MAX.masked(f"{text} Max.\nthe dog Max\n")
    assert time.monotonic() - started < 20


def test_a_line_without_end_loses_the_part_that_says_it_and_no_more():
    text = " ".join(f"{n}" for n in range(40_000))
    masked = REX.masked(f"{text} Rex {text}")
    assert masked.count(MASK) == 1
    assert len(masked) > 2 * len(text) - 3000
