"""Recorded streams in, events out: what a whole answer is, and what is none."""

import json

import pytest

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import OpaqueBlock, Text, ToolUse
from agentd.core.prompt import AnswerCompleted, ModelStop, TextDelta, ThoughtDelta
from agentd.core.turn import Usage
from tests.providers.hearing import hear

THOUGHT = OpaqueBlock(
    "anthropic",
    {
        "type": "thinking",
        "thinking": "The tea is in the tin.",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
    },
)


async def test_text_comes_as_deltas_and_then_whole(playing, recorded, hello):
    deltas, answer = await hear(playing(recorded("text")), hello)
    assert deltas == [TextDelta("Grüße"), TextDelta("! 日本 "), TextDelta("🍵.")]
    assert answer.message.blocks == (Text("Grüße! 日本 🍵."),)
    assert answer.stop is ModelStop.END_TURN
    assert answer.provider == "anthropic"
    assert answer.model == "claude-sonnet-5-5-20260901"
    assert answer.usage == Usage(25, 15)


async def test_thinking_is_shown_apart_and_kept_with_its_signature(playing, recorded, hello):
    deltas, answer = await hear(playing(recorded("thinking")), hello)
    assert deltas[:2] == [ThoughtDelta("The tea is in "), ThoughtDelta("the tin.")]
    assert answer.message.blocks == (THOUGHT, Text("It is in the tin."))


async def test_tool_calls_carry_the_arguments_that_were_sent(playing, recorded, hello):
    _, answer = await hear(playing(recorded("tool_use")), hello)
    assert answer.stop is ModelStop.TOOL_USE
    assert answer.message.tool_uses == (
        ToolUse("toolu_01A", "memory_write", {"content": "Tee trinkt Ada ☕", "target": "memory"}),
        ToolUse("toolu_01B", "memory_tree", {}),
    )


async def test_usage_counts_the_cache_and_takes_the_last_totals(playing, recorded, hello):
    _, answer = await hear(playing(recorded("cached")), hello)
    assert answer.usage == Usage(7, 3, 4001, 301)


@pytest.mark.parametrize("stream", ["thinking_only", "tool_json_cut", "no_message_stop"])
async def test_an_answer_that_is_none_tells_what_it_has_used(playing, recorded, hello, stream):
    _, error = await hear(playing(recorded(stream)), hello)
    assert isinstance(error, ProviderError)
    assert error.usage.input_tokens == 25
    assert error.usage.output_tokens > 0


async def test_blocks_that_only_the_service_knows_are_kept_verbatim_in_order(
    playing, recorded, hello
):
    _, answer = await hear(playing(recorded("redacted_and_unknown")), hello)
    assert [b.raw if isinstance(b, OpaqueBlock) else b for b in answer.message.blocks] == [
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3p"},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "tea"},
        },
        {"type": "hologram", "pixels": [1, 2], "extra": {"a": None}},
        Text("Done."),
    ]


@pytest.mark.parametrize(
    ("stream", "stop", "text"),
    [
        ("refusal", ModelStop.REFUSAL, "I cannot"),
        ("pause_turn", ModelStop.PAUSE, "Searching."),
        ("max_tokens_text", ModelStop.MAX_TOKENS, "Once upon a"),
        ("max_tokens_in_tool", ModelStop.MAX_TOKENS, "I note that."),
        ("max_tokens_before_arguments", ModelStop.MAX_TOKENS, "I note that."),
        ("max_tokens_in_thinking", ModelStop.MAX_TOKENS, ""),
    ],
)
async def test_each_stop_reason_keeps_the_words_and_no_unfinished_tool(
    playing, recorded, hello, stream, stop, text
):
    _, answer = await hear(playing(recorded(stream)), hello)
    assert (answer.stop, answer.message.text, answer.message.tool_uses) == (stop, text, ())


async def test_thinking_that_was_cut_is_not_kept(playing, recorded, hello):
    _, answer = await hear(playing(recorded("max_tokens_in_thinking")), hello)
    assert answer.message.blocks == ()


async def test_finished_thinking_before_cut_words_is_kept(playing, recorded, hello):
    whole = recorded("thinking").replace(b'"end_turn"', b'"max_tokens"')
    _, answer = await hear(playing(whole), hello)
    assert answer.message.blocks == (THOUGHT, Text("It is in the tin."))


