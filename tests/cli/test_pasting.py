"""What of a message was pasted, while it is edited."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentd.app.chat.pasting import LONG, TypedText

LINES = "one\ntwo"
EDITS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 5), st.text("ab", max_size=5)), max_size=8
)


def parts(written):
    return [written.text[start:end] for start, end in written.pasted]


def test_several_lines_or_a_long_one_count_and_a_short_one_does_not():
    typed = TypedText("see ")
    assert parts(typed.inserted(4, LINES)) == [LINES]
    assert parts(typed.inserted(4, "x" * LONG)) == ["x" * LONG]
    assert parts(typed.inserted(4, "x" * (LONG - 1))) == []
    assert typed.inserted(4, "a line\n") == TypedText("see a line\n")


def test_what_is_typed_around_and_within_a_paste_is_typed():
    written = TypedText("see ").inserted(4, LINES)
    written = written.edited("see one\ntwo ok?").edited("Please see one\ntwo ok?")
    assert parts(written) == [LINES]
    written = written.edited("Please see one\nNOT two ok?")
    assert parts(written) == ["one\n", "two"]
    written = written.edited("Please see two ok?")
    assert parts(written) == ["two"]
    assert parts(written.edited("")) == []


def test_a_second_paste_within_the_first_is_of_one_piece():
    assert parts(TypedText().inserted(0, "a\nb").inserted(2, "c\nd")) == ["a\nc\ndb"]


def test_another_text_has_nothing_pasted():
    assert TypedText().inserted(0, LINES).edited("what I typed before") == TypedText(
        "what I typed before"
    )


def test_a_part_has_its_own_places():
    written = TypedText("/image a.png what is ").inserted(21, LINES)
    assert written.part(13, len(written.text)) == TypedText("what is one\ntwo", ((8, 15),))
    assert written.part(0, 5) == TypedText("/imag")


@given(EDITS)
def test_typed_letters_are_never_taken_for_pasted_ones(edits):
    written = TypedText("ab").inserted(1, "\n#\n##\n")
    for at, count, typed in edits:
        text = written.text
        written = written.edited(text[:at] + typed + text[at + count :])
    assert not set("".join(parts(written))) & set("ab")
    assert sum(map(len, parts(written))) == sum(c in "#\n" for c in written.text)
