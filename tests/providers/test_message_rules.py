"""The validator that every scripted prompt passes."""

import pytest

from agentd.core.message import Message, Role, Text, ToolResult, assistant, user
from agentd.core.prompt import Prompt
from agentd.testing import ScriptedProvider, call, check_api_messages, check_messages


def results(*ids, before=(), after=()):
    blocks = (*before, *(ToolResult(i, "done") for i in ids), *after)
    return Message(Role.USER, blocks)


GOOD = [
    [user("a")],
    [user("a"), assistant("b"), user("c")],
    [user("a"), user("b")],
    [user("a"), call("t"), results("call_1"), assistant("b")],
    [user("a"), call("t"), results("call_1", after=(Text("and"),))],
    [user("a"), call("t"), results("call_1"), user("and")],
    [user("a"), call("t"), results("call_1"), call("t", "call_2"), results("call_2")],
    [user("a"), Message(Role.ASSISTANT, ()), user("b")],
]
BAD = {
    "nothing": [],
    "assistant first": [assistant("b"), user("a")],
    "empty text": [user("")],
    "blank text": [user("a"), assistant(" \n"), user("b")],
    "call at the end": [user("a"), call("t")],
    "call without result": [user("a"), call("t"), user("b")],
    "result too late": [user("a"), call("t"), user("b"), assistant("c"), results("call_1")],
    "orphan result": [user("a"), assistant("b"), results("call_1")],
    "wrong id": [user("a"), call("t"), results("call_9")],
    "result twice": [user("a"), call("t"), results("call_1", "call_1")],
    "id used again": [user("a"), call("t"), results("call_1"), call("t"), results("call_1")],
    "text before the result": [user("a"), call("t"), results("call_1", before=(Text("b"),))],
    "call of the user": [user("a"), Message(Role.USER, call("t").blocks)],
    "result of the assistant": [
        user("a"),
        call("t"),
        Message(Role.ASSISTANT, (ToolResult("call_1", "x"),)),
    ],
}


@pytest.mark.parametrize("messages", GOOD)
def test_what_the_api_takes_passes(messages):
    check_messages(messages)


@pytest.mark.parametrize("messages", BAD.values(), ids=BAD.keys())
def test_what_the_api_refuses_is_an_assertion_error(messages):
    with pytest.raises(AssertionError):
        check_messages(messages)


def test_plain_json_is_checked_too():
    check_api_messages([{"role": "user", "content": "a"}])
    with pytest.raises(AssertionError, match="no role"):
        check_api_messages([{"role": "system", "content": "a"}])
    with pytest.raises(AssertionError, match="empty"):
        check_api_messages([{"role": "user", "content": []}])


async def test_a_scripted_provider_refuses_what_the_api_would():
    provider = ScriptedProvider()
    with pytest.raises(AssertionError):
        await anext(provider.stream(Prompt((), (assistant("b"),))))
