"""Prompts are valid whatever the history, and their cached part stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.message import Image, OpaqueBlock, Text, ToolResult, ToolUse
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import MAIN, TurnRequest
from agentd.engine.context import TurnPromptParts, build_prompt
from agentd.engine.rendering import render_past
from agentd.testing import FakeClock, check_messages

AT = FakeClock().now()
WORDS = st.sampled_from(["hello", "", "  \n", "what now?", "</data>"])
TURNS = ["answered", "tool", "pause", "failed", "failed_behind_tool", "cancelled", "empty", "alert"]


def rows_of(turns: list[tuple[str, str]]) -> list[list[Row]]:
    """Each turn as the engine stores it."""
    made: list[list[Row]] = []
    seq = 0

    def row(role: RowRole, *blocks, tag: str = "") -> Row:
        nonlocal seq
        seq += 1
        return Row(seq, role, blocks, AT, len(made) + 1, tag=tag)

    def used() -> tuple[Row, Row]:
        call = row(RowRole.ASSISTANT, ToolUse(f"c{seq}", "x", {}))
        return call, row(RowRole.USER, ToolResult(call.blocks[0].id, "done"))

    for kind, words in turns:
        if kind == "alert":
            made.append([row(RowRole.NOTICE, Text("disk full"), tag="alert:1")])
            continue
        turn = [row(RowRole.USER, Text(words))]
        if kind in {"tool", "failed_behind_tool"}:
            turn += used()
        if kind == "pause":
            turn.append(row(RowRole.ASSISTANT, Text("so far")))
        if kind in {"answered", "tool", "pause"}:
            thought = OpaqueBlock("scripted", {"type": "thinking", "thinking": "hm"})
            turn.append(row(RowRole.ASSISTANT, thought, Text("answer")))
        if kind == "empty":
            turn.append(row(RowRole.ASSISTANT))
        if kind.startswith("failed"):
            turn.append(row(RowRole.NOTICE, Text("failed"), tag="failure"))
        if kind == "cancelled":
            turn.append(row(RowRole.ASSISTANT, Text("a lo")))
            turn.append(row(RowRole.NOTICE, Text("Cancelled"), tag="cancelled"))
        made.append(turn)
    return made


def test_an_alert_is_told_with_the_owners_clocks() -> None:
    zone = ZoneInfo("Europe/Berlin")
    alert = Row(
        1, RowRole.NOTICE, (Text("milk"),), datetime(2026, 7, 1, 12, tzinfo=UTC), tag="alert:1"
    )
    assert "agentd alert of 2026-07-01 14:00 CEST, shown" in render_past([alert], "", zone).notices
    request = TurnRequest(MAIN, "x", "m")
    scene = TurnPromptParts(request, (), (), render_past(()), "", "scripted", zone=zone)
    user = Row(2, RowRole.USER, (Text("hi"),), alert.at)
    assert "14:00 CEST" in str(build_prompt(scene, [replace(user, seq=0), alert, user]).messages)


def context(past: list[Row], summary: str = "", provider: str = "scripted") -> TurnPromptParts:
    request = TurnRequest(MAIN, "x", "m")
    before = render_past(past, summary)
    return TurnPromptParts(request, ("sys",), (), before, "[Now: noon]", provider)


@given(
    st.lists(st.tuples(st.sampled_from(TURNS), WORDS), max_size=8),
    st.tuples(st.sampled_from(["answered", "tool", "failed"]), WORDS),
    st.sampled_from(["", "what was before"]),
    st.integers(0, 3),
)
def test_every_history_makes_a_valid_request_with_a_prefix_that_stays(
    turns, last, summary, dropped
) -> None:
    *before, now = rows_of([*turns, last])
    past = [row for turn in before for row in turn][dropped if summary else 0 :]
    while past and isinstance(next(iter(past[0].blocks), None), ToolResult):
        past.pop(0)  # a context never begins between a call and its result
    prompt = build_prompt(context(past, summary), now[:1])
    check_messages(prompt.messages)
    following = Row(999, RowRole.USER, (Text("next"),), AT, 999)
    after = build_prompt(context([*past, *now], summary), [following])
    check_messages(after.messages)
    cached = prompt.cached_messages
    assert after.messages[:cached] == prompt.messages[:cached]


def test_an_imported_conversation_that_begins_with_the_agent_is_sent_behind_a_user_message() -> (
    None
):
    greeting = Row(1, RowRole.ASSISTANT, (Text("Hello!"),), AT)
    prompt = build_prompt(context([greeting]), [Row(2, RowRole.USER, (Text("hi"),), AT)])
    check_messages(prompt.messages)
    assert prompt.messages[1].text == "Hello!"


@pytest.mark.parametrize("words", ["", " \n "])
def test_a_message_without_words_is_no_hole_in_the_request(words) -> None:
    prompt = build_prompt(context([]), [Row(1, RowRole.USER, (Text(words),), AT)])
    check_messages(prompt.messages)
    assert prompt.messages[0].blocks[0] == Text("[Now: noon]")


def test_thinking_goes_back_word_for_word() -> None:
    thought = OpaqueBlock("anthropic", {"type": "thinking", "signature": "s="})
    past = [
        Row(1, RowRole.USER, (Text("hi"),), AT),
        Row(2, RowRole.ASSISTANT, (thought, Text("yes")), AT, provider="anthropic"),
    ]
    asked = [Row(3, RowRole.USER, (Text("and?"),), AT)]
    assert build_prompt(context(past, provider="anthropic"), asked).messages[1].blocks[0] is thought


PICTURE = Image("image/png", "a" * 64, 34_000)


def said(seq: int, role: RowRole, *blocks, tag: str = "") -> Row:
    return Row(seq, role, blocks, AT, tag=tag)


def test_an_image_stays_before_the_words_it_came_with() -> None:
    past = [
        said(1, RowRole.USER, PICTURE, Text("what is it?")),
        said(2, RowRole.ASSISTANT, Text("a cat")),
    ]
    prompt = build_prompt(context(past), [said(3, RowRole.USER, PICTURE)])
    assert prompt.messages[0].blocks == (PICTURE, Text("what is it?"))
    clock, shown, words = prompt.messages[-1].blocks
    assert (clock, shown) == (Text("[Now: noon]"), PICTURE)
    assert isinstance(words, Text), "an image alone needs words beside it"
    assert words.text.strip()


def failed(seq: int, turn_id: int | None = None) -> Row:
    return Row(seq, RowRole.NOTICE, (Text("This failed."),), AT, turn_id, tag="failure")


def texts(past: list[Row]) -> list[str]:
    """What the model is told of the past, in order, before a message `well?`."""
    prompt = build_prompt(context(past), [said(99, RowRole.USER, Text("well?"))])
    blocks = [block for message in prompt.messages for block in message.blocks]
    return [b.text if isinstance(b, Text) else "a picture" for b in blocks][:-2]


def test_a_message_that_only_a_failure_has_answered_does_not_go_along_with_the_next_one() -> None:
    answered = [said(1, RowRole.USER, Text("hi")), said(2, RowRole.ASSISTANT, Text("hello"))]
    lost = [said(3, RowRole.USER, PICTURE, Text("what is it?")), failed(4)]
    assert texts([*answered, *lost]) == ["hi", "hello"]
    assert texts([*answered, *lost, said(5, RowRole.USER, Text("again?")), failed(6)]) == [
        "hi",
        "hello",
    ]


def test_a_message_whose_turn_had_begun_to_work_stays_when_it_fails() -> None:
    past = [
        said(1, RowRole.USER, Text("note it")),
        said(2, RowRole.ASSISTANT, Text("I do")),
        failed(3),
    ]
    assert texts(past) == ["note it", "I do"]


def test_a_failed_message_is_told_from_one_that_was_cancelled_while_it_waited() -> None:
    past = [
        Row(1, RowRole.USER, (Text("waits and fails"),), AT, turn_id=1),
        Row(2, RowRole.USER, (Text("waits behind it, is cancelled"),), AT, turn_id=2),
        Row(3, RowRole.NOTICE, (Text("Cancelled by the user."),), AT, turn_id=2, tag="cancelled"),
        failed(4, turn_id=1),
    ]
    assert texts(past) == ["waits behind it, is cancelled"]


def test_an_alert_goes_on_to_the_next_message_if_the_one_behind_it_fails() -> None:
    past = [
        said(1, RowRole.NOTICE, Text("the disk is full"), tag="alert:7"),
        said(2, RowRole.USER, Text("hi")),
        failed(3),
    ]
    assert "the disk is full" in texts(past)[0]


def test_of_notices_the_model_is_told_alerts_alone() -> None:
    past = [
        said(1, RowRole.USER, Text("hi")),
        said(2, RowRole.NOTICE, Text("was compacted"), tag="compaction"),
        said(3, RowRole.ASSISTANT, Text("yes")),
        said(4, RowRole.NOTICE, Text("disk full"), tag="alert:1"),
        said(5, RowRole.NOTICE, Text("was cancelled"), tag="cancelled"),
    ]
    told = str(build_prompt(context(past), [said(6, RowRole.USER, Text("and?"))]).messages)
    assert "disk full" in told
    assert "compacted" not in told
    assert "cancelled" not in told


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        (10, "r" * 10 + "\n[… 20 of 30 characters left out to make room]"),
        (30, "r" * 30),
        (None, "r" * 30),
    ],
)
def test_a_clipped_result_says_what_is_missing_and_words_are_never_clipped(limit, shown) -> None:
    turn = [
        said(1, RowRole.USER, Text("w" * 30)),
        said(2, RowRole.ASSISTANT, ToolUse("c", "x", {})),
        said(3, RowRole.USER, ToolResult("c", "r" * 30)),
    ]
    asked, _, answered = build_prompt(context([]), turn, clip_results=limit).messages
    assert asked.blocks[-1] == Text("w" * 30)
    assert answered.blocks == (ToolResult("c", shown),)
