"""The year of notes and talks is what its README says: exact gold lines, honest traps, enough of
each kind.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from functools import cache
from itertools import pairwise

import pytest

from benchmarks.rewordings import year
from benchmarks.workspace_year import make as year_make
from benchmarks.workspace_year.reading import HERE, Asked, Place, questions, text_at
from benchmarks.workspace_year.stems import content_stems, shares_a_stem, words

TYPES = (
    "paraphrase", "identifier", "changed", "time", "two_line",
    "no_answer", "typo", "language", "common", "speaker",
)  # fmt: skip
TYPICAL_IDENTIFIER = re.compile(r"[\w.:/+()-]*\d[\w.:/+()-]*|[\w]+_[\w]+|/[\w/.]+")


@cache
def _vocabulary() -> frozenset[str]:
    files = [*(HERE / "workspace").rglob("*.md"), *(HERE / "sessions").glob("*.jsonl")]
    return frozenset(word for path in files for word in words(path.read_text(encoding="utf-8")))


def _day(place: Place) -> str:
    found = re.search(r"\d{4}-\d\d-\d\d", place.path)
    return found[0] if found else ""


def _of(kind: str) -> list[Asked]:
    return [asked for asked in questions() if asked.type == kind]


def test_the_files_on_disk_are_what_the_pieces_make() -> None:
    for name, text in year_make.make().items():
        assert (HERE / name).read_text(encoding="utf-8") == text, name


def test_no_file_is_left_over_from_earlier_pieces() -> None:
    made = set(year_make.make())
    on_disk = {
        path.relative_to(HERE).as_posix()
        for folder in ("workspace", "sessions")
        for path in (HERE / folder).rglob("*")
        if path.is_file()
    }
    assert on_disk <= made


def test_it_is_large_enough_to_get_lost_in_and_small_enough_to_ship() -> None:
    notes = [path.read_text(encoding="utf-8") for path in (HERE / "workspace").rglob("*.md")]
    talks = [path.read_text(encoding="utf-8") for path in (HERE / "sessions").glob("*.jsonl")]
    assert sum(bool(line.strip()) for note in notes for line in note.splitlines()) >= 2500
    assert len(list((HERE / "workspace/memory").glob("????-??-??.md"))) >= 150
    assert len(talks) >= 60
    assert sum(len(talk.splitlines()) for talk in talks) >= 2000
    size = sum(
        path.stat().st_size for path in HERE.rglob("*") if path.suffix != ".pyc" and path.is_file()
    )
    assert size < 1_500_000


def test_every_transcript_line_is_a_message_and_time_goes_forward() -> None:
    for path in (HERE / "sessions").glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert {row["role"] for row in rows} <= {"user", "assistant"}
        assert all(isinstance(row["content"], str | list) and row["content"] for row in rows)
        times = [datetime.fromisoformat(row["timestamp"]) for row in rows]
        assert all(a < b for a, b in pairwise(times)), path.name


@pytest.mark.parametrize("kind", TYPES)
def test_there_are_enough_questions_of_a_type_and_both_splits_hold_half(kind: str) -> None:
    splits = Counter(asked.split for asked in _of(kind))
    assert sum(splits.values()) >= 30
    assert abs(splits["dev"] - splits["test"]) <= 2


def test_there_are_no_other_types_and_no_question_twice() -> None:
    assert {asked.type for asked in questions()} == set(TYPES)
    assert len(questions()) >= 320
    assert max(Counter(asked.query for asked in questions()).values()) == 1
    assert max(Counter(asked.id for asked in questions()).values()) == 1


def test_every_question_is_asked_in_three_other_ways() -> None:
    of = year()
    assert [*of.rewordings] == [asked.id for asked in questions()]
    for asked in questions():
        ways = {asked.query, *of.rewordings[asked.id]}
        assert len(ways) == 4, asked.id
        assert all(any(map(str.isalnum, way)) for way in ways), asked.id


def test_every_gold_and_stale_line_says_something() -> None:
    for asked in questions():
        for place in (*asked.gold, *asked.stale):
            assert text_at(place).strip(" -#"), asked.id
        assert not set(asked.gold) & set(asked.stale), asked.id


def test_only_questions_without_an_answer_lack_a_gold_line() -> None:
    for asked in questions():
        assert bool(asked.gold) == (asked.type != "no_answer"), asked.id


def test_a_paraphrase_shares_no_content_word_with_its_line() -> None:
    for asked in _of("paraphrase"):
        for place in asked.gold:
            shared = shares_a_stem(asked.query, text_at(place))
            assert not shared, f"{asked.id}: {shared}"


def test_an_identifier_stands_verbatim_in_question_and_line() -> None:
    for asked in _of("identifier"):
        keys = [key.strip("?.,") for key in TYPICAL_IDENTIFIER.findall(asked.query)]
        assert keys, asked.id
        assert all(key in text_at(place) for key in keys for place in asked.gold), asked.id


def test_a_changed_value_has_stale_lines_and_they_are_older() -> None:
    for asked in _of("changed"):
        assert 1 <= len(asked.stale) <= 4, asked.id
        newest = max(_day(place) for place in asked.gold)
        assert all(_day(place) < newest for place in asked.stale), asked.id


def test_a_two_line_answer_needs_all_of_two_lines() -> None:
    for asked in _of("two_line"):
        assert asked.need == "all", asked.id
        assert len(asked.gold) == 2, asked.id


def test_a_typo_is_no_word_of_the_workspace() -> None:
    for asked in _of("typo"):
        unknown = set(words(asked.query)) - _vocabulary()
        assert len(unknown) >= 1, asked.id


def test_a_common_question_is_mostly_frequent_words() -> None:
    for asked in _of("common"):
        assert len(content_stems(asked.query)) <= 0.5 * len(words(asked.query)), asked.id


def test_a_speaker_question_points_at_what_that_speaker_said() -> None:
    for asked in _of("speaker"):
        for place in asked.gold:
            if place.path.startswith("sessions/"):
                role = json.loads(place.raw())["role"]
                mine = bool(re.search(r"\b(I|my own|me|my)\b", asked.query))
                yours = bool(re.search(r"\b(you|your)\b", asked.query))
                assert role == ("assistant" if yours and not mine else "user"), asked.id


def test_many_questions_were_asked_before_in_nearly_the_same_words() -> None:
    said = [
        content_stems(str(json.loads(line)["content"]))
        for path in (HERE / "sessions").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
        if '"role": "user"' in line
    ]
    asked_before = 0
    for asked in questions():
        wanted = content_stems(asked.query)
        asked_before += any(
            wanted and len(wanted & one) >= 0.8 * len(wanted) and len(one) <= len(wanted) + 5
            for one in said
        )
    assert asked_before >= 60
