"""Which relations have one value at a time, and which deny."""

from __future__ import annotations

import pytest

from agentd.domain.fact import Triple
from agentd.statements.relations import canonical, excludes, is_functional, slot, slots


@pytest.mark.parametrize(
    "relation",
    ["name", "home", "lives in", "Works at", "dog name", "dog's name", "favourite colour", "favorite_colour",
     "deadline", "port", "phone number", "work email", "licence plate", "preference between coffee and tea",
     "flight to rome", "dentist appointment", "meeting with tom", "birthday", "wife birthday", "shoe size",
     "no longer works at", "diet", "host", "version", "status", "place of passport", "editor", "age"],
)  # fmt: skip
def test_one_value_at_a_time(relation: str) -> None:
    assert is_functional(relation)


@pytest.mark.parametrize(
    "relation",
    ["likes", "dislikes", "allergic to", "no longer allergic to", "uses", "works on", "speaks", "plays", "has",
     "son name", "friend name", "sister name", "decided", "instruction", "outcome", "dogs", "prefers", "", "x" * 5000,
     "something a model made up"],
)  # fmt: skip
def test_many_values_at_a_time(relation: str) -> None:
    assert not is_functional(relation)


@pytest.mark.parametrize(
    ("relation", "name", "denies"),
    [
        ("dislikes", "likes", True),
        ("hates", "likes", True),
        ("loves", "likes", False),
        ("no longer uses", "uses", True),
        ("no longer works at", "employer", True),
        ("not allergic to", "allergic to", True),
        ("is allergic to", "allergic to", False),
        ("lives in", "home", False),
        ("note", "note", False),
    ],
)
def test_a_relation_has_one_name(relation: str, name: str, denies: bool) -> None:
    assert canonical(relation) == (name, denies)


def test_a_denial_shares_the_slot_of_what_it_denies() -> None:
    one = Triple("user", "allergic to", "nuts")
    other = Triple("The User", "no longer allergic to", "nuts")
    assert slot(one) == slot(other)


@pytest.mark.parametrize(
    ("diet", "food", "is_left_out"),
    [("vegetarian", "meat", True), ("vegetarian", "fish", True), ("vegetarian", "cheese", False),
     ("vegan", "cheese", True), ("pescatarian", "fish", False), ("pescatarian", "beef", True),
     ("flexitarian", "meat", False)],
)  # fmt: skip
def test_a_diet_leaves_food_out(diet: str, food: str, is_left_out: bool) -> None:
    one, other = Triple("user", "diet", diet), Triple("The user", "eats", food)
    assert excludes(one, other) is excludes(other, one) is is_left_out
    assert not excludes(one, Triple("Klara", "eats", food))
    assert not excludes(one, Triple("user", "not eats", food))
    assert slot(other) in slots(one)
    assert slot(one) in slots(other)
