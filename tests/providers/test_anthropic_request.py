"""What goes over the wire."""

import json

from msgspec.structs import replace

from agentd.core.message import Message, OpaqueBlock, Role, Text, ToolResult, assistant, user
from agentd.core.prompt import Effect, Prompt, ToolSpec
from agentd.providers.anthropic_wire import request_body
from agentd.providers.provider_settings import ProviderSettings
from agentd.testing import call, check_api_messages

CACHE = {"type": "ephemeral"}
THOUGHT = OpaqueBlock("anthropic", {"type": "thinking", "thinking": "hm", "signature": "s=="})


def tool(name):
    return ToolSpec(name, "Does it.", {"type": "object"}, Effect.READ_ONLY)


def body(prompt, **settings):
    return request_body(prompt, ProviderSettings(**settings), "claude-x")


def breakpoints(data):
    return json.dumps(data).count('"cache_control"')


def test_four_breakpoints_stand_behind_tools_system_stable_and_last_message():
    prompt = Prompt(
        ("stable", "less so"),
        (user("a"), assistant("b"), user("c"), assistant("d"), user("e")),
        (tool("one"), tool("two")),
        cached_messages=3,
    )
    data = body(prompt)
    assert data["tools"][-1]["cache_control"] == CACHE
    assert data["system"] == [
        {"type": "text", "text": "stable"},
        {"type": "text", "text": "less so", "cache_control": CACHE},
    ]
    marked = [
        m["content"][-1]["text"] for m in data["messages"] if "cache_control" in m["content"][-1]
    ]
    assert marked == ["c", "e"]
    assert breakpoints(data) == 4


def test_a_bare_prompt_has_neither_tools_nor_system():
    data = body(Prompt(("", "  "), (user("a"),)), max_tokens=77)
    assert set(data) == {"model", "max_tokens", "messages"}
    assert data["max_tokens"] == 77


def test_the_last_call_of_a_turn_is_told_of_tools_that_it_may_not_call():
    asked = Prompt((), (user("Hello"),), (tool("memory_tree"),), may_call=False)
    assert (body(asked)["tool_choice"], len(body(asked)["tools"])) == ({"type": "none"}, 1)
    assert "tool_choice" not in body(replace(asked, may_call=True))
    assert "tool_choice" not in body(replace(asked, tools=()))


def test_a_prompt_may_ask_for_fewer_tokens():
    assert body(Prompt((), (user("a"),), max_tokens=5))["max_tokens"] == 5


def test_thinking_is_only_spoken_of_when_it_is_on():
    prompt = Prompt((), (user("a"),))
    assert "thinking" not in body(prompt)
    assert body(prompt, thinking="adaptive")["thinking"] == {"type": "adaptive"}


def test_own_opaque_blocks_go_back_verbatim_and_those_of_others_do_not():
    other = OpaqueBlock("elsewhere", {"type": "reasoning", "data": "x"})
    answer = Message(Role.ASSISTANT, (THOUGHT, other, Text("b")))
    data = body(Prompt((), (user("a"), answer, user("c"))))
    assert data["messages"][1]["content"] == [THOUGHT.raw, {"type": "text", "text": "b"}]


def test_blank_text_is_never_sent_and_neighbours_of_one_role_become_one_message():
    blank = Message(Role.ASSISTANT, (Text(" \n"), Text("")))
    data = body(Prompt((), (user("a"), blank, user("b"), user("c")), cached_messages=1))
    content = data["messages"][0]["content"]
    assert [b["text"] for b in content] == ["a", "b", "c"]
    assert ["cache_control" in b for b in content] == [True, False, True]
    check_api_messages(data["messages"])


def test_a_breakpoint_never_stands_on_thinking():
    answer = Message(Role.ASSISTANT, (Text("b"), THOUGHT))
    data = body(Prompt((), (user("a"), answer, user("c")), cached_messages=2))
    assert data["messages"][1]["content"] == [
        {"type": "text", "text": "b", "cache_control": CACHE},
        THOUGHT.raw,
    ]


def test_tool_results_say_whether_they_are_errors():
    results = Message(Role.USER, (ToolResult("call_1", "no", is_error=True), Text("go on")))
    data = body(Prompt((), (user("a"), call("look", q="x"), results)))
    assert data["messages"][2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": "no",
        "is_error": True,
    }
    check_api_messages(data["messages"])


def test_building_a_request_leaves_the_prompt_as_it_was():
    answer = Message(Role.ASSISTANT, (OpaqueBlock("anthropic", {"type": "text", "text": "x"}),))
    prompt = Prompt((), (user("a"), answer), cached_messages=2)
    assert body(prompt) == body(prompt)
    assert answer.blocks[0].raw == {"type": "text", "text": "x"}


def test_effort_is_said_only_when_it_was_chosen():
    assert "output_config" not in body(Prompt((), (user("a"),)))
    assert body(Prompt((), (user("a"),), effort="low"))["output_config"] == {"effort": "low"}


def test_no_service_is_told_what_is_quoted():
    quoted = Message(Role.USER, (Text("look at this", ((0, 4),)),))
    (message,) = body(Prompt((), (quoted,)))["messages"]
    assert message["content"] == [{"type": "text", "text": "look at this", "cache_control": CACHE}]
