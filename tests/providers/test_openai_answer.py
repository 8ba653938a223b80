"""Recorded streams of chat-completions servers in, events out."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.message import Text, ToolUse, user
from agentd.core.prompt import (
    AnswerCompleted,
    ModelStop,
    Prompt,
    StreamRestarted,
    TextDelta,
    ThoughtDelta,
)
from agentd.core.secrets import Secret
from agentd.core.turn import Usage
from agentd.providers.counting import TokenCounts
from agentd.providers.openai import OpenAIProvider
from agentd.providers.provider_settings import ServiceSettings
from tests.providers.hearing import hear

STREAMS = Path(__file__).parent / "streams" / "openai"
NOTE = {"content": "Tee trinkt Ada ☕", "target": "memory"}
CUTTABLE = ("text", "tool_call", "parallel_calls", "reasoning_content", "reasoning")


class Pieces(httpx.AsyncByteStream):
    """A response body that arrives in given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def recorded(name):
    return (STREAMS / f"{name}.txt").read_bytes()


def play(*pieces, **settings):
    """A provider whose service answers every request with these pieces of an event stream."""

    def answer(_):
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return httpx.Response(200, headers=headers, stream=Pieces(*pieces))

    return OpenAIProvider(
        ServiceSettings(kind="openai", model="gpt-x", **settings),
        Secret("sk-test", "test"),
        transport=httpx.MockTransport(answer),
    )


async def test_text_comes_as_deltas_and_then_whole(hello):
    deltas, answer = await hear(play(recorded("text")), hello)
    assert deltas == [TextDelta("Grüße"), TextDelta("! 日本 "), TextDelta("🍵.")]
    assert answer.message.blocks == (Text("Grüße! 日本 🍵."),)
    assert answer.stop is ModelStop.END_TURN
    assert answer.provider == "openai"
    assert answer.model == "gpt-5-mini-2026-08-07"
    assert answer.usage == Usage(25, 15)


async def test_the_arguments_of_a_call_are_put_together(hello):
    deltas, answer = await hear(play(recorded("tool_call")), hello)
    assert deltas == []
    assert answer.stop is ModelStop.TOOL_USE
    assert answer.message.blocks == (ToolUse("call_abc", "memory_write", NOTE),)


async def test_calls_at_once_keep_their_order_and_no_arguments_are_none(hello):
    _, answer = await hear(play(recorded("parallel_calls")), hello)
    assert answer.message.blocks == (
        Text("I note that."),
        ToolUse("call_a", "memory_write", NOTE),
        ToolUse("call_b", "memory_tree", {}),
    )


@pytest.mark.parametrize(
    ("stream", "uses"),
    [
        ("interleaved_calls", [("call_a", {"path": "a.md"}), ("call_b", {"depth": 2})]),
        ("same_index", [("call_a", {}), ("call_b", {"depth": 2})]),
        ("no_index", [("call_0", {"depth": 2})]),
        (
            "no_index_no_id",
            [("call_0", {}), ("call_1", {"query": "tea"}), ("call_2", {"query": "milk"})],
        ),
        ("stop_with_call", [("call_a", {})]),
        ("late_id", [("call_a", {})]),
        ("arguments_object", [("call_a", {"a": "SENTINEL"})]),
    ],
)
async def test_calls_are_told_apart_however_a_server_numbers_them(hello, stream, uses):
    _, answer = await hear(play(recorded(stream)), hello)
    assert [(use.id, use.input) for use in answer.message.tool_uses] == uses
    assert answer.stop is ModelStop.TOOL_USE


@pytest.mark.parametrize("stream", ["reasoning_content", "reasoning", "think_tags"])
async def test_reasoning_is_shown_apart_once_and_is_no_part_of_the_answer(hello, stream):
    deltas, answer = await hear(play(recorded(stream)), hello)
    thoughts = "".join(d.text for d in deltas if isinstance(d, ThoughtDelta))
    words = "".join(d.text for d in deltas if isinstance(d, TextDelta))
    assert thoughts.strip() == "The tea is in the tin."
    assert words == answer.message.text
    assert answer.message.text.startswith("It is in the tin")
    assert len(answer.message.blocks) == 1


