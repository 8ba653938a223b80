"""What a reply comes to: silence only when the reply says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.verdict import Alarm, Empty, Quiet, Told, is_no_reply, judge
from tests.growth import QUADRATIC, growth

OK = "HEARTBEAT_OK"


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (OK, ""),
        ("heartbeat_ok", ""),
        ("Heartbeat_Ok.", ""),
        ("HEARTBEAT_OK!!!", ""),
        ("**HEARTBEAT_OK**", ""),
        ("`HEARTBEAT_OK`", ""),
        ("_HEARTBEAT_OK_", ""),
        ("__HEARTBEAT_OK__", ""),
        ('"HEARTBEAT_OK"', ""),
        ("“HEARTBEAT_OK”", ""),
        ("<b>HEARTBEAT_OK</b>", ""),
        ("HEARTBEAT_OK&nbsp;", ""),
        ("HEARTBEAT\\_OK", ""),
        ("\n\n  HEARTBEAT_OK \n", ""),
        ("```\nHEARTBEAT_OK\n```", ""),
        ("# HEARTBEAT_OK", ""),
        ("✅ HEARTBEAT_OK", ""),
        ("HEARTBEAT_OK HEARTBEAT_OK", ""),
        ("(HEARTBEAT_OK)", ""),
        ("HEARTBEAT_OK. All quiet.", "All quiet."),
        ("HEARTBEAT_OK - no issues found", "no issues found"),
        ("HEARTBEAT_OK, nothing is due", "nothing is due"),
        ("HEARTBEAT_OK no alerts", "no alerts"),
        ("All quiet. HEARTBEAT_OK", "All quiet."),
        ("I looked at it all.\n\nHEARTBEAT_OK", "I looked at it all."),
        ("All quiet HEARTBEAT_OK", "All quiet"),
        ("No issues found HEARTBEAT_OK", "No issues found"),
        ("Nothing is not in order. **HEARTBEAT_OK**", "Nothing is not in order."),
        ("Status: HEARTBEAT_OK", "Status:"),
        ("x" * 300 + " HEARTBEAT_OK", "x" * 300),
        ("HEARTBEAT_OK " + "x" * 300, "x" * 300),
    ],
)
def test_an_acknowledgement_is_silence_and_the_rest_is_kept(reply: str, left: str) -> None:
    assert judge(reply, 300) == Quiet(left)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Disk full", "Disk full"),
        ("Not HEARTBEAT_OK: disk full", "Not HEARTBEAT_OK: disk full"),
        ("Not HEARTBEAT_OK", "Not HEARTBEAT_OK"),
        ("**Not** HEARTBEAT_OK!", "**Not** HEARTBEAT_OK!"),
        ("This is no HEARTBEAT_OK", "This is no HEARTBEAT_OK"),
        ("I cannot say HEARTBEAT_OK.", "I cannot say HEARTBEAT_OK."),
        ("I can’t reply HEARTBEAT_OK", "I can’t reply HEARTBEAT_OK"),
        ("Das ist nicht HEARTBEAT_OK", "Das ist nicht HEARTBEAT_OK"),
        ("This instead of HEARTBEAT_OK", "This instead of HEARTBEAT_OK"),
        ("HEARTBEAT_OK is not what I can say", "HEARTBEAT_OK is not what I can say"),
        ("HEARTBEAT_OK cannot be given", "HEARTBEAT_OK cannot be given"),
        ("The word HEARTBEAT_OK was asked for", "The word HEARTBEAT_OK was asked for"),
        ("Disk full. HEARTBEAT_OK? No.", "Disk full. HEARTBEAT_OK? No."),
        ("HEARTBEAT_OKAY", "HEARTBEAT_OKAY"),
        ("HEARTBEAT OK", "HEARTBEAT OK"),
        ("OK", "OK"),
        ("🔥", "🔥"),
        ("HEARTBEAT_OK " + "x" * 301, "x" * 301),
        ("x" * 301 + " HEARTBEAT_OK", "x" * 301),
    ],
)
def test_everything_else_is_an_alert(reply: str, text: str) -> None:
    assert judge(reply, 300) == Alarm(text)


@pytest.mark.parametrize("reply", ["", "  \n", "...", "**", "``` ```"])
def test_nothing_said_is_no_all_clear(reply: str) -> None:
    assert judge(reply, 300) == Empty()


def test_a_reply_after_notify_is_no_second_alert() -> None:
    for reply in ("I told them.", f"{OK} done", ""):
        assert judge(reply, 300, notified=["The roof leaks."]) == Told("The roof leaks.")
    assert judge(OK, 300, notified=["One.", "Two."]) == Told("One.\n\nTwo.")


def test_with_no_room_beside_it_only_the_bare_word_is_silence() -> None:
    assert judge("HEARTBEAT_OK.", 0) == Quiet("")
    assert judge("HEARTBEAT_OK fine", 0) == Alarm("fine")


@given(st.text(max_size=300))
def test_a_reply_without_the_word_is_never_swallowed(reply: str) -> None:
    if "heartbeat" not in reply.lower() and any(c.isalnum() for c in reply):
        assert judge(reply, 300) == Alarm(reply.strip())


def test_a_long_row_of_marks_is_judged_at_once() -> None:
    assert isinstance(judge("_*" * 20_000 + "x", 300), Alarm)


@pytest.mark.parametrize(
    "text",
    [
        "NO_REPLY",
        "no_reply",
        " No_Reply.\n",
        "**NO_REPLY**",
        "`NO_REPLY`",
        "NO\\_REPLY",
        '"NO REPLY"',
        "<b>NO_REPLY</b>",
        "> NO_REPLY!",
        "- no-reply",
        "```\nNO_REPLY\n```",
        "🤐 NO_REPLY",
    ],
)
def test_no_reply_is_understood_in_any_dress(text: str) -> None:
    assert is_no_reply(text)
    assert judge(text, 300) == Quiet()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NO",
        "Saved. NO_REPLY",
        "NO_REPLY is what I would say",
        "NO_REPLY NO_REPLY",
        "norply",
        "…",
        "no_reply_to_that",
        "noreply@example.org",
        "There is no reply",
    ],
)
def test_anything_else_than_no_reply_is_words(text: str) -> None:
    assert not is_no_reply(text)


def test_a_token_without_end_takes_time_in_proportion_and_is_no_all_clear() -> None:
    text = "HEARTBEAT_OK " * 8_000
    assert growth(lambda size: judge(text[:size], 300), 10_000) < QUADRATIC
    assert isinstance(judge(text, 300), Alarm)
    assert judge("HEARTBEAT_OK " * 3, 300) == Quiet()
