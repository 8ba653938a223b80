"""What of a message is quotation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.spans import shift_spans, unite_spans
from agentd.memory.facts.quotation import quoted_spans
from tests.growth import QUADRATIC, growth

SIX = "I have moved to Rome now"
LONG_ZH = "我下个月要搬到上海去住你知道吗真的"
SIGNS = '"“”„«»‹›‘’‚‛「」『』`~>< \n\tab5我'
TEXTS = st.text(st.sampled_from(SIGNS) | st.characters(), max_size=80)


def quoted(text, *marked):
    return [text[start:end] for start, end in quoted_spans(text, marked)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I live in Bern.\n> I live in Rome\nAnd you?", ["> I live in Rome"]),
        ("  > one\n> two\n\n> three", ["  > one\n> two", "> three"]),
        ("5 > 3, and that is that", []),
        ("see\n```py\nx = 1\n```\nok", ["```py\nx = 1\n```"]),
        ("see\n~~~~\n```\nx\n~~~\n~~~~~\nok", ["~~~~\n```\nx\n~~~\n~~~~~"]),
        ("see\n```\nnever closed\nI am 5", ["```\nnever closed\nI am 5"]),
        ("see ```x``` and\n```\ny\n```", ["```x```", "```\ny\n```"]),
        ("see ```py\nx\n``` there", ["```py\nx\n```"]),
        ("use `git push` now", ["`git push`"]),
        ("use `` a ` b `` now", ["`` a ` b ``"]),
        ("it`s mine and don`t touch it", []),
        ("用`git`吧", ["`git`"]),
        ("a ` b\n\nc ` d", []),
        ('x <data source="a.md">\nhi\n</data> y', ['<data source="a.md">\nhi\n</data>']),
        ("x <DATA >open", ["<DATA >open"]),
        ("a <database> of <data", []),
    ],
)
def test_lines_code_and_fences_are_quotation(text, parts):
    assert quoted(text) == parts


@pytest.mark.parametrize(
    "marks", ['""', "“”", "„“", "„”", "«»", "»«", "‹›", "›‹", "‘’", "‚‘", "””"]
)
def test_six_words_between_marks_are_quotation_and_five_are_not(marks):
    opening, closing = marks
    said = f"{opening}{SIX}{closing}"
    assert quoted(f"He says {said}, you know") == [said]
    assert quoted(f"He says {opening}{SIX[2:]}{closing}, you know") == []


@pytest.mark.parametrize("marks", ["「」", "『』", "“”", '""', "｢｣"])
def test_sixteen_characters_without_blanks_between_words_are_quotation(marks):
    opening, closing = marks
    said = f"{opening}{LONG_ZH[:16]}{closing}"
    assert quoted(f"他说{said}吧") == [said]
    assert quoted(f"他说{opening}{LONG_ZH[:15]}{closing}吧") == []


@pytest.mark.parametrize(
    "text",
    [
        "don't think it's what the kids' room or the parents' house needs, isn't it",
        "don’t think it’s what the kids’ room or the parents’ house needs, isn’t it",
        'I have a 24" monitor and I want to buy another of 27" for my desk',
        "He is 5'10\" tall and she, I think, is more like 5'6\" or so",
        'I "really" want "this one" and nothing else in the whole wide "world"',
        "rock ’n’ roll is what I like the most of it all, ’cause it’s loud",
        '"one two three four five',
        "“one two three four five six",
    ],
)
def test_apostrophes_inches_and_stressed_words_are_no_quotation(text):
    assert quoted(text) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("‘I don’t know what to do now’, he said", ["‘I don’t know what to do now’"]),
        (f"“he said “no” and {SIX}” ok", [f"“he said “no” and {SIX}”"]),
        (f"« Il a dit « non » et {SIX} » ok", [f"« Il a dit « non » et {SIX} »"]),
        (f'"short" and more of my own words "{SIX}"', [f'"{SIX}"']),
        ("“one two three `four` five six seven” ok", ["“one two three `four` five six seven”"]),
    ],
)
def test_what_stands_within_marks_does_not_end_them(text, parts):
    assert quoted(text) == parts


def test_a_paste_within_a_fence_that_was_typed_leaves_what_follows_alone():
    text = '```\nit\'s "open\n```\nI live in Bern and that is "mine"'
    assert quoted(text, (4, 15)) == ["```\nit's \"open\n```"]
    text = "look: ``` is odd\nI live in Bern"
    assert quoted(text, (6, 16)) == ["``` is odd"]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=4))
def test_spans_are_in_order_apart_within_the_text_and_hold_what_was_marked(text, marked):
    spans = quoted_spans(text, marked)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(set(edges))
    assert all(0 <= edge <= len(text) for edge in edges)
    inside = {at for start, end in spans for at in range(start, end)}
    assert {at for start, end in marked for at in range(start, min(end, len(text)))} <= inside


@given(
    st.text(
        st.characters(categories=["L", "N", "Zs"], include_characters=".,;:!?-'’()"), max_size=200
    )
)
def test_words_without_signs_are_no_quotation(text):
    assert quoted_spans(text) == ()


@given(
    st.text(st.sampled_from("ab我 \n"), max_size=40), st.text(st.sampled_from("ab \n"), max_size=40)
)
def test_a_quoted_line_is_found_wherever_it_stands(before, behind):
    text = f"{before}\n> a line\n{behind}"
    start = len(before) + 1
    assert quoted_spans(text) == ((start, start + len("> a line")),)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6), st.integers(0, 15))
def test_spans_are_united_without_gain_or_loss(spans, length):
    made = unite_spans(spans, length)
    assert {at for a, b in made for at in range(a, b)} == {
        at for a, b in spans for at in range(a, min(b, length))
    }
    edges = [edge for span in made for edge in span]
    assert edges == sorted(set(edges))
    assert unite_spans(shift_spans(made, 5), length + 5) == shift_spans(made, 5)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            '"a',
            '" ',
            '"a b c d e f g" ',
            "` ",
            " `b",
            "`",
            "``` ",
            "``` a\n",
            "~~~\n",
            ">\n",
            ">\na\n",
        ),
        *(
            "<data ",
            "<data>",
            "“",
            "“a ”",
            "« «x»",
            "»",
            "‘a’b",
            "‚",
            "「",
            " ",
            "\n\t",
            "word ",
            "我",
        ),
    ],
)
def test_the_work_grows_like_the_text(piece):
    assert growth(lambda size: quoted_spans((piece * size)[:size]), 60_000) < QUADRATIC


def test_runs_of_backticks_of_all_lengths_are_no_trap():
    runs = " ".join("`" * n for n in range(1, 950))
    assert growth(lambda size: quoted_spans(runs[:size]), 100_000) < QUADRATIC