def stream(*deltas, finish="stop"):
    """A stream of these deltas, which ends with this stop reason."""
    choices = [{"index": 0, "delta": d, "finish_reason": None} for d in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [f"data: {json.dumps({'choices': [c]})}\n\n" for c in choices]
    return "".join((*events, "data: [DONE]\n\n")).encode()


LOOK = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
SIGNED = {**LOOK, "extra_content": {"signature": "s=="}}
DETAILS = [{"type": "reasoning.encrypted", "data": "x"}]


@pytest.mark.parametrize(
    ("deltas", "message", "extra"),
    [
        (
            [{"reasoning_content": "h"}, {"reasoning_content": "m"}, {"tool_calls": [LOOK]}],
            {"reasoning_content": "hm"},
            {},
        ),
        (
            [{"reasoning": "hm", "reasoning_details": DETAILS}, {"tool_calls": [LOOK]}],
            {"reasoning_details": DETAILS},
            {},
        ),
        ([{"tool_calls": [SIGNED]}], {}, {"extra_content": {"signature": "s=="}}),
    ],
)
async def test_reasoning_and_signatures_are_kept_with_calls_for_their_service(
    hello, deltas, message, extra
):
    _, answer = await hear(play(stream(*deltas, finish="tool_calls")), hello)
    kept, call = answer.message.blocks
    assert kept.raw.keys() == {"service", "message", "calls"}
    assert (kept.raw["message"], kept.raw["calls"]) == (message, [extra])
    assert (kept.provider, call) == ("openai", ToolUse("c1", "look", {}))


async def test_reasoning_that_cannot_be_sent_is_not_kept(hello):
    deltas = ({"reasoning": "\ud800"}, {"tool_calls": [LOOK]})
    _, answer = await hear(play(stream(*deltas, finish="tool_calls")), hello)
    assert answer.message.blocks == (ToolUse("c1", "look", {}),)


async def test_thinking_whose_opening_tag_the_server_keeps_is_taken_back(hello):
    said = [{"content": text} for text in ("Okay, hm.", " So:\n</thi", "nk>\n\nY", "es.")]
    events, answer = await hear(play(stream(*said)), hello)
    restart = next(n for n, event in enumerate(events) if isinstance(event, StreamRestarted))
    assert events[restart + 1].text.startswith("Okay, hm. So:")
    assert "".join(e.text for e in events[restart + 2 :]) == "Yes." == answer.message.text


async def test_a_model_that_thinks_behind_a_tag_of_the_prompt_is_known_from_then_on(hello):
    answers = [
        stream({"content": "Hm.\n</think>\nYes."}),
        stream({"content": "Hm. And"}, finish="length"),
        stream({"content": "Hm.\n</thi"}, {"content": "nk>\nYes."}),
        stream({"content": "No thought."}),
        stream({"content": "None either."}),
    ]
    heard = []

    def answer(_):
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=answers.pop(0))

    transport = httpx.MockTransport(answer)
    settings = ServiceSettings(kind="openai", model="gpt-x")
    async with OpenAIProvider(settings, Secret("sk", "test"), transport=transport) as provider:
        while answers:
            events = [event async for event in provider.stream(hello)]
            kinds = [type(e).__name__ for e in events[1:-1]]
            heard.append((events[-1].message.text, kinds))
    assert heard == [
        ("Yes.", ["TextDelta", "StreamRestarted", "ThoughtDelta", "TextDelta"]),
        ("", ["ThoughtDelta"]),
        ("Yes.", ["ThoughtDelta", "TextDelta"]),
        ("No thought.", ["ThoughtDelta", "TextDelta"]),
        ("None either.", ["TextDelta"]),
    ]


