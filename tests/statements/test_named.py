from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.domain.fact import Triple
from agentd.statements.claims import claims, triple_of
from agentd.statements.named import is_by_the_way, named, of_the_user
from agentd.statements.relations import is_functional


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Klara lives in Bern", Triple("Klara", "home", "Bern")),
        ("Klara Weiss now lives in New York.", Triple("Klara Weiss", "home", "New York")),
        ("Klara works at the Inselspital", Triple("Klara", "employer", "Inselspital")),
        ("Max is a Labrador", Triple("Max", "is a", "Labrador")),
        ("My dog Max is a Labrador.", Triple("dog Max", "is a", "Labrador")),
        ("The user's dog Max lives in Ulm.", Triple("dog Max", "home", "Ulm")),
        ("The user's sister Klara lives in Bern.", Triple("sister Klara", "home", "Bern")),
        ("My sister Klara works at the Inselspital", Triple("sister Klara", "employer", "Inselspital")),
    ],
)  # fmt: skip
def test_a_name_has_what_is_said_of_it(text: str, told: Triple) -> None:
    assert triple_of(text) == told


@pytest.mark.parametrize(
    "text",
    ["He lives in Bern", "It is a mess", "That is a pity.", "Monday is a holiday", "Klara is a bit ill",
     "Klara lives in peace", "Klara is a friend of Tom", "Klara works at night", "klara is a nurse",
     "Klara is a nurse, but not today", "Does Klara is a nurse?", "Klara is not a nurse", "Klara is",
     "The flat is a mess", "The user is a nurse"],
)  # fmt: skip
def test_what_names_nobody_says_nothing_here(text: str) -> None:
    assert named(text) is None


def test_somebody_lives_in_one_place_and_may_be_many_things() -> None:
    assert is_functional("home")
    assert is_functional("employer")
    assert not is_functional("is a")


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("my dog Max had surgery", True),
        ("My wife Anna, a doctor", True),
        ("my dog is called Max", False),
        ("my boss is Peter Schmidt", False),
        ("Max is my dog", False),
    ],
)
def test_a_name_is_given_in_passing_or_on_purpose(text: str, is_so: bool) -> None:
    (claim,) = claims(text)
    assert claim.triple is not None
    assert is_by_the_way(claim.triple, text) is is_so
    assert (triple_of(text) is None) is is_so


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("My dog Max had surgery", "The user's dog Max had surgery"),
        ("my dog Max bit me", "my dog Max bit me"),
        ("Mystery novels sell", "Mystery novels sell"),
    ],
)
def test_the_speaker_becomes_the_user_where_he_is_named_once(text: str, told: str) -> None:
    assert of_the_user(text) == told


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    found = named(text)
    assert found is None or all((found.subject, found.relation, found.value))
