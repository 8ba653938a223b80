"""Our types of the protocol's requests take and refuse what the official ones do."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
from acp import schema
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentd.interfaces.acp import acp_schema
from agentd.interfaces.acp.acp_schema import parse_prompt

SERVER = {"name": "s", "command": "/bin/s", "args": [], "env": []}
OPENED = {"cwd": "/w", "mcpServers": [SERVER], "additionalDirectories": ["/a"], "_meta": {"a": 1}}
BLOCKS = [
    {"type": "text", "text": "hello", "_meta": {"b": 2}, "annotations": {"priority": 1.0}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///i"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "name": "n", "uri": "file:///n", "title": "t", "size": 3},
    {"type": "resource", "resource": {"uri": "file:///r", "text": "r", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "file:///r", "blob": "aGk="}},
]
REQUESTS = {
    "new": (acp_schema._New, schema.NewSessionRequest, OPENED),
    "load": (acp_schema._Load, schema.LoadSessionRequest, {"sessionId": "k", **OPENED}),
    "resume": (acp_schema._Again, schema.ResumeSessionRequest, {"sessionId": "k", **OPENED}),
    "fork": (acp_schema._Again, schema.ForkSessionRequest, {"sessionId": "k", **OPENED}),
    "close": (acp_schema._OfSession, schema.CloseSessionRequest, {"sessionId": "k", "_meta": {}}),
    "delete": (acp_schema._OfSession, schema.DeleteSessionRequest, {"sessionId": "k"}),
    "mode": (acp_schema._Mode, schema.SetSessionModeRequest, {"sessionId": "k", "modeId": "m"}),
    "option": (
        acp_schema._Option,
        schema.SetSessionConfigOptionSelectRequest,
        {"sessionId": "k", "configId": "c", "value": "v"},
    ),
    "list": (acp_schema._List, schema.ListSessionsRequest, {"cwd": "/w", "cursor": "c"}),
    "prompt": (acp_schema._Prompt, schema.PromptRequest, {"sessionId": "k", "prompt": BLOCKS}),
}
# What we do not read is not looked at: the official types drop it where it is malformed.
SHARED = ("session_id", "cwd", "mode_id", "config_id", "value", "cursor")
WRONG = st.sampled_from([None, "", "text", 0, 1.5, True, [], {}, ["x"], {"type": "text"}, [None]])


def places(value, path=()):
    """Every place in a value."""
    if path:
        yield path
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(params, path, value):
    """The value with another one at a place, or without it."""
    params = copy.deepcopy(params)
    inner = params
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return params


def read(model, params):
    """What a model makes of them; None if it refuses them."""
    try:
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError:
        return None


@pytest.mark.parametrize("name", REQUESTS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_request_is_taken_where_the_official_type_takes_it(name, data):
    ours, official, good = REQUESTS[name]
    params = good
    for _ in range(data.draw(st.integers(0, 2))):
        found = [path for path in places(params) if "_meta" not in path]
        if found:
            value = data.draw(WRONG | st.just(...))
            params = changed(params, data.draw(st.sampled_from(found)), value)
    mine, theirs = read(ours, params), read(official, params)
    assert (mine is None) == (theirs is None)
    if mine is None:
        return
    for field in SHARED:
        assert getattr(mine, field, None) == getattr(theirs, field, None)
    assert mine.meta == theirs.field_meta
    if name == "prompt":
        assert [block.type for block in mine.prompt] == [block.type for block in theirs.prompt]
        shown = [block.model_dump() for block in mine.prompt]
        for own, other in zip(shown, theirs.prompt, strict=True):
            told = other.model_dump()
            own.pop("title", None)  # what is no text is no title, and is left out where it is used
            assert own.items() <= told.items() or own["type"] == "resource"


@pytest.mark.parametrize("title", [None, 5, "", "A title"])
def test_a_link_has_its_title_where_that_is_text(title):
    link = {"type": "resource_link", "name": "n", "uri": "u", "title": title}
    theirs = read(schema.PromptRequest, {"sessionId": "k", "prompt": [link]}).prompt[0]
    call = parse_prompt({"sessionId": "k", "prompt": [link]})
    assert call.text == f"\n[{theirs.title or theirs.name}](u)\n"


def test_the_daemon_does_without_the_protocols_package():
    code = "import sys, agentd.app.daemon; sys.exit('acp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
