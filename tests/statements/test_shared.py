"""Two things said of one relative in one sentence."""

from __future__ import annotations

import pytest

from agentd.domain.fact import Triple
from agentd.statements.claims import claims, triple_of
from agentd.statements.shared import each_told

NAME = Triple("user", "sister name", "Klara")
HOME = Triple("sister Klara", "home", "Bern")
WORK = Triple("sister Klara", "employer", "Siemens")


def told(text: str) -> list[Triple | None]:
    return [claim.triple for claim in claims(text)]


@pytest.mark.parametrize(
    ("said", "triples"),
    [
        ("remember that my sister is called Klara and lives in Bern", [NAME, HOME]),
        ("My sister's name is Klara and works at Siemens.", [NAME, WORK]),
        ("my sister lives in Bern and is called Klara", [HOME, NAME]),
        ("My sister is called Klara, lives in Bern and works at Siemens", [NAME, HOME, WORK]),
        ("my sister, Klara, works at Siemens and now lives in Bern", [WORK, HOME, NAME]),
        ("Meine Schwester heißt Klara und wohnt in Bern", [NAME, HOME]),
        ("Meine Schwester heißt Klara und arbeitet bei Siemens", [NAME, WORK]),
        (
            "I live in Rome and my sister is called Klara and lives in Bern",
            [Triple("user", "home", "Rome"), NAME, HOME],
        ),
        (
            "my brother works at Siemens and lives in Bern",
            [Triple("user", "brother employer", "Siemens"), Triple("user", "brother home", "Bern")],
        ),
        (
            "Mein Bruder arbeitet bei Siemens und wohnt in Bern",
            [Triple("user", "brother employer", "Siemens"), Triple("user", "brother home", "Bern")],
        ),
    ],
)
def test_each_thing_is_told_of_the_one_who_is_meant(said, triples) -> None:
    assert sorted(told(said), key=str) == sorted(triples, key=str)


@pytest.mark.parametrize(
    "said",
    [
        "my sister is called Klara and would live in Bern",
        "maybe my sister is called Klara and lives in Bern",
        "is my sister called Klara and lives in Bern?",
        "my sister isn't called Klara and lives in Bern",
        "my sister is called Klara and no longer lives in Bern",
        "my sister is called Klara and lives in a nice flat",
        "my sister is called Klara and lives in Bern with her cat",
        "my sister is called Klara and works at home",
        "my sister is called Klara and her son lives in Bern",
        "my sister's dog is called Rex and lives in Bern",
        "my friend who is called Max and lives in Bern is ill",
        "my sister thinks Klara is called Kim and lives in Bern",
        "my sister is called Klara and is called Kim",
        "meine Schwester heißt Klara und wohnt nicht in Bern",
    ],
)
def test_what_is_not_said_of_somebody_for_certain_is_not_told(said) -> None:
    assert told(said) == []


def test_half_of_what_is_known_tells_no_more_than_the_name_in_passing() -> None:
    assert told("My sister Klara is ill and lives in Bern") == [NAME]


def test_a_sentence_of_two_facts_has_no_triple_of_its_own() -> None:
    assert triple_of("The user's sister is called Klara and lives in Bern.") is None


@pytest.mark.parametrize(
    "said", ["my sister is called Klara", "I am called Tom and live in Bern", "lives in Bern", ""]
)
def test_one_thing_or_none_of_a_relative_is_left_alone(said) -> None:
    assert each_told(said) == ()
