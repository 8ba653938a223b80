"""What is read from answers of models, however they look."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.facts.model_answer import line, number, objects
from tests.growth import QUADRATIC, growth

DOG = '{"message": 1, "content": "The user has a dog.", "category": "personal"}'
TEA = '{"message": 2, "content": "The user likes tea.", "category": "preference"}'
BOTH = ["The user has a dog.", "The user likes tea."]


def contents(answer: str) -> list[str]:
    return [data["content"] for data in objects(answer) if isinstance(data.get("content"), str)]


GOOD = {
    "plain": f"[{DOG}, {TEA}]",
    "fenced": f"```json\n[{DOG}, {TEA}]\n```",
    "fenced without a language": f"```\n[{DOG},{TEA}]```",
    "fence that never ends": f"```json\n[{DOG},{TEA}]",
    "prose around": f"Here are the facts I found:\n[{DOG}, {TEA}]\nLet me know!",
    "prose with brackets": f"See ] and [: {DOG} (and [more]) {TEA} ]",
    "one line each": f"{DOG}\n{TEA}",
    "several arrays": f"[{DOG}]\n\n[{TEA}]",
    "array in an array": f"[[{DOG}], [{TEA}]]",
    "wrapped in an object": f'{{"facts": [{DOG}, {TEA}]}}',
    "wrapped twice": f'{{"result": {{"facts": [{DOG}, {TEA}]}}}}',
    "no comma between": f"[{DOG} {TEA}]",
    "comma at the end of the array": f"[{DOG}, {TEA},]",
    "comma at the end of an object": f"[{DOG[:-1]},}}, {TEA}]",
    "curly quotes": f"[{DOG}, {TEA}]".replace('"', "“"),
    "single quotes": f"[{DOG}, {TEA}]".replace('"', "'"),
    "byte order mark": f"\ufeff[{DOG}, {TEA}]",
    "cut in the third object": f'[{DOG}, {TEA}, {{"content": "The user is',
    "cut behind a comma": f"[{DOG}, {TEA},",
    "no end of the array": f"[{DOG}, {TEA}",
    "content that is no text": f'[{DOG}, {{"content": 7, "category": "personal"}}, {TEA}]',
    "content that is not a number": f'[{DOG}, {{"content": NaN, "category": "personal"}}, {TEA}]',
    "null for an object": f"[{DOG}, null, {TEA}]",
    "texts and numbers between": f'[{DOG}, "a fact", 12, true, {TEA}]',
    "empty object between": f"[{DOG}, {{}}, {TEA}]",
    "quote that is not escaped": (
        f'[{{"content": "a "b" c", "category": "personal"}}, {DOG}, {TEA}]'
    ),
    "quote that is missing": f'[{{"content": "a, "category": "personal"}}, {DOG}, {TEA}]',
    "brace that is missing": f'[{{"content": "a", "category": "personal", {DOG}, {TEA}]',
    "bracket of the wrong kind": f'[{{"content": ["a"}}, {DOG}, {TEA}]',
    "content of a megabyte between": (
        f'[{DOG}, {{"content": "{"x" * 1_000_000}", "category": "personal"}}]'[:40]
        + f", {TEA}] [{DOG}, {TEA}]"
    ),
    "thoughts before": f"<think>The user {{likes}} tea [1].</think>[{DOG}, {TEA}]",
    "comment of the model": f"[{DOG}, // the pet\n{TEA}]",
    "windows lines": f"[\r\n{DOG},\r\n{TEA}\r\n]\r\n",
    "huge number": f'[{{"message": {"9" * 5000}, "content": "x"}}, {DOG}, {TEA}]',
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD.keys())
def test_what_can_be_read_is_read(answer) -> None:
    assert contents(answer)[-2:] == BOTH


EMPTY = {
    "nothing": "",
    "blank": " \n\t",
    "empty array": "[]",
    "fenced empty array": "```json\n[]\n```",
    "null": "null",
    "prose": "There is nothing worth remembering here.",
    "list of texts": '["The user has a dog."]',
    "list of lists": '[["The user has a dog.", "personal"]]',
    "brackets the wrong way round": "See ] and [",
    "braces the wrong way round": "}{",
    "only openings": "[{" * 50,
    "only a quote": '"',
    "a bullet list": "- The user has a dog.\n- The user likes tea.",
    "cut in the first object": '[{"content": "The user has',
    "content in a list": '[{"content": ["The user has a dog."], "category": "personal"}]',
    "zero bytes": "\x00\x00[\x00]",
    "content of a megabyte": json.dumps([{"content": "x " * 500_000, "category": "personal"}]),
}


@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY.keys())
def test_what_holds_no_text_gives_none(answer) -> None:
    assert contents(answer) == []


@pytest.mark.parametrize(
    "item",
    [
        {"content": "The user lives in Rome.", "triples": [{"subject": "user", "value": "Rome"}]},
        {"content": "The user lives in Rome.", "evidence": {"message": 1, "quote": "in Rome"}},
        {"op": "end", "ids": [{"id": "k3f9"}]},
        {"n": 1, "span": "in Rome", "why": [{"id": "k3f9"}]},
    ],
    ids=str,
)
def test_an_object_that_says_something_is_not_lost_for_what_it_holds(item) -> None:
    assert list(objects(json.dumps([item]))) == [item]
    assert list(objects(json.dumps({"op": "list", "facts": [item]}))) == [item]


@given(st.text(alphabet="{}[]\"\\,: \n'a1“") | st.text())
def test_no_answer_raises(answer) -> None:
    assert all(isinstance(data, dict) for data in objects(answer))


def test_the_last_of_two_keys_of_one_name_counts() -> None:
    assert contents('{"content": "a", "content": "b", "category": "personal"}') == ["b"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (" two\nsix ", "two six"),
        ("The \ud800user", "The user"),
        ("x" * 10, "x" * 10),
        ("x" * 11, ""),
        (7, ""),
        (None, ""),
        (["x"], ""),
    ],
)
def test_a_value_is_one_line_or_nothing(value, words) -> None:
    assert line(value, 10) == words


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        *((2, 2), ("2", 2), ("message 2", 2), ("#2", 2), (2.0, 2), ([2], 2), (["2"], 2)),
        *((None, None), ("two", None), (True, None), (2.5, None), ({}, None), ([1, 2], None)),
        *((float("inf"), None), (float("nan"), None)),
    ],
)
def test_a_number_may_be_written_as_text(told, meant) -> None:
    assert number(told) == meant


@pytest.mark.parametrize(
    "piece",
    [
        *("{", "[", "[{", '{"', '{"{', '{"a": ', '{"}', "{}", "{x}", '{"a', "\\", '"'),
        *('{"content": "', '{"content": [', "{'", '{ "{" ', '{[]"', "“{", "{,}", '{"a": "b" '),
        *('{"a":"\\', "}"),
    ],
)
def test_no_answer_makes_reading_slow(piece) -> None:
    def work(size: int) -> None:
        for _ in objects(piece * (size // len(piece))):
            pass

    assert growth(work, 15_000) < QUADRATIC
