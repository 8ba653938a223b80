"""Which messages are about their writer."""

from __future__ import annotations

import pytest

from agentd.statements.asking import asked_relations, speaks_of_user


@pytest.mark.parametrize(
    "text",
    ["What's my dog called?", "Where do I live?", "Am I free on Friday?", "wo ist mein Rad?",
     "where’s my bike", "MY dog", "Que dit ma mère ?", "¿Dónde está mi llave?"],
)  # fmt: skip
def test_these_speak_of_the_user(text) -> None:
    assert speaks_of_user(text)


@pytest.mark.parametrize(
    "text", ["How do I exit vim?", "Give me a synonym", "I want to understand magnets", "Why?", ""]
)
def test_these_do_not(text) -> None:
    assert not speaks_of_user(text)


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("where do I work?", "employer"),
        ("Do you know where I currently work?", "employer"),
        ("Who’s my employer?", "employer"),
        ("which company do I work for", "employer"),
        ("Wo arbeite ich jetzt?", "employer"),
        ("Where do I live now?", "home"),
        ("weißt du, wo ich wohne?", "home"),
        ("where do I work on Fridays?", None),
        ("where does Klara work?", None),
        ("where do I work out?", None),
        ("how do I work?", None),
        ("", None),
    ],
)
def test_what_of_the_user_a_question_asks_for(question, relation) -> None:
    assert (asked_relations(question) or (None,))[0] == relation
