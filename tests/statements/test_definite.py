"""What is said of the one thing that “the” or “my” names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.statements.claims import triple_of
from agentd.statements.definite import definite
from agentd.statements.relations import is_functional


@pytest.mark.parametrize(
    ("text", "relation", "value"),
    [
        ("The boiler code is 4417", "number of the boiler code", "4417"),
        ("the boiler code is now 5523.", "number of the boiler code", "5523"),
        ("The boiler code changed to 5523.", "number of the boiler code", "5523"),
        ("The user's locker is B12.", "number of the locker", "B12"),
        ("The user's scanner is a Canon LiDE 400.", "kind of the scanner", "Canon LiDE 400"),
        ("My scanner is an Epson these days", "kind of the scanner", "Epson"),
        ("The boat's engine is a Volvo Penta.", "kind of the boat's engine", "Volvo Penta"),
        ("The project's code name is Tapir.", "the project's code name", "Tapir"),
    ],
)
def test_the_one_thing_has_one_value(text: str, relation: str, value: str) -> None:
    found = definite(text)
    assert found is not None
    assert (found.subject, found.relation, found.value) == ("user", relation, value)
    assert is_functional(found.relation)


@pytest.mark.parametrize(
    "text",
    ["The meeting is at 5", "The meeting is 5pm", "The next train is 704", "The budget talk is Monday.",
     "The user's sister is Klara.", "The user's boss is Catholic.", "The user's doctor is a Bavarian.",
     "The user's flat is small.", "The user's tea is Swedish.", "The cats are Tom and Rex.",
     "A scanner is an Epson.", "The user likes Rex.", "The weather is nice, and the code is 4417",
     "The shop is 9:30", "The user's medication is Ibuprofen.", "The user's project is Atlas.",
     "The user's client is Bosch.", "The user's holiday is June", "The", "", "The thing is 4417"],
)  # fmt: skip
def test_of_what_there_are_several_nothing_is_told(text: str) -> None:
    assert definite(text) is None


def test_a_rule_that_knows_the_sentence_comes_first() -> None:
    found = triple_of("The user's laptop is a ThinkPad.")
    assert found is not None
    assert found.relation == "laptop"
    other = triple_of("The boiler code is 4417")
    assert other is not None
    assert other.value == "4417"


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_text_raises(text: str) -> None:
    definite(f"The {text} is 1")
    definite(text)
