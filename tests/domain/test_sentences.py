"""Where the sentences of a text end."""

from __future__ import annotations

import pytest

from agentd.core.text import sentences
from tests.growth import QUADRATIC, growth


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" … \n!?", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("a line\n- another\n\nlast", ["a line", "- another", "last"]),
        ("version 1.2 of a.py is out… yes", ["version 1.2 of a.py is out…", "yes"]),
        ("我的妹妹叫小红。她很好！", ["我的妹妹叫小红。", "她很好！"]),
        ("no end", ["no end"]),
    ],
)
def test_a_text_is_split_where_its_sentences_and_lines_end(text, found) -> None:
    assert list(sentences(text)) == found


@pytest.mark.parametrize("unit", ["…", "...a", ". ", "?!"])
def test_marks_without_end_take_time_in_proportion(unit: str) -> None:
    text = unit * 40_000
    assert growth(lambda size: list(sentences(text[:size] + "x")), 8_000) < QUADRATIC
