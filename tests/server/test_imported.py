"""A conversation that was brought in can be gone on with, whatever its file held."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from agentd.domain.message import Text
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import SessionKey, TurnRequest
from agentd.engine.prompt import Scene, build
from agentd.server.methods.sessions import SessionMethods
from agentd.testing import FakeClock, MemorySessions, check_messages

KEY = SessionKey("chat:old")
IDS = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["", "  ", "hello", "</data>"])
TEXT = st.builds(lambda text: {"type": "text", "text": text}, WORDS)
USE = st.builds(lambda id_: {"type": "tool_use", "id": id_, "name": "look", "input": {}}, IDS)
RESULT = st.builds(
    lambda id_, text: {"type": "tool_result", "tool_use_id": id_, "content": text}, IDS, WORDS
)
THOUGHT = st.just({"type": "opaque", "provider": "else", "raw": {"type": "thinking"}})
LINE = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "human", "assistant", "summary", "notice", "system"]),
    WORDS | st.lists(TEXT | USE | RESULT | THOUGHT, max_size=4),
)


class Nobody:
    """Stands for every part that an import has no use for, and for the client."""


async def imported(lines) -> tuple[Row, ...]:
    clock = FakeClock()
    store = MemorySessions(clock)
    methods = SessionMethods(store, Nobody(), Nobody(), Nobody(), clock)
    await methods.routes()["_agentd/sessions/import"]({"key": KEY, "lines": lines}, Nobody())
    return (await store.load(KEY)).rows


async def test_what_was_imported_is_announced_once_it_is_there() -> None:
    clock = FakeClock()
    store = MemorySessions(clock)
    heard = []
    methods = SessionMethods(
        store, Nobody(), Nobody(), Nobody(), clock, on_import=lambda key: heard.append(key)
    )
    act, peer = methods.routes()["_agentd/sessions/import"], Nobody()
    line = {"role": "user", "content": "My parrot is Kiki"}
    await act({"key": KEY, "lines": [line], "more": True}, peer)
    assert heard == []
    await act({"key": KEY, "lines": [line]}, peer)
    assert heard == [KEY]


@given(st.lists(LINE, min_size=1, max_size=10))
@example(
    [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
        },
        {"role": "user", "content": []},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": "seen"}],
        },
    ]
)
def test_its_next_request_is_one_that_a_service_takes(lines) -> None:
    rows = asyncio.run(imported(lines))
    scene = Scene(TurnRequest(KEY, "go on", "m"), ("sys",), (), rows, "", "[Now: noon]", "scripted")
    new = Row(len(rows) + 1, RowRole.USER, (Text("go on"),), FakeClock().now(), 1)
    check_messages(build(scene, [new]).messages)
