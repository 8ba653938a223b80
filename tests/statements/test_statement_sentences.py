"""Where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.statements.sentences import sentences
from tests.growth import QUADRATIC, growth


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("I met Dr. Weber today. Nice.", ["I met Dr. Weber today.", "Nice."]),
        ("It costs 3.50 euros. Fine.", ["It costs 3.50 euros.", "Fine."]),
        (
            "See https://a.example/x.html?y=1. Then go.",
            ["See https://a.example/x.html?y=1.", "Then go."],
        ),
        ("Use e.g. tea. Or not.", ["Use e.g. tea.", "Or not."]),
        ("one\ntwo\n\nthree", ["one", "two", "three"]),
        ("- tea\n* milk\n1. eggs\n- [x] done", ["tea", "milk", "eggs", "done"]),
        ("私は東京に住んでいます。犬がいます！", ["私は東京に住んでいます。", "犬がいます！"]),
        ("Am 3. Mai fliege ich. Gut.", ["Am 3. Mai fliege ich.", "Gut."]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("J. R. Smith came. Yes.", ["J. R. Smith came.", "Yes."]),
        ("wait... what", ["wait...", "what"]),
        ("...\n--\n!", []),
        ("", []),
    ],
)
def test_a_text_falls_into_its_sentences(text: str, found: list[str]) -> None:
    assert [sentence.text for sentence in sentences(text)] == found


@given(st.text(max_size=400))
def test_spans_are_in_order_and_hold_the_text(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert end <= sentence.start < sentence.end
        assert text[sentence.start : sentence.end] == sentence.text
        end = sentence.end


@pytest.mark.parametrize("piece", ["a. ", ".", "a b ", "\n", "1. ", "- "])
def test_time_grows_with_the_text(piece: str) -> None:
    assert growth(lambda size: list(sentences(piece * (size // len(piece)))), 30_000) < QUADRATIC
