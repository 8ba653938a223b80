"""What goes over the wire to a chat-completions server."""

import json

import pytest
from msgspec.structs import replace

from agentd.core.message import (
    Message,
    OpaqueBlock,
    Role,
    Text,
    ToolResult,
    ToolUse,
    assistant,
    user,
)
from agentd.core.prompt import Effect, Prompt, ToolSpec
from agentd.providers.openai_wire import request_body, service_of
from agentd.providers.provider_settings import ServiceSettings

SCHEMA = {"type": "object", "properties": {"where": {"type": "string"}}}
LOOK = ToolSpec("look", "Looks.", SCHEMA, Effect.READ_ONLY)
THOUGHT = OpaqueBlock("anthropic", {"type": "thinking", "thinking": "SENTINEL", "signature": "s=="})


def body(prompt, capabilities=None, **settings):
    given = ServiceSettings(kind="openai", model="m", capabilities=capabilities or {}, **settings)
    return request_body(prompt, given, "gpt-x")


def sent(*messages):
    return body(Prompt((), messages))["messages"]


def test_a_bare_prompt_asks_for_a_stream_with_figures():
    assert body(Prompt(("", "  "), (user("a"),)), max_tokens=77) == {
        "model": "gpt-x",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 77,
        "messages": [{"role": "user", "content": "a"}],
    }


def test_system_sections_are_one_message_at_the_beginning():
    messages = body(Prompt(("first", " ", "second"), (user("a"),)))["messages"]
    assert messages[0] == {"role": "system", "content": "first\n\nsecond"}
    assert [m["role"] for m in messages] == ["system", "user"]


def test_tools_are_functions():
    function = {"name": "look", "description": "Looks.", "parameters": SCHEMA}
    assert body(Prompt((), (user("a"),), (LOOK,)))["tools"] == [
        {"type": "function", "function": function}
    ]


def test_the_last_call_of_a_turn_is_told_of_tools_that_it_may_not_call():
    asked = Prompt((), (user("Hello"),), (LOOK,), may_call=False)
    assert (body(asked)["tool_choice"], len(body(asked)["tools"])) == ("none", 1)
    assert "tool_choice" not in body(replace(asked, may_call=True))
    assert "tool_choice" not in body(replace(asked, tools=()))


def test_results_follow_their_calls_one_message_each_and_words_come_after():
    calls = assistant("I look.", ToolUse("c1", "look", {"where": "ü"}), ToolUse("c2", "look", {}))
    results = Message(
        Role.USER,
        (ToolResult("c1", "dust"), ToolResult("c2", "no such place", is_error=True), Text("And?")),
    )
    said = sent(user("Look"), calls, results)
    assert said[1]["content"] == "I look."
    assert [c["id"] for c in said[1]["tool_calls"]] == ["c1", "c2"]
    assert said[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"where": "ü"}'}
    assert said[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "dust"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no such place"},
        {"role": "user", "content": "And?"},
    ]


def test_a_call_without_words_has_no_content():
    said = sent(user("Look"), assistant("", ToolUse("c1", "look", {})))
    assert said[1]["content"] is None


def test_several_texts_of_the_user_stay_apart():
    assert sent(Message(Role.USER, (Text("[Now]"), Text(" "), Text("Hello")))) == [
        {"role": "user", "content": "[Now]\n\nHello"}
    ]


def test_blocks_of_other_providers_are_left_out_and_so_are_messages_of_nothing_else():
    said = sent(
        user("a"),
        Message(Role.ASSISTANT, (THOUGHT, Text("b"))),
        user("c"),
        Message(Role.ASSISTANT, (THOUGHT,)),
        user("d"),
    )
    assert [m["content"] for m in said] == ["a", "b", "c", "d"]
    assert "SENTINEL" not in json.dumps(said)


BOX = "http://key@box:8080/v1"
REASONED = OpaqueBlock(
    "openai",
    {
        "service": service_of(ServiceSettings(kind="openai", model="m", base_url=BOX)),
        "message": {"reasoning_content": "hm", "content": "no"},
        "calls": [{"extra_content": {"signature": "s=="}, "id": "no"}, {}],
    },
)


def test_what_came_with_calls_goes_back_to_the_service_that_sent_it_and_to_no_other():
    uses = (ToolUse("c1", "look", {}), ToolUse("c2", "look", {}))
    said = Message(Role.ASSISTANT, (REASONED, *uses))
    prompt = Prompt((), (user("a"), said))
    own = body(prompt, base_url=BOX)["messages"][1]
    assert (own["content"], own["reasoning_content"]) == (None, "hm")
    assert [(c["id"], c.get("extra_content")) for c in own["tool_calls"]] == [
        ("c1", {"signature": "s=="}),
        ("c2", None),
    ]
    other = body(prompt, base_url="http://other/v1")["messages"][1]
    assert other == sent(user("a"), Message(Role.ASSISTANT, uses))[1]
    words = Message(Role.ASSISTANT, (REASONED, Text("b")))
    assert body(Prompt((), (user("a"), words)), base_url=BOX)["messages"][1] == {
        "role": "assistant",
        "content": "b",
    }


@pytest.mark.parametrize(
    ("capabilities", "key", "value"),
    [
        ({"max_tokens_field": "max_tokens"}, "max_tokens", 8192),
        ({"parallel_tool_calls": False}, "parallel_tool_calls", False),
        ({"parallel_tool_calls": True}, "parallel_tool_calls", True),
        ({"reasoning_effort": "low"}, "reasoning_effort", "low"),
    ],
)
def test_a_flag_says_what_the_server_is_told(capabilities, key, value):
    prompt = Prompt((), (user("a"),), (LOOK,))
    assert body(prompt, capabilities)[key] == value
    assert key not in body(prompt)


def test_a_flag_takes_away_what_a_server_refuses():
    prompt = Prompt(("s",), (user("a"),))
    data = body(prompt, {"stream_options": False, "system_role": "developer"})
    assert "stream_options" not in data
    assert data["messages"][0]["role"] == "developer"


def test_the_prompt_may_limit_its_answer():
    data = body(Prompt((), (user("a"),), max_tokens=5))
    assert data["max_completion_tokens"] == 5


def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter_one():
    short = json.dumps(body(Prompt(("s",), (user("a"),), (LOOK,))))
    longer = json.dumps(body(Prompt(("s",), (user("a"), assistant("b"), user("c")), (LOOK,))))
    assert longer.startswith(short.removesuffix("]}"))


def test_the_effort_of_a_session_goes_before_the_configured_one():
    told = {"reasoning_effort": "high"}
    assert body(Prompt((), (user("a"),)), told)["reasoning_effort"] == "high"
    assert body(Prompt((), (user("a"),), effort="low"), told)["reasoning_effort"] == "low"
