"""Thinking that stands in the text."""

import pytest

from agentd.core.prompt import TextDelta
from agentd.providers.openai_wire import ThinkTags


def split(*pieces):
    """Words and thoughts of a text that came in these pieces."""
    tags = ThinkTags()
    events = [event for piece in pieces for event in tags.feed(piece)] + tags.end()
    words = "".join(e.text for e in events if isinstance(e, TextDelta))
    return words, "".join(e.text for e in events if not isinstance(e, TextDelta))


CASES = [
    ("<think>hm</think>Yes.", "Yes.", "hm"),
    (" \n<think>\nhm\n</think>\n\nYes.", "Yes.", "\nhm\n"),
    ("Yes <think>no</think>.", "Yes <think>no</think>.", ""),
    ("<think>a</think>b<think>c</think>", "b<think>c</think>", "a"),
    ("<think>never closed </thi", "", "never closed </thi"),
    ("<think></think>Yes.", "Yes.", ""),
    ("<thinking>Yes.", "<thinking>Yes.", ""),
    ("<thi", "<thi", ""),
    ("  Yes.", "  Yes.", ""),
    ("", "", ""),
    ("<think>a < b </ c</think>Yes.", "Yes.", "a < b </ c"),
]


@pytest.mark.parametrize(("text", "words", "thoughts"), CASES)
def test_only_what_the_text_begins_with_is_thinking(text, words, thoughts):
    assert split(text) == (words, thoughts)


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_the_pieces_do_not_matter(text):
    for size in (1, 2, 3, 5):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert split(*pieces) == split(text)


def test_text_is_not_held_back():
    tags = ThinkTags()
    tags.feed("<think>hm</think>")
    assert tags.feed("Yes <thi") == [TextDelta("Yes <thi")]
