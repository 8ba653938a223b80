"""Ids and names of tool calls from anywhere are ones that a service takes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.message import Message, Role, ToolResult, ToolUse, assistant, user
from agentd.core.prompt import Prompt
from agentd.providers import anthropic_wire as anthropic_request
from agentd.providers import openai_wire as openai_request
from agentd.providers.provider_settings import ProviderSettings
from agentd.providers.received import call_id, call_name, tool_name
from agentd.testing import check_api_messages

ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
FOREIGN = ["functions.read:0", "call_1|fc_" + "a" * 60, "", "tool-ü", "x" * 200]


def spoken(id_: str, name: str) -> Prompt:
    answered = Message(Role.USER, (ToolResult(id_, "done"),))
    return Prompt((), (user("go"), assistant("", ToolUse(id_, name, {})), answered))


@given(st.text())
def test_whatever_they_are_they_are_taken(text: str) -> None:
    assert ID.fullmatch(call_id(text, strict=True))
    assert 0 < len(call_id(text, strict=False)) <= 40
    assert NAME.fullmatch(call_name(text))


def test_those_of_services_stay_as_they_are() -> None:
    for id_ in ("toolu_01A09q90qw90lq917835lq9", "call_1", "call_1-2"):
        assert call_id(id_, strict=True) == id_
    assert call_id("functions.read:0", strict=False) == "functions.read:0"
    assert call_name("memory_write") == "memory_write"


def test_different_ids_stay_different() -> None:
    made = {call_id(id_, strict=True) for id_ in [*FOREIGN, "functions_read_0", "tool-u"]}
    assert len(made) == len(FOREIGN) + 2


@pytest.mark.parametrize("id_", FOREIGN)
def test_a_call_that_another_program_made_goes_to_claude_with_its_result(id_: str) -> None:
    body = anthropic_request.request_body(spoken(id_, "fs.read " * 40), ProviderSettings(), "m")
    check_api_messages(body["messages"])
    (use,), (result,) = (m["content"] for m in body["messages"][1:])
    assert ID.fullmatch(use["id"])
    assert use["id"] == result["tool_use_id"]
    assert NAME.fullmatch(use["name"])


@pytest.mark.parametrize("id_", FOREIGN)
def test_and_to_any_other_service(id_: str) -> None:
    body = openai_request.request_body(spoken(id_, "fs.read " * 40), ProviderSettings(), "m")
    _, said, told = json.loads(json.dumps(body["messages"]))
    (use,) = said["tool_calls"]
    assert 0 < len(use["id"]) <= 40
    assert use["id"] == told["tool_call_id"]
    assert NAME.fullmatch(use["function"]["name"])


def test_the_name_of_a_tool_of_another_program_has_no_dot():
    assert tool_name("files.read_file") == "files__read_file"
    assert tool_name("files.get/x.y") == "files__get_x_y"
    assert tool_name("memory_search") == "memory_search"
