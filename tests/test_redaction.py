"""Which texts hold or tell a secret, and that it is hidden."""

from __future__ import annotations

import time

import pytest

from agentd.redaction import Redactor, holds_secret, known_secrets, redact, tells_secret


@pytest.mark.parametrize(
    "text",
    [
        "My wifi password is hunter2.",
        "password: correct horse",
        "The passphrase for my backup disk is 'tulip'",
        "mein Passwort lautet geheim7",
        "api key = 12345",
        "the PIN of my card is 4711",
        "my credit card number is 4111 1111 1111 1111",
        "it is 4111-1111-1111-1111",
        "recovery codes: a1 b2 c3",
        "use sk-ant-REDACTED",
        "ghp_" + "a" * 36,
        "postgresql://me:hunter2@db/x",
        "-----BEGIN PRIVATE KEY-----\nMIIE",
    ],
)
def test_a_secret_is_recognised(text) -> None:
    assert tells_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I forgot my password.",
        "The password is wrong",
        "My password is stored in a manager.",
        "I prefer passwords to passkeys.",
        "Pinterest: my wife loves it",
        "My favourite key is C major.",
        "The meeting is on 2026-05-03 at 10:30, order 12345678.",
        "Call me at 030 1234 5678.",
        "my cat is called Pin",
        "The release is 3.11.2-4444",
    ],
)
def test_other_words_are_not_taken_for_one(text) -> None:
    assert not tells_secret(text)


@pytest.mark.parametrize(
    "piece", ["password ", "password for ", "1234 ", "pin is ", "key", " ", "://"]
)
def test_no_text_makes_looking_slow(piece) -> None:
    began = time.process_time()
    tells_secret(piece * (200_000 // len(piece)))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key sk-ant-api03-abcdefghijklmnopqrstuvwxyz.", "key [secret]."),
        ("ghp_" + "a" * 36, "[secret]"),
        ("xoxb-1234567890-abcdef", "[secret]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("AIza" + "b" * 35, "[secret]"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [secret]"),
        ("postgresql://me:pw@host/db", "postgresql://[secret]@host/db"),
        (f"bot 12345678:{'c' * 35} said", "bot [secret] said"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- tail",
            "[secret] tail",
        ),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "[secret]"),
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str, clean: str) -> None:
    assert redact(text) == clean
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "a risk-assessment-of-everything",
        "task-1234567890123456",
        "https://host:80/a@b",
        "12:30",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text
    assert not holds_secret(text)


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    environ = {"ANTHROPIC_API_KEY": "1", "BOT_TOKEN": "2", "MAX_TOKENS": "3", "KEYBOARD": "4"}
    assert known_secrets(environ) == ("1", "2")


def test_a_short_secret_does_not_eat_ordinary_text() -> None:
    assert Redactor("a").text("banana") == "banana"
