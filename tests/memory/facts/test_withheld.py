"""What the user says of his secrets is found sentence by sentence, however much he says."""

from __future__ import annotations

import pytest

from agentd.memory.facts.withheld import secret_spans
from tests.growth import QUADRATIC, growth


def test_only_the_sentences_that_tell_a_secret_are_withheld() -> None:
    text = "I like tea. My pin is 4711. I like rain.\nThe password is hunter2, the pin is 12."
    said = [text[start:end] for start, end in secret_spans(text)]
    assert said == ["My pin is 4711.", "The password is hunter2, the pin is 12."]


def test_a_secret_over_several_sentences_takes_all_of_them() -> None:
    text = "Before.\nThe password is:\nhunter2! Behind."
    said = [text[start:end] for start, end in secret_spans(text)]
    assert said == ["The password is:", "hunter2!"]


@pytest.mark.parametrize("piece", ["pin is ", "PIN: 1\n", "1111-1111-1111-1111 ", "pin for "])
def test_time_to_find_them_is_in_proportion_to_the_text(piece: str) -> None:
    assert growth(lambda size: secret_spans(piece * size), 1_000) < QUADRATIC
