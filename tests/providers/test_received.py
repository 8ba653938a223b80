"""Whatever stands in whatever field of either wire: an answer that can be kept and sent, or its
error.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core import strict
from agentd.core.errors import ProviderError
from agentd.core.message import (
    Message,
    Role,
    ToolResult,
    decode_blocks,
    encode_blocks,
    user,
)
from agentd.core.prompt import AnswerCompleted, Prompt, TextDelta, ThoughtDelta
from agentd.core.turn import Usage
from agentd.providers import anthropic_wire as anthropic_answer
from agentd.providers import anthropic_wire as anthropic_request
from agentd.providers import openai_answer
from agentd.providers import openai_wire as openai_request
from agentd.providers.faults import FAULTS
from agentd.providers.provider_settings import ProviderSettings
from agentd.providers.received import MOST_WRITTEN, TOO_LARGE
from agentd.testing import check_api_messages

ID = re.compile(r"[A-Za-z0-9_.:|=+-]{1,40}")
USAGE = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 2}
ANTHROPIC: list[Any] = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "a"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "d"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "e"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "hologram", "pixels": ["f"]}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "tell", "input": {"g": "h"}},
    },
    {"type": "content_block_stop", "index": 3},
    {
        "type": "content_block_start",
        "index": 4,
        "content_block": {"type": "tool_use", "id": "toolu_2", "name": "tell", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 4,
        "delta": {"type": "input_json_delta", "partial_json": '{"i": "j"}'},
    },
    {"type": "content_block_stop", "index": 4},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]  # fmt: skip
CALL = {"index": 0, "id": "call_1", "function": {"name": "tell", "arguments": '{"a": "b"}'}}
OPENAI: list[Any] = [
    {"model": "m", "choices": [{"index": 0, "delta": {"reasoning_content": "c"}}]},
    {"model": "m", "choices": [{"index": 0, "delta": {"content": "d", "refusal": "e"}}]},
    {"model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}}]},
    {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 2},
        },
    },
]

Heard = tuple[list[TextDelta | ThoughtDelta], AnswerCompleted]


def hear_anthropic(lines: list[str]) -> Heard:
    assembly, shown = anthropic_answer.AnthropicAssembly("m"), []
    for line in lines:
        try:
            event = strict.loads(line)
        except ValueError as error:  # as the reader of the wire has it
            raise ProviderError("bad", kind="bad_stream") from error
        if (delta := assembly.feed(event)) is not None:
            shown.append(delta)
    if not assembly.is_complete:
        raise ProviderError("cut", kind="stream_cut")
    return shown, assembly.answered(assembly.usage)


def hear_openai(lines: list[str]) -> Heard:
    assembly = openai_answer.OpenAIAssembly("m")
    shown = [delta for line in lines for delta in assembly.feed(line)]
    return shown, assembly.answered(assembly.usage or Usage(1, 1))


WIRES: list[tuple[list[Any], Callable[[list[str]], Heard]]] = [
    (ANTHROPIC, hear_anthropic),
    (OPENAI, hear_openai),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field, those that hold others too."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def with_value(events: list[Any], path: tuple[Any, ...], value: Any) -> list[str]:
    changed = list(events)
    changed[path[0]] = copy.deepcopy(events[path[0]])
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return [json.dumps(event) for event in changed]


@cache
def code_points() -> list[str]:
    """The first and the last character of each category, and those with a meaning of their own."""
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for number in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(number))
        first.setdefault(category, chr(number))
        last[category] = chr(number)
    own = ["\0", "\x1b", "\x85", "\u2028", "\u202e", "\ufeff", "\ufffe", "\udbff", "\udc00"]
    pairs = ["\udc00\ud800", "\ud83d" + "\ude00", "a\ud800b", "toolu 1/", "x" * 300, "", " "]
    return sorted({*first.values(), *last.values(), *own, *pairs})


DEEP: Any = "deep"
for _ in range(100):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None, True, -1, 1.5, 10**12, 2**63 - 1, 2**64, 10**25, float("nan"), float("inf"), [], {}, DEEP,
    {"\ud800": 1}, [["\udfff"]], '{"a": "\\ud800"}', '{"a": 1e999}', '{"a": 1, "a": 2}',
    '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": NaN}', '{"a": ' + "9" * 25 + "}",
]  # fmt: skip


def check(heard: Heard) -> None:
    """What everything behind the edge relies on."""
    shown, answer = heard
    message = answer.message
    for delta in shown:
        delta.text.encode()
    json.dumps(encode_blocks(message.blocks), ensure_ascii=False, allow_nan=False).encode()
    answer.model.encode()
    for count in (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens):
        assert 0 <= count < 10**10
    for use in message.tool_uses:
        assert ID.fullmatch(use.id)
        assert ("\ufffd" in json.dumps([use.name, dict(use.input)], ensure_ascii=False)) == bool(
            use.refused
        )
    results = Message(Role.USER, tuple(ToolResult(use.id, "done") for use in message.tool_uses))
    prompt = Prompt((), (user("go"), message, results if results.blocks else user("on")))
    body = anthropic_request.request_body(prompt, ProviderSettings(), answer.model)
    check_api_messages(body["messages"])
    for sent in (body, openai_request.request_body(prompt, ProviderSettings(), answer.model)):
        json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(("events", "hear"), WIRES, ids=["anthropic", "openai"])
def test_every_class_of_value_in_every_field_is_fit_to_be_kept_or_is_an_error(events, hear) -> None:
    check(hear([json.dumps(event) for event in events]))
    answered, errors = 0, set()
    for path in places(events):
        for value in (*code_points(), *VALUES):
            try:
                heard = hear(with_value(events, path, value))
            except ProviderError as error:
                errors.add(error.kind)
            else:
                answered += 1
                check(heard)
    assert answered > 500
    assert errors <= FAULTS.keys()


def said_by_anthropic(pieces: list[str]) -> Heard:
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        for piece in pieces
    ]
    opening = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    closing = [{"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}]
    events = [ANTHROPIC[0], opening, *deltas, *closing]
    return hear_anthropic([json.dumps(event) for event in events])


def said_by_openai(pieces: list[str]) -> Heard:
    deltas = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    return hear_openai([json.dumps(event) for event in [*deltas, end]])


@pytest.mark.parametrize("said_by", [said_by_anthropic, said_by_openai])
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=4), max_size=6))
def test_what_is_shown_is_what_is_kept_however_it_is_cut(said_by, pieces: list[str]) -> None:
    shown, answer = said_by(["a", *pieces])
    whole = "".join(["a", *pieces]).encode("utf-16-le", "surrogatepass")
    assert answer.message.text == whole.decode("utf-16-le", "replace")
    assert "".join(delta.text for delta in shown) == answer.message.text


def test_thinking_that_is_no_unicode_is_dropped_whole_and_shown_in_readable_form() -> None:
    shown, answer = hear_anthropic(with_value(ANTHROPIC, (2, "delta", "thinking"), "\ud800"))
    assert ThoughtDelta("\ufffd") in shown
    kept = [
        block["raw"]["type"] for block in encode_blocks(answer.message.blocks) if "raw" in block
    ]
    assert kept == ["hologram"]


def test_thinking_whose_pair_was_cut_between_two_pieces_is_kept() -> None:
    events = copy.deepcopy(ANTHROPIC)
    events[1]["content_block"]["thinking"] = "\ud83d"
    events[2]["delta"]["thinking"] = "\ude00"
    _, answer = hear_anthropic([json.dumps(event) for event in events])
    assert encode_blocks(answer.message.blocks)[0]["raw"]["thinking"] == "\U0001f600"


def test_a_refused_call_is_one_when_it_is_read_again() -> None:
    _, answer = hear_openai(
        with_value(
            OPENAI, (2, "choices", 0, "delta", "tool_calls", 0, "function", "name"), "te\ud800ll"
        )
    )
    (use,) = answer.message.tool_uses
    assert (use.name, bool(use.refused)) == ("te\ufffdll", True)
    assert decode_blocks(encode_blocks(answer.message.blocks)) == answer.message.blocks


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param('{"content": "' + "x" * 1_100_000 + '"}', id="letters"),
        pytest.param('{"content": [' + ",".join(["1"] * 10_001) + "]}", id="values"),
    ],
)
@pytest.mark.parametrize(
    ("events", "place", "hear"),
    [
        pytest.param(ANTHROPIC, (13, "delta", "partial_json"), hear_anthropic, id="anthropic"),
        pytest.param(
            OPENAI,
            (2, "choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
            hear_openai,
            id="openai",
        ),
    ],
)
def test_a_call_with_more_than_any_tool_takes_is_kept_without_it_and_not_run(
    events: list[Any], place: tuple[Any, ...], hear: Callable[[list[str]], Heard], arguments: str
) -> None:
    _, answer = hear(with_value(events, place, arguments))
    call = answer.message.tool_uses[-1]
    assert call.refused == TOO_LARGE
    assert call.input == {}


@pytest.mark.parametrize("wire", [anthropic_answer.AnthropicAssembly, openai_answer.OpenAIAssembly])
def test_an_answer_that_never_ends_is_given_up(wire: Any) -> None:
    assembly = wire("m")
    piece = "x" * 100_000
    if wire is anthropic_answer.AnthropicAssembly:
        assembly.feed({"type": "message_start", "message": {}})
        text = {"type": "text", "text": ""}
        assembly.feed({"type": "content_block_start", "index": 0, "content_block": text})
        delta = {"type": "text_delta", "text": piece}
        event: Any = {"type": "content_block_delta", "index": 0, "delta": delta}
    else:
        event = json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]})
    for _ in range(MOST_WRITTEN // len(piece)):
        assembly.feed(event)
    with pytest.raises(ProviderError) as given_up:
        assembly.feed(event)
    assert given_up.value.kind == "bad_stream"