async def test_the_parts_of_a_content_are_told_apart_by_their_types(hello):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thinking, {"type": "text", "text": "Ye"}, {"type": "reference", "ids": [1]}]
    odd = {"reasoning": {"text": "hm"}}
    deltas, answer = await hear(play(stream({"content": parts}, odd, {"content": "s."})), hello)
    assert deltas == [ThoughtDelta("hm"), TextDelta("Ye"), TextDelta("s.")]
    assert answer.message.blocks == (Text("Yes."),)


def event(delta, finish=None, part="delta"):
    choices = [{"index": 0, part: delta, "finish_reason": finish}]
    return f"data: {json.dumps({'choices': choices})}\n\n".encode()


@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b""], ids=["mark", "no mark"])
async def test_a_stop_reason_with_every_piece_ends_nothing(hello, end):
    thought = event({"reasoning_content": "hm"}, "stop")
    deltas, answer = await hear(
        play(thought, event({"content": "Ye"}, "stop"), event({"content": "s."}, "stop"), end),
        hello,
    )
    assert deltas == [ThoughtDelta("hm"), TextDelta("Ye"), TextDelta("s.")]
    assert (answer.message.text, answer.stop) == ("Yes.", ModelStop.END_TURN)


async def test_calls_with_a_stop_reason_each_are_all_made(hello):
    calls = [{**LOOK, "index": n, "id": f"c{n}"} for n in range(2)]
    _, answer = await hear(play(*(event({"tool_calls": [c]}, "stop") for c in calls)), hello)
    assert [use.id for use in answer.message.tool_uses] == ["c0", "c1"]


async def test_calls_of_one_index_without_ids_are_told_apart_by_whole_arguments(hello):
    pieces = ['{"a"', ": 1}", '{"a": 2}', ""]
    calls = [{"index": 0, "function": {"name": "look", "arguments": p}} for p in pieces]
    _, answer = await hear(play(stream(*({"tool_calls": [c]} for c in calls))), hello)
    assert [use.input for use in answer.message.tool_uses] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("STOP", ModelStop.END_TURN),
        ("eos", ModelStop.END_TURN),
        ("MODEL_LENGTH", ModelStop.MAX_TOKENS),
    ],
)
async def test_other_words_for_a_stop_reason_are_understood(hello, word, stop):
    _, answer = await hear(play(event({"content": "Yes."}, word)), hello)
    assert (answer.message.text, answer.stop) == ("Yes.", stop)


async def test_a_service_that_stops_for_lack_of_resources_is_overloaded(hello):
    said = event({"content": "Half"}, "insufficient_system_resource")
    _, error = await hear(play(said), hello)
    assert (error.kind, error.retryable) == ("overloaded", True)


async def test_a_whole_message_may_stand_in_an_event(hello):
    _, answer = await hear(play(event({"content": "Yes."}, "stop", part="message")), hello)
    assert answer.message.text == "Yes."


async def test_without_the_flag_think_tags_are_text(hello):
    settings = {"capabilities": {"think_tags": False}}
    deltas, answer = await hear(play(recorded("think_tags"), **settings), hello)
    assert answer.message.text.startswith("<think>\nThe tea")
    assert not [d for d in deltas if isinstance(d, ThoughtDelta)]


async def test_usage_tells_what_came_from_the_cache_apart(hello):
    _, answer = await hear(play(recorded("cached")), hello)
    assert answer.usage == Usage(7, 3, 4001)


@pytest.mark.parametrize("stream", ["usage_with_stop", "reasoning"])
async def test_usage_counts_wherever_it_stands(hello, stream):
    _, answer = await hear(play(recorded(stream)), hello)
    assert answer.usage == Usage(25, 15)


async def test_a_server_that_does_not_count_gets_an_estimate(hello):
    _, answer = await hear(play(recorded("no_usage")), hello)
    assert 5 < answer.usage.input_tokens < 100
    assert 1 < answer.usage.output_tokens < 10


