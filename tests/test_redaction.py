"""Which texts hold or tell a secret, and that it is hidden."""

from __future__ import annotations

import base64
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.redaction import Redactor, holds_secret, redact, secret_values, tells_secret
from tests.growth import QUADRATIC, growth


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
    "piece",
    ["password ", "password for ", "1234 ", "pin is ", "key", " ", "://", "pin for" + " " * 3_000],
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
    assert secret_values(environ) == ("1", "2")


def test_a_short_secret_does_not_eat_ordinary_text() -> None:
    assert Redactor("a").text("banana") == "banana"


KEYS = {
    "anthropic": "sk-ant-api03-" + "aB3_" * 20,
    "openai": "sk-proj-" + "aB3_" * 10,
    "openrouter": "sk-or-v1-" + "0a" * 32,
    "stripe": "sk_live_" + "a1" * 12,
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "a1B2" * 5,
    "slack": "xoxb-1234567890-abcdefABCDEF",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "b1C" * 11 + "xy",
    "huggingface": "hf_" + "aB" * 17,
    "npm": "npm_" + "a1" * 18,
    "telegram": "123456789:AA" + "b" * 33,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + "ab_-" * 10,
    "pem": "-----BEGIN PRIVATE KEY-----\n"
    + ("MIIEvQIB" * 8 + "\n") * 3
    + "ab==\n-----END PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(
    "around",
    [
        *("{}", "key={}", "It is `{}`.", "_{}_", "a\n{}\nb", "({})", "„{}“"),
        *(
            "x\\n{}",
            "\\t{}",
            "\\u001b[0m{}",
            "\x1b[1;32m{}\x1b[0m",
            "u=x%3D{}",
            "MY_{}",
            "TOKEN_{}",
        ),
    ],
)
def test_a_key_in_a_published_format_is_kept_as_a_mark(kind: str, around: str) -> None:
    key = KEYS[kind]
    kept = Redactor().kept(around.format(key)).text
    assert f"[secret:{kind}]" in kept
    assert key[10:] not in kept
    assert Redactor(formats=False).kept(around.format(key)).text == around.format(key)


def test_a_quoted_pem_is_kept_as_a_mark() -> None:
    quoted = "\n".join(f"> {line}" for line in KEYS["pem"].splitlines())
    kept = Redactor().kept(f"look:\n{quoted}\n> bye").text
    assert kept == "look:\n> [secret:pem]\n> bye"


def test_names_of_fields_are_texts_too() -> None:
    data = {"a": [{KEYS["github"]: 1}]}
    assert Redactor().plain(data) == {"a": [{"[secret:github]": 1}]}


@pytest.mark.parametrize(
    "text",
    [
        "TaskAKIAIOSFODNN7EXAMPLE",
        "mask-sk-abc",
        "sk-learn-pipeline-2024-orders-abc",
        "pk-orders-2024-11-003912-abcdef",
        "ticket SK-20241103-ABCDEF-99",
        "risk-assessment-of-everything-1234567890",
        "task-abcdefghij1234567890",
        "mask_sk-1",
        "AKIA is what such ids begin with, AKIATOOSHORT too",
        "BAKIAIOSFODNN7EXAMPLE and AKIAIOSFODNN7EXAMPLEXYZ",
        "ghp_short and gho_1",
        "-----BEGIN PRIVATE KEY----- is how the file begins, he said.",
        "-----BEGIN PUBLIC KEY-----\n" + "MIIEvQIB" * 8 + "\n-----END PUBLIC KEY-----",
        "eyJhbGciOiJIUzI1NiJ9 alone",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "https://example.org/a?token=abcdef0123456789abcdef",
        "my password is hunter2",
        "12345678:30 o'clock",
        "hf_hub_download is a function",
    ],
)
def test_ids_of_near_formats_are_kept_as_they_are(text: str) -> None:
    assert Redactor().kept(text).text == text


SECRET = "Ab/9+x=Zq?7&long enough ü"


