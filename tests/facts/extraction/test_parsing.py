"""What is read from answers of models, however they look."""

from __future__ import annotations

import json
import time

import pytest

from agentd.domain.fact import Category, Triple
from agentd.facts.extraction.parsing import MOST, Candidate, parse

DOG = '{"message": 1, "content": "The user has a dog.", "category": "personal"}'
TEA = '{"message": 2, "content": "The user likes tea.", "category": "preference"}'
BOTH = ["The user has a dog.", "The user likes tea."]


def contents(answer: str) -> list[str]:
    return [candidate.content for candidate in parse(answer).candidates]


def test_a_good_answer_is_read_whole() -> None:
    answer = (
        '[{"message": 3, "content": "The user\'s dog is called Rex.", "category": "personal",'
        ' "subject": "user", "relation": "dog name", "value": "Rex"}]'
    )
    triple = Triple("user", "dog name", "Rex")
    said = "The user's dog is called Rex."
    assert parse(answer).candidates == (Candidate(said, Category.PERSONAL, 3, triple),)
    assert parse(answer).dropped == 0


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
    "object without a category between": f'[{DOG}, {{"content": "The user is"}}, {TEA}]',
    "object without content between": f'[{DOG}, {{"category": "personal"}}, {TEA}]',
    "unknown category between": f'[{DOG}, {{"content": "x", "category": "colour"}}, {TEA}]',
    "content that is no text": f'[{DOG}, {{"content": 7, "category": "personal"}}, {TEA}]',
    "content that is not a number": f'[{DOG}, {{"content": NaN, "category": "personal"}}, {TEA}]',
    "null for an object": f"[{DOG}, null, {TEA}]",
    "texts and numbers between": f'[{DOG}, "a fact", 12, true, {TEA}]',
    "empty object between": f"[{DOG}, {{}}, {TEA}]",
    "quote that is not escaped": f'[{{"content": "a "b" c", "category": "personal"}}, {DOG}, {TEA}]',
    "quote that is missing": f'[{{"content": "a, "category": "personal"}}, {DOG}, {TEA}]',
    "brace that is missing": f'[{{"content": "a", "category": "personal", {DOG}, {TEA}]',
    "bracket of the wrong kind": f'[{{"content": ["a"}}, {DOG}, {TEA}]',
    "line break inside a text": f"[{DOG}, {TEA}]".replace("has a", "has\na"),
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
    "empty object": "{}",
    "null": "null",
    "prose": "There is nothing worth remembering here.",
    "a refusal": "I can't help with that.",
    "list of texts": '["The user has a dog."]',
    "list of lists": '[["The user has a dog.", "personal"]]',
    "brackets the wrong way round": "See ] and [",
    "braces the wrong way round": "}{",
    "only openings": "[{" * 50,
    "only a quote": '"',
    "a bullet list": "- The user has a dog.\n- The user likes tea.",
    "yaml": "- content: The user has a dog.\n  category: personal",
    "a table": "| content | category |\n|---|---|\n| The user has a dog. | personal |",
    "cut in the first object": '[{"content": "The user has',
    "blank content": '[{"content": "  ", "category": "personal"}]',
    "content in a list": '[{"content": ["The user has a dog."], "category": "personal"}]',
    "category in a list": '[{"content": "The user has a dog.", "category": ["personal"]}]',
    "category is a number": '[{"content": "The user has a dog.", "category": 1}]',
    "no category": '[{"content": "The user has a dog."}]',
    "zero bytes": "\x00\x00[\x00]",
    "infinity": '[{"content": Infinity, "category": "personal"}]',
    "content of a megabyte": json.dumps([{"content": "x " * 500_000, "category": "personal"}]),
}


@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY.keys())
def test_what_holds_no_fact_gives_none_and_never_raises(answer) -> None:
    assert parse(answer).candidates == ()


def test_objects_that_are_no_facts_are_counted() -> None:
    assert parse(f'[{DOG}, {{"content": 1}}, {{"category": "personal"}}]').dropped == 2


@pytest.mark.parametrize(
    ("told", "category"),
    [
        *(("Personal", Category.PERSONAL), (" preferences ", Category.PREFERENCE)),
        *(("work", Category.PROJECT), ("personal info", Category.PERSONAL)),
        *(("rule", Category.INSTRUCTION), ("event", Category.OUTCOME)),
        *(("decisions", Category.DECISION), ("colour", None)),
    ],
)
def test_near_names_of_categories_are_understood_and_others_are_not(told, category) -> None:
    found = parse(json.dumps({"content": "x", "category": told})).candidates
    assert [c.category for c in found] == ([category] if category else [])


@pytest.mark.parametrize(
    ("told", "number"),
    [
        *((2, 2), ("2", 2), ("message 2", 2), ("#2", 2), (2.0, 2), ([2], 2), (None, None)),
        *(("two", -1), (True, -1), (-2, -1), (2.5, -1), ({}, -1), ([1, 2], -1), ("9" * 99, -1)),
    ],
)
def test_a_citation_that_cannot_be_read_cites_nothing(told, number) -> None:
    answer = json.dumps({"content": "x", "category": "personal", "message": told})
    assert [c.message for c in parse(answer).candidates] == [number]


@pytest.mark.parametrize(
    ("more", "triple"),
    [
        ({"triple": ["user", "pet", "Rex"]}, Triple("user", "pet", "Rex")),
        (
            {"triple": {"subject": "user", "predicate": "pet", "object": "Rex"}},
            Triple("user", "pet", "Rex"),
        ),
        ({"subject": "user", "relation": "pet", "value": "Rex"}, Triple("user", "pet", "Rex")),
        ({"subject": "user", "relation": "pet"}, None),
        ({"subject": "user", "relation": "pet", "value": 3}, None),
        ({"subject": "user", "relation": "pet", "value": "x" * 300}, None),
        ({"triple": ["user", "pet"]}, None),
        ({"triple": ["user", "pet", "Rex", "Max"]}, None),
        ({"triple": "user pet Rex"}, None),
    ],
)
def test_a_triple_is_taken_whole_or_left_out(more, triple) -> None:
    answer = json.dumps({"content": "x", "category": "personal", **more})
    assert [c.triple for c in parse(answer).candidates] == [triple]


def test_the_last_of_two_keys_of_one_name_counts() -> None:
    assert contents('{"content": "a", "content": "b", "category": "personal"}') == ["b"]


def test_half_a_surrogate_pair_is_left_out() -> None:
    assert contents(r'{"content": "The \ud800user", "category": "personal"}') == ["The user"]


def test_no_more_is_taken_than_one_answer_may_hold() -> None:
    found = parse(json.dumps([{"content": f"x{n}", "category": "personal"} for n in range(10_000)]))
    assert len(found.candidates) == MOST
    assert found.dropped > 0


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "{",
            "[",
            "[{",
            '{"',
            '{"{',
            '{"a": ',
            '{"}',
            "{}",
            "{x}",
            '{"a',
            "\\",
            '"',
            '{"a":"\\',
            "}",
        ),
        *('{"content": "', '{"content": [', "{'", '{ "{" ', '{[]"', "“{", "{,}", '{"a": "b" '),
    ],
)
def test_no_answer_makes_reading_slow(piece) -> None:
    began = time.process_time()
    parse(piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 3
