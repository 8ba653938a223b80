"""What of a message is the user's own statement."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from agentd.domain.message import Image, Text, ToolResult
from agentd.domain.transcript import Row, RowRole
from agentd.engine.prompt import fence
from agentd.facts.extraction.reading import own_words, stated

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def row(text: str, role: RowRole = RowRole.USER, turn_id: int | None = 1) -> Row:
    return Row(4, role, (Text(text),), NOON, turn_id)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I like tea.", "I like tea."),
        ("I like tea.\n```\nmy code likes coffee\n```\nAnd cake.", "I like tea.\nAnd cake."),
        ("I like tea.\n~~~~ text\n```\nquoted\n~~~~\nAnd cake.", "I like tea.\nAnd cake."),
        ("I like tea.\n```\nnever closed", "I like tea."),
        ("Anna wrote “I like coffee and milk a lot”. I like tea.", "Anna wrote […]. I like tea."),
        ("I like tea.\n\nOn Monday Anna Lund wrote:\nI like coffee.", "I like tea."),
        ("I like tea. Translate this:\nJ'aime le café", "I like tea. […]"),
        ("Bob: I like coffee\nI like tea.", "I like tea."),
        ("    my = 'coffee'\n    # I like coffee\nI like tea.", "I like tea."),
        ("$ whoami\nanna likes coffee\n$ pwd\n\nI like tea.", "I like tea."),
        ("> Anna: I like coffee\n>> me too\nI like tea.", "I like tea."),
        (f"{fence('mail', 'I like coffee.')}\nI like tea.", "I like tea."),
        ("<data source=x>never closed, I like coffee", ""),
        ("<DATA>x</DATA >I like tea.", "I like tea."),
        (
            "## Relevant Memories\n- The user likes coffee.\n- And milk.\n\nI like tea.",
            "I like tea.",
        ),
        ("[forgotten] I like tea.", "I like tea."),
        ("[forgotten]", ""),
        ("1234 5678", ""),
        ("", ""),
    ],
)
def test_only_the_users_own_words_are_left(text, own) -> None:
    assert own_words(text) == own


@pytest.mark.parametrize(
    "text",
    [
        *("/compact", "/new now", "/unknown my dog is called Rex", "thanks", "ok!"),
        *("My password is hunter2. My dog is called Rex.", "here: sk-ant-REDACTED"),
    ],
)
def test_commands_single_words_and_messages_with_secrets_are_not_read(text) -> None:
    assert stated(row(text)).text == ""


def test_a_path_at_the_beginning_is_no_command() -> None:
    assert stated(row("/srv/photos is where I keep my photos")).text


@pytest.mark.parametrize("role", [RowRole.ASSISTANT, RowRole.SUMMARY, RowRole.NOTICE])
def test_nobody_elses_row_is_read(role) -> None:
    assert stated(row("My dog is called Rex.", role)).text == ""


def test_results_and_images_say_nothing() -> None:
    blocks = (Image("image/png", "a" * 64, 1000), ToolResult("t", "My dog is called Rex."))
    assert stated(Row(1, RowRole.USER, blocks, NOON, 1)).text == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("remember that my dog is called Rex", "remember"),
        ("Please remember this: I like tea", "remember"),
        ("forget that my dog is called Rex", "forget"),
    ],
)
def test_what_is_asked_for_outright_is_a_request_and_no_statement(text, kind) -> None:
    said = stated(row(text))
    assert said.text == ""
    assert said.request is not None
    assert said.request.kind == kind


def test_a_secret_is_not_kept_on_request_either() -> None:
    assert stated(row("remember that my password is hunter2")).request is None


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Anna: I live in Oslo.", False),
        ("Anna Maria Lund: I live in Oslo.", False),
        ("PS: I live in Oslo.", True),
        ("I live in Oslo.", True),
        ("Anna: Hi!\nI live in Oslo.", False),
    ],
)
def test_an_imported_message_of_a_named_speaker_is_somebody_elses(text, is_read) -> None:
    assert bool(stated(row(text, turn_id=None)).text) is is_read


def test_of_a_pasted_book_the_beginning_and_the_end_are_read() -> None:
    text = own_words(f"I begin here. {'word ' * 300_000} I end here.")
    assert text.startswith("I begin here.")
    assert text.endswith("I end here.")
    assert len(text) < 9_000


@pytest.mark.parametrize(
    "piece", ["<data>", "```\n", "> \n", "## Relevant Memories\n", "- \n", "\n", "`", "[forgotten]"]
)
def test_no_message_makes_reading_slow(piece) -> None:
    began = time.process_time()
    stated(row(piece * (300_000 // len(piece))))
    assert time.process_time() - began < 3
