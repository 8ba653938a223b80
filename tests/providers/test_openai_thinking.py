"""Thinking that stands in the text."""

import pytest

from agentd.core.prompt import StreamRestarted, TextDelta
from agentd.providers.openai_answer import ThinkTags


def split(*pieces):
    """Words and thoughts of a text that came in these pieces."""
    tags = ThinkTags()
    words = thoughts = ""
    for event in [event for piece in pieces for event in tags.feed(piece)] + tags.end():
        if isinstance(event, StreamRestarted):
            words, thoughts = "", thoughts + words
        elif isinstance(event, TextDelta):
            words += event.text
        else:
            thoughts += event.text
    return words, "".join(thoughts.split())


CASES = [
    ("<think>hm</think>Yes.", "Yes.", "hm"),
    (" \n<think>\nhm\n</think>\n\nYes.", "Yes.", "hm"),
    ("so hm\n</think>\n\nYes.", "Yes.", "sohm"),
    ("</think>\nYes.", "Yes.", ""),
    ("hm\n</think>Yes.\n</think>", "Yes.\n</think>", "hm"),
    ("It ends with </think>.", "It ends with </think>.", ""),
    ("as in <think>\n</think> here", "as in <think>\n</think> here", ""),
    ("as in\n<think>a\n</think>\n", "as in\n<think>a\n</think>\n", ""),
    ("a\n<b\n</b\n", "a\n<b\n</b\n", ""),
    ("Yes <think>no</think>.", "Yes <think>no</think>.", ""),
    ("<think>a</think>b<think>c</think>", "b<think>c</think>", "a"),
    ("<think>never closed </thi", "", "neverclosed</thi"),
    ("<think></think>Yes.", "Yes.", ""),
    ("<thinking>Yes.", "<thinking>Yes.", ""),
    ("<thi", "<thi", ""),
    ("  Yes.", "  Yes.", ""),
    ("", "", ""),
    ("<think>a < b </ c</think>Yes.", "Yes.", "a<b</c"),
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
