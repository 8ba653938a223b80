"""The log can be read again: filtered, in pages, over rotations, and as it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentd.interfaces.commands.logs import Logbook, WantedLines, parse

ALL = WantedLines()


def write(file: Path, *records: dict[str, Any]) -> None:
    with file.open("a") as log:
        log.writelines(json.dumps(record) + "\n" for record in records)


def rotate(file: Path) -> None:
    for number in (2, 1):
        older = file.with_name(f"{file.name}.{number}")
        if older.exists():
            older.rename(file.with_name(f"{file.name}.{number + 1}"))
    file.rename(file.with_name(f"{file.name}.1"))


def numbered(first: int, last: int) -> list[dict[str, Any]]:
    return [{"event": "e", "level": "info", "n": n} for n in range(first, last + 1)]


def numbers(page: Any) -> list[int]:
    return [record["n"] for record in page.records]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agentd.log"


def test_the_newest_records_come_oldest_first_across_rotations(file: Path) -> None:
    write(file, *numbered(1, 5))
    rotate(file)
    write(file, *numbered(6, 8))
    rotate(file)
    write(file, *numbered(9, 10))
    assert numbers(Logbook(file).page(ALL, 6)) == [5, 6, 7, 8, 9, 10]


def test_pages_lead_back_to_the_beginning_even_when_the_file_is_rotated_meanwhile(
    file: Path,
) -> None:
    write(file, *numbered(1, 10))
    page = Logbook(file).page(ALL, 4)
    assert numbers(page) == [7, 8, 9, 10]
    rotate(file)
    write(file, *numbered(11, 12))
    page = Logbook(file).page(ALL, 4, page.before)
    assert numbers(page) == [3, 4, 5, 6]
    page = Logbook(file).page(ALL, 4, page.before)
    assert (numbers(page), page.before) == ([1, 2], None)


def test_what_follows_a_page_has_no_gap_and_no_repetition_over_rotations(file: Path) -> None:
    write(file, *numbered(1, 3))
    book = Logbook(file)
    place = book.page(ALL, 1).after
    write(file, *numbered(4, 4))
    rotate(file)
    write(file, *numbered(5, 5))
    rotate(file)
    write(file, *numbered(6, 6))
    page = book.since(place, ALL)
    assert numbers(page) == [4, 5, 6]
    assert numbers(book.since(page.after, ALL)) == []


def test_half_a_line_waits_for_its_end(file: Path) -> None:
    write(file, *numbered(1, 1))
    book = Logbook(file)
    place = book.page(ALL, 1).after
    with file.open("a") as log:
        log.write('{"event": "e", ')
    assert book.since(place, ALL).records == ()
    assert numbers(book.page(ALL, 5)) == [1]
    with file.open("a") as log:
        log.write('"n": 2}\n')
    assert numbers(book.since(place, ALL)) == [2]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (WantedLines(session="main"), [1, 2]),
        (WantedLines(turn=7), [2, 3]),
        (WantedLines(origin="heartbeat"), [3]),
        (WantedLines(level="warning"), [2, 3]),
        (WantedLines(session="main", level="error"), []),
    ],
)
def test_records_are_chosen_by_their_marks(
    file: Path, wanted: WantedLines, found: list[int]
) -> None:
    write(
        file,
        {"n": 1, "level": "info", "session": "main", "turn": 6, "origin": "user"},
        {"n": 2, "level": "warning", "session": "main", "turn": 7, "origin": "user"},
        {"n": 3, "level": "error", "session": "chat:1", "turn": 7, "origin": "heartbeat"},
        {"n": 4, "level": "info"},
    )
    assert numbers(Logbook(file).page(wanted, 10)) == found


def test_a_page_stays_small_and_says_where_to_go_on(file: Path) -> None:
    write(file, *({"n": n, "text": "x" * 100_000} for n in range(6)))
    page = Logbook(file).page(ALL, 6)
    assert numbers(page) == [3, 4, 5]
    assert numbers(Logbook(file).page(ALL, 6, page.before)) == [0, 1, 2]


def test_no_log_at_all_is_an_empty_page_and_is_followed_from_its_first_line(file: Path) -> None:
    book = Logbook(file)
    page = book.page(ALL, 5)
    assert (page.records, page.before) == ((), None)
    write(file, *numbered(1, 1))
    assert numbers(book.since(page.after, ALL)) == [1]


def test_a_line_that_is_no_record_is_kept_as_its_event() -> None:
    assert parse(b"Traceback (most recent call last):") == {
        "event": "Traceback (most recent call last):"
    }
    assert parse("[1]") == {"event": "[1]"}