async def test_a_paused_answer_keeps_the_block_that_goes_back(playing, recorded, hello):
    _, answer = await hear(playing(recorded("pause_turn")), hello)
    assert answer.message.blocks[-1].raw["input"] == {"query": "tea"}


@pytest.mark.parametrize(
    ("stream", "kind", "retryable"),
    [
        ("overloaded_inside", "overloaded", True),
        ("overflow_inside", "overflow", False),
        ("window_exceeded", "overflow", False),
        ("no_stop_reason", "stream_cut", True),
        ("no_message_stop", "stream_cut", True),
        ("not_a_stream", "stream_cut", True),
        ("bad_json", "bad_stream", True),
        ("an_array", "bad_stream", True),
        ("duplicate_index", "bad_stream", True),
        ("orphan_delta", "bad_stream", True),
        ("two_starts", "bad_stream", True),
        ("no_start", "bad_stream", True),
        ("block_without_end", "bad_stream", True),
        ("delta_without_text", "bad_stream", True),
        ("tool_use_without_tool", "bad_stream", True),
        ("tool_json_cut", "bad_tool_json", True),
        ("tool_json_array", "bad_tool_json", True),
        ("tool_json_nan", "bad_tool_json", True),
        ("tool_json_twice", "bad_tool_json", True),
        ("empty", "empty_answer", True),
        ("thinking_only", "empty_answer", True),
        ("unknown_stop", "unknown_stop", False),
    ],
)
async def test_a_broken_answer_is_a_named_error_and_nothing_else(
    playing, recorded, hello, stream, kind, retryable
):
    deltas, error = await hear(playing(recorded(stream)), hello)
    assert isinstance(error, ProviderError)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert not [d for d in deltas if isinstance(d, AnswerCompleted)]
    assert isinstance(error, ContextOverflow) == (kind == "overflow")
    assert error.cure
    assert "SENTINEL" not in f"{error.message} {error.cure} {error.__cause__!r}"


# At every byte; in everyday tests at every seventh, which is in each event many times.
STEPS = [pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(1200)]), 7]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("stream", ["text", "thinking", "tool_use"])
async def test_a_stream_cut_at_any_byte_is_never_an_answer(
    playing, recorded, hello, stream, ending, step
):
    whole = recorded(stream).replace(b"\n", ending)
    complete = len(whole) - len(ending) + 1  # a lone CR ends the last line already
    if ending == b"\n":
        complete = len(whole)
    for length in range(0, complete, step):
        _, error = await hear(playing(whole[:length]), hello)
        assert isinstance(error, ProviderError), length
        assert error.kind in ("stream_cut", "bad_stream"), length
        assert error.retryable, length
    _, answer = await hear(playing(whole), hello)
    assert isinstance(answer, AnswerCompleted)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("stream", ["text", "thinking", "tool_use"])
async def test_an_answer_is_the_same_in_single_bytes(playing, recorded, hello, stream, ending):
    whole = recorded(stream).replace(b"\n", ending)
    at_once = await hear(playing(recorded(stream)), hello)
    assert await hear(playing(*(bytes([b]) for b in whole)), hello) == at_once


async def test_line_separators_inside_text_do_not_split_an_event(playing, recorded, hello):
    odd = "one\u2028two\u0085three"
    whole = recorded("text").replace("Grüße".encode(), odd.encode())
    _, answer = await hear(playing(whole), hello)
    assert answer.message.text.startswith(odd)


async def test_a_tool_call_with_end_turn_is_still_a_tool_call(playing, recorded, hello):
    whole = recorded("tool_use").replace(b'"stop_reason":"tool_use"', b'"stop_reason":"end_turn"')
    _, answer = await hear(playing(whole), hello)
    assert answer.stop is ModelStop.TOOL_USE


async def test_a_deeply_nested_argument_is_refused(playing, recorded, hello):
    deep = json.dumps("[" * 100_000)[1:-1].encode()
    whole = recorded("tool_json_array").replace(b"[1, 2]", deep)
    _, error = await hear(playing(whole), hello)
    assert error.kind == "bad_tool_json"
