"""A conversation that was brought in can be gone on with, whatever its file held."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from agentd.core.message import Text
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey, TurnRequest
from agentd.engine.context import TurnPromptParts, build_prompt
from agentd.engine.rendering import render_past
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.acp.importer import Importer
from agentd.interfaces.commands.sessions import SESSIONS, SessionCommands
from agentd.testing import FakeClock, MemorySessions, MemoryWorkspace, check_messages

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


def importing(importer):
    commands = SessionCommands(Nobody(), Nobody(), Nobody(), Nobody(), Nobody(), importer)
    return methods(SESSIONS, commands)["_agentd/sessions/import"]


async def imported(lines, key=KEY) -> tuple[Row, ...]:
    clock = FakeClock()
    store = MemorySessions(clock)
    await importing(Importer(store, clock))({"key": key, "lines": lines}, Nobody())
    return (await store.load(key)).rows


def line(role, content="hi", **more):
    return {"role": role, "content": content, **more}


async def sources(*lines, key=KEY):
    return [str(row.source) for row in await imported([*lines], key)]


async def test_the_users_own_messages_are_his_and_all_else_is_tainted():
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "seen"}
    lost = {"type": "tool_result", "tool_use_id": "lost", "content": "seen"}
    lines = (
        line("user"),
        line("assistant", [call]),
        line("user", [result]),
        line("user", [lost]),
        line("notice"),
        line("user", tainted=True),
    )
    clean, outside, others = "owner", "agent tainted", "other tainted"
    assert await sources(*lines) == [clean, outside, outside, outside, outside, others]


async def test_somebody_elses_name_makes_a_message_somebody_elses():
    lines = (line("user"), line("user", name="Mallory"), line("assistant", name="Bot"))
    assert await sources(*lines) == ["owner", "other tainted", "agent tainted"]
    lines = (line("user", name="Ann"), line("user", name="Mallory"))
    assert await sources(*lines) == ["other tainted", "other tainted"]


async def test_a_name_that_all_the_users_messages_bear_is_his_own():
    result = [{"type": "tool_result", "tool_use_id": "c", "content": "seen"}]
    lines = (
        line("user", name="Ann"),
        line("assistant"),
        line("user", result),
        line("human", name="Ann"),
    )
    assert (await sources(*lines))[::3] == ["owner", "owner"]


async def test_nothing_in_a_session_of_others_is_the_owners():
    assert await sources(line("user"), key=SessionKey("group:club")) == ["other tainted"]


async def test_what_was_quoted_stays_quoted_behind_a_name():
    words = [{"type": "text", "text": "> no", "quoted": [[0, 4]]}]
    (row,) = await imported([line("user", words, name="Ann")])
    assert row.blocks == (Text("Ann: > no", ((5, 9),)),)


async def test_what_was_imported_is_announced_once_it_is_there() -> None:
    clock = FakeClock()
    store = MemorySessions(clock)
    heard = []
    act = importing(Importer(store, clock, on_import=lambda key: heard.append(key)))
    peer = Nobody()
    line = {"role": "user", "content": "My parrot is Kiki"}
    await act({"key": KEY, "lines": [line], "more": True}, peer)
    assert heard == []
    await act({"key": KEY, "lines": [line]}, peer)
    assert heard == [KEY]


async def test_a_name_that_came_with_a_file_is_from_outside_and_one_that_was_chosen_is_not() -> (
    None
):
    clock, files = FakeClock(), MemoryWorkspace()
    store = MemorySessions(clock)
    await store.create(SessionKey("chat:there"))
    act = importing(Importer(store, clock, workspace=files))
    lines = [line("user")]
    await act({"key": "chat:of a file", "lines": lines}, Nobody())
    await act({"key": "chat:chosen", "lines": lines, "chosen": True}, Nobody())
    await act({"key": "chat:there", "lines": lines}, Nobody())
    await act({"key": "main", "lines": lines}, Nobody())
    keys = ["chat:of a file", "chat:chosen", "chat:there", "main"]
    named = [await files.has_outside_name([f"sessions/{key}.jsonl"]) for key in keys]
    assert named == [True, False, False, False]


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
    scene = TurnPromptParts(
        TurnRequest(KEY, "go on", "m"), ("sys",), (), render_past(rows), "[Now: noon]", "scripted"
    )
    new = Row(len(rows) + 1, RowRole.USER, (Text("go on"),), FakeClock().now(), 1)
    check_messages(build_prompt(scene, [new]).messages)