def spelled(secret: str) -> list[str]:
    inside = [f"{'x' * n}{secret}tail" for n in range(3)]
    coded = [base64.b64encode(text.encode()).decode() for text in inside]
    return [
        secret,
        quote(secret, safe=""),
        quote(secret),
        *coded,
        *(base64.urlsafe_b64encode(text.encode()).decode() for text in inside),
        secret.encode().hex(),
    ]


@pytest.mark.parametrize("text", spelled(SECRET), ids=range(len(spelled(SECRET))))
def test_a_secret_that_is_known_is_found_however_it_is_spelled(text: str) -> None:
    kept = Redactor(SECRET).kept(f"see {text} there").text
    assert "[secret:configured]" in kept
    assert len(kept) < len(text) + 10 or len(kept) < 45
    assert "[secret]" in Redactor(SECRET).text(f"see {text} there")
    assert Redactor().kept(f"see {text} there").text == f"see {text} there"


def test_places_behind_a_cut_move_with_the_text() -> None:
    text = f"a {KEYS['aws']} b {KEYS['github']} c"
    kept = Redactor().kept(text)
    for word in ("a", " b", " c"):
        assert kept.text[kept.moved(text.index(word)) :].startswith(word)
    assert kept.moved(text.index(KEYS["aws"]) + 5) == len("a [secret:aws]")
    assert kept.moved(len(text)) == len(kept.text)


def test_keys_that_touch_or_overlap_are_replaced_once() -> None:
    key = KEYS["anthropic"]
    assert Redactor(key).kept(f"x {key}").text == "x [secret:anthropic]"
    assert Redactor(key + " and more").kept(f"x {key} and more.").text == "x [secret:configured]."


def test_lines_are_counted_as_before_where_that_matters() -> None:
    text = f"one\n{KEYS['pem']}\nlast"
    kept = Redactor().kept(text, in_lines=True).text
    assert kept.count("\n") == text.count("\n")
    assert kept.endswith("\nlast")


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "sk-",
        "sk-ant-",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "1:AA",
        "ghp_",
        "A: b\n",
    ]
    + [f"{key} " for key in KEYS.values()],
    ids=lambda piece: repr(piece[:16]),
)
def test_time_to_look_for_keys_is_in_proportion_to_the_text(piece: str) -> None:
    size = 1 << 14
    text = piece * (4 * size // len(piece) + 1)
    assert growth(lambda length: Redactor(SECRET).kept(text[:length]), size) < QUADRATIC


@given(
    st.lists(
        st.sampled_from(
            [
                "words",
                "-----BEGIN RSA PRIVATE KEY-----",
                "A" * 24,
                "sk-ant-",
                "api03-" + "b" * 20,
                "",
            ]
        ),
        max_size=5,
    ),
    st.lists(st.sampled_from(["words", "A" * 24, "sk-ant-api03-" + "b" * 20]), max_size=2),
)
def test_a_key_is_found_that_an_addition_completes(before, behind) -> None:
    redactor = Redactor("a secret\nof two lines")
    old = "".join(f"{line}\n" for line in before)
    new = old + "\n".join(behind)
    if not redactor.holds(old):
        assert redactor.holds_behind(new.encode(), len(old.encode())) is redactor.holds(new)


def test_a_known_secret_over_two_lines_is_found_when_the_second_comes() -> None:
    redactor = Redactor("a secret\nof two lines")
    assert redactor.holds_behind(b"told: a secret\nof two lines", len(b"told: a secret\n"))


LINES = st.sampled_from(
    ["tea", "", "sk-ant-api03-" + "a1" * 20, "the words", "-----BEGIN PRIVATE KEY-----", "QUFB" * 8]
)


@given(st.lists(LINES), st.lists(LINES))
def test_what_stands_beside_known_lines_is_looked_through_as_if_alone(known, lines):
    redactor = Redactor("my own secret")
    before, text = "\n".join(known), "\n".join(lines)
    if not redactor.holds(before):
        assert redactor.holds_beside(text, before) == redactor.holds(text)


def test_a_secret_of_several_lines_is_found_beside_known_ones():
    redactor = Redactor("first half\nsecond half")
    known = "first half\nbetween\nsecond half"
    assert not redactor.holds(known)
    assert redactor.holds_beside("first half\nsecond half", known)