def counted(usage, delta, finish="stop"):
    """A stream of one choice with these token counts behind it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    events = ({"choices": [choice]}, {"choices": [], "usage": usage})
    return b"".join(f"data: {json.dumps(e)}\n\n".encode() for e in events) + b"data: [DONE]\n\n"


BROKEN_CALL = {
    "tool_calls": [{"index": 0, "id": "c", "function": {"name": "note", "arguments": '{"a": '}}]
}


@pytest.mark.parametrize(("delta", "finish"), [({}, "stop"), (BROKEN_CALL, "tool_calls")])
async def test_an_answer_that_is_none_tells_what_it_has_used(hello, delta, finish):
    usage = {"prompt_tokens": 2000, "completion_tokens": 100}
    _, error = await hear(play(counted(usage, delta, finish)), hello)
    assert error.kind in ("empty_answer", "bad_tool_json")
    assert error.usage == Usage(2000, 100)


async def test_a_stream_that_is_cut_has_used_what_was_sent_and_written(hello):
    _, error = await hear(play(counted(None, BROKEN_CALL, None).split(b"\n\n")[0] + b"\n\n"), hello)
    assert error.kind == "stream_cut"
    assert error.usage.input_tokens > 5
    assert error.usage.output_tokens > 0


async def test_a_call_that_nothing_came_of_has_used_nothing(hello):
    _, error = await hear(play(b"data: [DONE]\n\n"), hello)
    assert error.usage is None


@pytest.mark.parametrize("told", [0, 12, 10**11])
async def test_a_count_that_cannot_be_is_not_believed(told):
    prompt = Prompt((), (user("one word and another " * 1000),))
    usage = {"prompt_tokens": told, "completion_tokens": told}
    provider = play(counted(usage, {"content": "A plain answer. " * 500}))
    with capture_logs() as logs:
        _, answer = await hear(provider, prompt)
        await hear(provider, prompt)
    assert 4000 < answer.usage.prompt_tokens < 8000
    assert 1500 < answer.usage.output_tokens < 3000
    assert [e["event"] for e in logs] == ["token_count_not_believed"]


async def test_an_unusual_count_is_believed():
    prompt = Prompt((), (user("one word and another " * 1000),))
    for told in (1200, 20_000):
        usage = {"prompt_tokens": told, "completion_tokens": 3}
        _, answer = await hear(play(counted(usage, {"content": "Yes."})), prompt)
        assert answer.usage == Usage(told, 3)


async def test_a_service_that_counts_less_than_half_of_what_it_is_sent_is_told():
    prompt = Prompt((), (user("one word and another " * 1000),))
    short = Prompt((), (user("one word"),))
    for told, seen, problems in (
        (2048, prompt, ["prompt_cut"]),  # as if cut
        (3900, prompt, []),
        (20, short, []),
        (0, prompt, []),  # it does not count
    ):
        usage = {"prompt_tokens": told, "completion_tokens": 3}
        provider = play(counted(usage, {"content": "Yes."}))
        await hear(provider, seen)
        assert [problem.code for problem in provider.problems()] == problems


async def test_a_service_that_counts_all_of_a_later_prompt_has_cut_none():
    prompt = Prompt((), (user("one word and another " * 1000),))
    counts = TokenCounts("x")
    await counts.used(prompt, Usage(900, 3), 3, 100)  # only what was not cached
    assert counts.problems()
    await counts.used(prompt, Usage(4500, 3), 3, 100)
    assert counts.problems() == ()


async def test_the_stop_reason_is_enough_without_an_end_mark(hello):
    _, answer = await hear(play(recorded("no_done")), hello)
    assert (answer.message.text, answer.usage) == ("Yes.", Usage(25, 15))


@pytest.mark.parametrize(
    ("stream", "stop", "text"),
    [
        ("refusal", ModelStop.REFUSAL, "I cannot"),
        ("content_filter", ModelStop.REFUSAL, "I cannot"),
        ("length_text", ModelStop.MAX_TOKENS, "Once upon a"),
        ("length_in_call", ModelStop.MAX_TOKENS, "I note that."),
        ("length_before_arguments", ModelStop.MAX_TOKENS, "I note that."),
        ("length_in_reasoning", ModelStop.MAX_TOKENS, ""),
    ],
)
async def test_each_stop_reason_keeps_the_words_and_no_unfinished_tool(hello, stream, stop, text):
    _, answer = await hear(play(recorded(stream)), hello)
    assert (answer.stop, answer.message.text, answer.message.tool_uses) == (stop, text, ())


@pytest.mark.parametrize(
    ("stream", "kind", "retryable"),
    [
        ("error_inside", "server_error", True),
        ("error_with_stop", "server_error", True),
        ("rate_limit_inside", "rate_limited", True),
        ("overflow_inside", "overflow", False),
        ("error_at_top", "overflow", False),
        ("error_stop_alone", "server_error", True),
        ("done_alone", "stream_cut", True),
        ("nothing_but_done", "stream_cut", True),
        ("not_a_stream", "not_found", False),
        ("bad_json", "bad_stream", True),
        ("an_array", "bad_stream", True),
        ("words_behind_stop", "stream_cut", True),
        ("call_behind_stop", "stream_cut", True),
        ("call_without_call", "bad_stream", True),
        ("call_without_name", "bad_stream", True),
        ("arguments_cut", "bad_tool_json", True),
        ("arguments_array", "bad_tool_json", True),
        ("arguments_nan", "bad_tool_json", True),
        ("arguments_twice", "bad_tool_json", True),
        ("empty", "empty_answer", True),
        ("reasoning_only", "empty_answer", True),
        ("unknown_stop", "unknown_stop", False),
    ],
)
async def test_a_broken_answer_is_a_named_error_and_nothing_else(hello, stream, kind, retryable):
    deltas, error = await hear(play(recorded(stream)), hello)
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
@pytest.mark.parametrize("stream", CUTTABLE)
async def test_a_stream_cut_at_any_byte_is_the_whole_answer_or_none(hello, stream, ending, step):
    whole = recorded(stream).replace(b"\n", ending)
    _, expected = await hear(play(whole), hello)
    stopped = whole.index(ending, whole.rindex(b'"finish_reason":"'))  # its JSON is whole
    for length in range(0, stopped, step):
        _, error = await hear(play(whole[:length]), hello)
        assert isinstance(error, ProviderError), length
        assert (error.kind, error.retryable) == ("stream_cut", True), length
    for length in range(stopped, len(whole), step):
        _, answer = await hear(play(whole[:length]), hello)
        assert (answer.message, answer.stop) == (expected.message, expected.stop), length


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("stream", CUTTABLE)
async def test_an_answer_is_the_same_in_single_bytes(hello, stream, ending):
    whole = recorded(stream).replace(b"\n", ending)
    at_once = await hear(play(recorded(stream)), hello)
    assert await hear(play(*(bytes([b]) for b in whole)), hello) == at_once


async def test_line_separators_inside_text_do_not_split_an_event(hello):
    odd = "one\u2028two\u0085three"
    whole = recorded("text").replace("Grüße".encode(), odd.encode())
    _, answer = await hear(play(whole), hello)
    assert answer.message.text.startswith(odd)


async def test_bytes_that_are_no_text_are_an_error(hello):
    whole = recorded("text").replace("ü".encode(), b"\xff\xfe")
    _, error = await hear(play(whole), hello)
    assert error.kind == "bad_stream"


async def test_a_deeply_nested_argument_is_refused(hello):
    deep = json.dumps("[" * 100_000)[1:-1].encode()
    whole = recorded("arguments_array").replace(b"[1, 2]", deep)
    _, error = await hear(play(whole), hello)
    assert error.kind == "bad_tool_json"


async def test_an_event_without_an_end_is_refused(hello):
    _, error = await hear(play(*[b"data: " + b"x" * 1_000_000] * 6), hello)
    assert error.kind == "bad_stream"
