"""Messages that begin with a request to remember or to forget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.statements.explicit import Request, requested

REMEMBER = [
    ("remember this: my dog is called Rex", "my dog is called Rex"),
    ("Remember that my dog is called Rex.", "my dog is called Rex."),
    ("remember: milk is in the fridge", "milk is in the fridge"),
    ("remember that my blood type is A-", "my blood type is A-"),
    ("remember that I like tea -", "I like tea"),
    ("remember - I like tea --", "I like tea"),
    ("please remember: I like tea", "I like tea"),
    ("Please remember that I like tea", "I like tea"),
    ("Hi! Please remember that I like tea", "I like tea"),
    ("hey, remember this: the code is 42", "the code is 42"),
    ("Can you remember that I like tea?", "I like tea"),
    ("could you please remember that I like tea?", "I like tea"),
    ("I want you to remember that I like tea", "I like tea"),
    ("note that the port is 8080", "the port is 8080"),
    ("Note: the port is 8080", "the port is 8080"),
    ("keep in mind that I'm vegan", "I'm vegan"),
    ("don't forget that I'm vegan", "I'm vegan"),
    ("make a note that the port is 8080", "the port is 8080"),
    ("remember my dog is called Rex", "my dog is called Rex"),
    ("remember I'm allergic to nuts", "I'm allergic to nuts"),
    ("merk dir, dass ich Tee mag", "ich Tee mag"),
    ("Merk dir bitte, dass mein Hund Rex heißt", "mein Hund Rex heißt"),
    ("bitte merke dir: ich mag Tee", "ich mag Tee"),
    ("vergiss nicht, dass ich Tee mag", "ich Tee mag"),
    ("Remember this:\nline one\nline two", "line one\nline two"),
]
FORGET = [
    ("forget that my dog is called Rex", "my dog is called Rex"),
    ("Forget about my dog.", "my dog"),
    ("forget my address", "my address"),
    ("please forget that I like tea", "I like tea"),
    ("Could you forget about my ex?", "my ex"),
    ("forget everything about Atlas", "Atlas"),
    ("forget what I told you about Rex", "Rex"),
    ("forget: the wifi name", "the wifi name"),
    ("vergiss, dass ich Tee mag", "ich Tee mag"),
    ("Vergiss meine Adresse", "meine Adresse"),
    ("bitte vergiss alles über Atlas", "Atlas"),
]
NEITHER = [
    "remember when we went to Rome?",
    "Remember when I told you about Rex?",
    "do you remember my dog?",
    "Do you remember that my dog is called Rex?",
    "can you remember what I said?",
    "remember",
    "remember this",
    "remember that",
    "remember that?",
    "remember me?",
    "I can't forget",
    "I can't forget about Rex",
    "I always forget my keys",
    "I'll never forget that",
    "don't forget to buy milk",
    "do not forget to call Tom",
    "never forget to lock the door",
    "remember to buy milk",
    "forget it",
    "Forget it.",
    "forget that",
    "Forget about it!",
    "forget that, never mind",
    "forget me not",
    "forget this",
    "forgetting things is human",
    "Forgetful people use notes",
    "forget how to do that?",
    "forget",
    "vergiss es",
    "vergiss das",
    "vergiss nicht, Milch zu kaufen",
    "note to self",
    "notes",
    "What should I remember?",
    "I remember that my dog was called Rex",
    "She said: remember that I like tea",
    "",
    "   ",
]


@pytest.mark.parametrize(("message", "text"), REMEMBER)
def test_a_request_to_remember_yields_what_is_to_be_kept(message: str, text: str) -> None:
    assert requested(message) == Request("remember", text)


@pytest.mark.parametrize(("message", "text"), FORGET)
def test_a_request_to_forget_yields_what_is_to_go(message: str, text: str) -> None:
    assert requested(message) == Request("forget", text)


@pytest.mark.parametrize("message", NEITHER)
def test_other_messages_are_no_request(message: str) -> None:
    assert requested(message) is None


@given(
    st.text(max_size=300),
    st.sampled_from(["remember that ", "forget ", "please remember: ", "vergiss "]),
)
@settings(max_examples=100, deadline=None)
def test_no_message_raises_and_what_is_asked_is_never_empty(text: str, head: str) -> None:
    for message in (text, head + text):
        request = requested(message)
        assert request is None or request.text.strip()


def test_a_megabyte_to_remember_is_kept_whole() -> None:
    request = requested("remember that " + "x" * 1_000_000)
    assert request == Request("remember", "x" * 1_000_000)
