"""Which messages are about their writer."""

from __future__ import annotations

import pytest

from agentd.statements.asking import speaks_of_user


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
