from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import GraphError
from agentd.zero.naming import (
    DEFAULT_ALIASES,
    MOST_BYTES,
    Aliases,
    normal_label,
    normal_predicate,
    parse_aliases,
)
from tests.growth import QUADRATIC, growth

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    alphabet="aBcΣßİ -_–’5.\t\u0301\u0345", max_size=12
)


@pytest.mark.parametrize(
    "text",
    [
        "Long Term Memory",
        "long-term-memory",
        "LongTermMemory",
        "longTermMemory",
        "  LONG\tTERM\n\nMEMORY ",
        "long -_- term memory",
        "Long\u2011Term\u200b Memory",
    ],
)
def test_all_spellings_of_a_label_are_one(text: str) -> None:
    assert normal_label(text) == "long-term-memory"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Python 3.11", "python-3.11"),
        ("main.rs", "main.rs"),
        ("GitHub", "github"),
        ("iPhone 15", "iphone-15"),
        ("JavaScript", "javascript"),
        ("OpenAI", "openai"),
        ("C++", "c++"),
        ("C#", "c#"),
        ('a|b:c>d,e=#{}"', 'a|b:c>d,e=#{}"'),
        ("2026-11-22", "2026-11-22"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧-family"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("user’s dog", "user's-dog"),
        ("HTTPServerErrorPage", "httpservererrorpage"),
        ("main_file.py", "main-file.py"),
    ],
)
def test_a_label_stays_meaningful(text: str, label: str) -> None:
    assert normal_label(text) == label


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-5", "5"),
        ("blood type A-", "blood type A"),
        ("at -5 degrees", "at 5 degrees"),
        ("A- positive", "A positive"),
        ("-v", "v"),
    ],
)
def test_signs_that_mean_something_keep_labels_apart(one: str, other: str) -> None:
    assert normal_label(one) != normal_label(other)


def test_a_hyphen_between_spaces_is_a_separator() -> None:
    assert normal_label("heat - 5") == normal_label("heat — 5") == "heat-5"


@given(TEXTS)
def test_a_normal_label_is_its_own_normal_form(text: str) -> None:
    try:
        label = normal_label(text)
    except GraphError:
        return
    assert normal_label(label) == label
    assert unicodedata.is_normalized("NFC", label)
    assert not any(c.isspace() for c in label)


@given(TEXTS)
def test_a_normal_predicate_is_its_own_normal_form(text: str) -> None:
    try:
        predicate = normal_predicate(text)
    except GraphError:
        return
    assert normal_predicate(predicate) == predicate


@pytest.mark.parametrize("text", ["a\u13f8b", "a\u13f0b"])
def test_letters_that_fold_to_capitals_part_no_words(text: str) -> None:
    assert normal_predicate(text) == "a\u13f0b"


@pytest.mark.parametrize("text", ["is a", "is-a", "IS_A", " Is  A ", "isA", "is\na"])
def test_all_spellings_of_a_predicate_are_one(text: str) -> None:
    assert normal_predicate(text) == "is_a"


@pytest.mark.parametrize("text", ["", " \t\n", "-", "_ -", "\u200b", "\x00"])
def test_what_says_nothing_is_no_name(text: str) -> None:
    with pytest.raises(GraphError, match=r"label .* says nothing"):
        normal_label(text)
    with pytest.raises(GraphError, match=r"predicate .* says nothing"):
        normal_predicate(text)


def test_a_label_of_ten_kilobytes_is_one_and_a_longer_one_is_refused() -> None:
    assert normal_label("x" * 10_240) == "x" * 10_240
    assert len(normal_label("x" * MOST_BYTES)) == MOST_BYTES
    with pytest.raises(GraphError, match=f"more than {MOST_BYTES}"):
        normal_label("x" * (MOST_BYTES + 1))
    with pytest.raises(GraphError, match=f"more than {MOST_BYTES}"):
        normal_label("é" * (MOST_BYTES // 2 + 1))


def test_half_a_character_is_no_label() -> None:
    with pytest.raises(GraphError, match="half of one"):
        normal_label("a\udc00")


def test_an_alias_leads_to_the_concept_in_any_spelling() -> None:
    aliases = Aliases({"LTM": "Long Term Memory"})
    assert aliases.resolve("ltm") == "long-term-memory"
    assert aliases.resolve("Short_Term Memory") == "short-term-memory"


def test_aliases_of_one_workspace_are_not_those_of_another() -> None:
    assert Aliases({"wm": "working memory"}).resolve("WM") == "working-memory"
    assert Aliases().resolve("WM") == "wm"


def test_a_chain_of_aliases_is_followed_to_its_end() -> None:
    aliases = Aliases({"a": "b", "b": "c", "c": "C"})
    assert [aliases.resolve(name) for name in "abc"] == ["c", "c", "c"]
    assert aliases.table == {"a": "c", "b": "c"}


def test_aliases_that_go_in_a_circle_are_refused() -> None:
    with pytest.raises(GraphError, match="circle: b = c = b"):
        Aliases({"a": "b", "b": "c", "c": "b"})


def test_an_alias_for_two_things_is_refused() -> None:
    with pytest.raises(GraphError, match="'w-m' stands for 'working-memory' and for 'white-mouse'"):
        Aliases({"w m": "working memory", "W-M": "white mouse"})


def test_a_workspace_says_otherwise_than_the_usual_aliases() -> None:
    own = parse_aliases("Longterm Memory = diary\n")
    assert Aliases({**DEFAULT_ALIASES, **own}).resolve("longterm-memory") == "diary"


def test_default_aliases_are_no_abbreviations() -> None:
    assert all(len(alias) > 10 for alias in Aliases().table)
    assert Aliases().resolve("Longterm Memory") == "long-term-memory"


def test_a_table_of_aliases_may_begin_with_a_byte_order_mark() -> None:
    assert parse_aliases("\ufeff# Aliases\njs = javascript\n") == {"js": "javascript"}


def test_a_table_of_aliases_is_read_from_lines() -> None:
    text = "# Aliases\n\nstm = Short Term Memory\n- JS = JavaScript\n* a=b = equation\nx=y\n"
    assert parse_aliases(text) == {
        "stm": "short-term-memory",
        "js": "javascript",
        "a=b": "equation",
        "x": "y",
    }


def test_a_circle_is_told_in_its_order_however_its_aliases_are_written() -> None:
    with pytest.raises(GraphError) as caught:
        parse_aliases("c = d\nb = c\na = b\nx = a\nd = b\n")
    assert str(caught.value) == "line 5: the aliases go in a circle: d = b = c = d"
    assert parse_aliases("d = e\nc = d\nb = c\na = b\ne = E\n")["a"] == "b"
    assert Aliases({"a": "b", "c": "d", "b": "c", "e": "a"}).table == dict.fromkeys("abce", "d")


def test_a_long_chain_of_aliases_takes_no_longer_than_its_lines() -> None:
    def read(count: int) -> None:
        Aliases(parse_aliases("".join(f"a{n + 1} = a{n}\n" for n in range(count))))

    assert growth(read, 1000) < QUADRATIC


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("just words", "line 2: it has no `=`"),
        ("= memory", "line 2: the label '' says nothing"),
        ("memory = ", "line 2: the label '' says nothing"),
        ("a = c", "line 2: 'a' stood for 'b' in line 1 and stands for 'c' here"),
        ("b = a", "line 2: the aliases go in a circle: b = a = b"),
    ],
)
def test_a_bad_line_of_aliases_is_told_with_its_number(line: str, why: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_aliases(f"a = b\n{line}\n")
    assert str(caught.value) == why
    assert caught.value.line == 2
    assert caught.value.cure
