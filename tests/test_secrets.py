"""Which texts tell a secret."""

from __future__ import annotations

import time

import pytest

from agentd.secrets import tells_secret


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
