"""The last lines of a terminal, changed in place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.app.chat.painter import Canvas

_TOKENS = re.compile(r"\x1b\[(\d*)([A-Z])|\n|\r|[^\x1b\r\n]")
_COLUMNS, _ROWS = 20, 10


class Paper:
    """As much of a terminal as a canvas needs; it scrolls without an end."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0

    def write(self, text: str) -> None:
        for match in _TOKENS.finditer(text):
            token, number, command = match[0], match[1], match[2]
            if token == "\n":
                self.row += 1
                self.column = 0
                if self.row == len(self.lines):
                    self.lines.append("")
            elif token == "\r":
                self.column = 0
            elif command == "A":
                self.row -= int(number)
                assert self.row >= 0
            elif command in ("K", "J"):
                self.lines[self.row] = self.lines[self.row][: self.column]
                if command == "J":
                    del self.lines[self.row + 1 :]
            else:
                line = self.lines[self.row]
                self.lines[self.row] = line[: self.column] + token + line[self.column + 1 :]
                self.column += 1


lines = st.lists(st.text("ab ", min_size=1, max_size=_COLUMNS - 1).map(str.rstrip), max_size=_ROWS)


@given(st.lists(st.tuples(lines, st.booleans()), max_size=8))
def test_what_is_seen_is_what_was_kept_and_what_was_shown_last(steps) -> None:
    paper, canvas, kept = Paper(), Canvas(lambda: (_COLUMNS, _ROWS)), []
    for shown, is_final in steps:
        paper.write(canvas.show(shown))
        assert [line.rstrip() for line in paper.lines] == [*kept, *shown] or not shown
        if is_final:
            paper.write(canvas.keep())
            kept += shown
    paper.write(canvas.show([]))
    assert [line.rstrip() for line in paper.lines] == [*kept, ""]


def test_a_line_that_grows_costs_what_it_grew_by() -> None:
    canvas = Canvas(lambda: (_COLUMNS, _ROWS))
    canvas.show(["one", "two"])
    assert canvas.show(["one", "two and", "three"]) == " and\nthree"


def test_lines_that_a_narrower_terminal_has_broken_are_gone_over_whole() -> None:
    size = [40, 10]
    canvas = Canvas(lambda: (size[0], size[1]))
    canvas.show(["x" * 30])
    size[0] = 20
    assert canvas.show(["y"]) == "\r\x1b[1Ay\x1b[K\x1b[J"


@pytest.mark.parametrize("height", [3, 5])
def test_lines_that_have_left_the_screen_are_left_alone(height: int) -> None:
    canvas = Canvas(lambda: (_COLUMNS, height))
    canvas.show([str(number) for number in range(9)])
    written = canvas.show([f"{number}!" for number in range(9)])
    assert written.startswith(f"\r\x1b[{height - 1}A{9 - height}!")
