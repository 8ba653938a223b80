"""Tables and fields, and how they fit a terminal."""

from __future__ import annotations

import pytest

from agentd.interfaces.commands.plain import counted, fields, folded, table

_ALERT = {"id": 1, "delivered": "journal sent, socket pending", "text": "Call the dentist " * 5}


def test_only_the_last_column_may_hold_long_text() -> None:
    rows = [{"a": "x" * 70, "b": "y" * 200}]
    line = table(rows, ("a", "b"), "").splitlines()[1]
    assert line == f"{'x' * 59}…  {'y' * 200}"


def test_a_value_of_several_lines_stays_in_its_column() -> None:
    assert fields({"id": 1, "text": "Due now:\n- tea"}) == "id    1\ntext  Due now:\n      - tea"


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 entries"), (1, "1 entry"), (2, "2 entries"), (1234, "1,234 entries")],
)
def test_one_thing_is_not_told_as_many(number: int, words: str) -> None:
    assert counted(number, "entry", "entries") == words
    assert counted(number, "line") == words.replace("entries", "lines").replace("entry", "line")


def test_items_that_hold_commas_are_told_apart() -> None:
    times = ["tomorrow 09:00, in 19 h", "2026-12-01 09:00, in 2 d"]
    assert fields({"next": times}) == f"next  {'; '.join(times)}"
    assert fields({"tags": ["a", "b"]}) == "tags  a, b"


def test_what_does_not_fit_goes_on_below_its_column() -> None:
    assert folded("provider  offline (no key is set)", 24).splitlines() == [
        "provider  offline (no",
        "          key is set)",
    ]


def test_a_last_column_without_room_stands_on_the_next_line() -> None:
    told = folded(table([_ALERT], ("id", "delivered", "text"), ""), 40).splitlines()
    assert told[0] == "id  delivered                     text"
    assert told[1] == "1   journal sent, socket pending"
    assert told[2] == "    Call the dentist Call the dentist"


@pytest.mark.parametrize("width", [1, 8, 40, 80])
@pytest.mark.parametrize("text", ["", "a  b", "x" * 100, "    a b  c d\n\n" * 9, "one  two " * 30])
def test_no_word_is_lost_and_no_line_is_too_wide(text: str, width: int) -> None:
    told = folded(text, width)
    assert "".join(told.split()) == "".join(text.split())
    widest = max(len(line.strip()) for line in told.split("\n"))
    assert widest <= width
