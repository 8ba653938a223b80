"""A client written with the protocol's own package, and nothing of ours, is a client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import acp
import pytest
from acp import schema

from tests.e2e.harness import PATIENCE, Home
from tests.waiting import until

Asked = list[schema.ToolCallUpdate]


@dataclass
class Editor(acp.Client):
    """What an editor does: it shows, and it answers questions by the kind of an option."""

    answer: str = "allow_once"
    shown: list[Any] = field(default_factory=list)
    asked: Asked = field(default_factory=list)
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        chosen = next(option for option in options if option.kind == self.answer)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.shown.append(update)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.told.append((method, params))

    def said(self) -> list[tuple[str, ...]]:
        """What the user saw, chunks of one speaker put together."""
        return list(_joined(filter(None, map(_seen, self.shown))))


def _seen(update: Any) -> tuple[str, ...] | None:
    match update:
        case schema.UserMessageChunk() | schema.AgentMessageChunk():
            return update.session_update, update.content.text
        case schema.ToolCallStart():
            return "call", update.tool_call_id, update.title, update.kind, str(update.raw_input)
        case schema.ToolCallProgress():
            words = "".join(part.content.text for part in update.content)
            return "result", update.tool_call_id, update.status, words
    return None


def _joined(seen: Iterable[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    held: tuple[str, ...] | None = None
    for one in seen:
        if held and held[0] == one[0] and one[0].endswith("_chunk"):
            held = (held[0], held[1] + one[1])
            continue
        if held:
            yield held
        held = one
    if held:
        yield held


@asynccontextmanager
async def connected(home: Home, editor: Editor) -> AsyncIterator[acp.ClientSideConnection]:
    """The editor's end of `agentd acp`, introduced."""
    argv = (sys.executable, "-m", "agentd", "acp")
    async with acp.spawn_agent_process(editor, *argv, env=home.environ()) as (agent, process):
        async with asyncio.timeout(PATIENCE):
            hello = await agent.initialize(
                acp.PROTOCOL_VERSION,
                client_capabilities=schema.ClientCapabilities(field_meta={"agentd/notify": True}),
                client_info=schema.Implementation(name="test", version="1"),
            )
        assert hello.protocol_version == acp.PROTOCOL_VERSION
        assert hello.agent_info
        assert hello.agent_info.name == "agentd"
        assert hello.agent_capabilities
        assert hello.agent_capabilities.load_session
        yield agent
    assert process.returncode == 0


async def prompted(
    agent: acp.ClientSideConnection, session: str, text: str, editor: Editor | None = None
) -> Any:
    """The answer to one message, which an editor shows itself."""
    if editor:
        editor.shown.append(acp.update_user_message_text(text))
    async with asyncio.timeout(PATIENCE):
        return await agent.prompt(session, [acp.text_block(text)])


async def test_an_answer_streams_and_a_loaded_session_shows_the_same_again(running: Home) -> None:
    first, second = Editor(), Editor()
    async with connected(running, first) as agent:
        made = await agent.new_session(cwd="/", mcp_servers=[])
        key = made.session_id
        assert key.startswith("chat:")
        answer = await prompted(agent, key, "slow 5", first)
        assert answer.stop_reason == "end_turn"
        chunks = [u for u in first.shown if isinstance(u, schema.AgentMessageChunk)]
        assert len(chunks) > 1
        assert "".join(c.content.text for c in chunks) == "word0 word1 word2 word3 word4"
        await prompted(agent, key, "do write tea; read USER.md; say both done", first)
        accepted = [params["seq"] for method, params in first.told if "accepted" in method]
        assert accepted == sorted(accepted)
        assert len(accepted) == 2
    async with connected(running, second) as agent:
        async with asyncio.timeout(PATIENCE):
            await agent.load_session(cwd="/", session_id=key, mcp_servers=[])
        assert second.said() == first.said()
        kinds = [seen[0] for seen in second.said()]
        assert (kinds.count("call"), kinds.count("result")) == (2, 2)


@pytest.mark.parametrize(
    ("answer", "status", "content"),
    [("allow_once", "completed", "- tea at five\n"), ("reject_once", "failed", None)],
)
async def test_a_protected_file_changes_after_a_yes_only(
    running: Home, answer: str, status: str, content: str | None
) -> None:
    editor = Editor(answer)
    memory = running.workspace / "MEMORY.md"
    before = memory.read_text("utf-8")
    async with connected(running, editor) as agent:
        made = await agent.new_session(cwd="/", mcp_servers=[])
        ended = await prompted(agent, made.session_id, "do add memory - tea at five; say so be it")
    assert ended.stop_reason == "end_turn"
    [question] = editor.asked
    [diff] = question.content or []
    assert isinstance(diff, schema.FileEditToolCallContent)
    assert (diff.path, diff.old_text) == (str(memory), before)
    assert diff.new_text == f"{before}- tea at five\n"
    [result] = [update for update in editor.shown if isinstance(update, schema.ToolCallProgress)]
    assert result.status == status
    assert memory.read_text("utf-8") == before + (content or "")


async def test_a_running_turn_can_be_cancelled_and_the_session_goes_on(running: Home) -> None:
    editor = Editor()
    async with connected(running, editor) as agent:
        key = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            turn = group.create_task(prompted(agent, key, "slow 500"))
            await until(lambda: len(editor.said()) == 1, "the first words are shown")
            await agent.cancel(key)
        assert turn.result().stop_reason == "cancelled"
        assert "word499" not in editor.said()[0][1]
        assert (await prompted(agent, key, "say still here")).stop_reason == "end_turn"
        assert editor.said()[-1][1].endswith("still here")


async def test_sessions_are_listed_and_resumed_without_a_replay(running: Home) -> None:
    first, second = Editor(), Editor()
    async with connected(running, first) as agent:
        key = (await agent.new_session(cwd="/work", mcp_servers=[])).session_id
        await prompted(agent, key, "say one")
    async with connected(running, second) as agent:
        listed = {s.session_id: s for s in (await agent.list_sessions()).sessions}
        assert set(listed) == {"main", key}
        assert (listed[key].cwd, listed[key].title) == ("/work", "say one")
        elsewhere = await agent.list_sessions(cwd="/elsewhere")
        assert [s.session_id for s in elsewhere.sessions] == ["main"]
        await agent.resume_session(session_id=key, cwd="/work")
        assert second.said() == []
        await prompted(agent, key, "say two")
        assert second.said() == [("agent_message_chunk", "two")]


async def test_what_fails_is_told_as_the_protocol_tells_it(running: Home) -> None:
    async with connected(running, Editor()) as agent:
        with pytest.raises(acp.RequestError) as unknown:
            await agent.load_session(cwd="/", session_id="chat:never-made", mcp_servers=[])
        assert (unknown.value.code, unknown.value.data["code"]) == (-32002, "not_found")
        key = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        with pytest.raises(acp.RequestError) as failed:
            await prompted(agent, key, "fail 401")
        assert failed.value.code == -32010
        assert failed.value.data["code"].startswith("provider_")
        with pytest.raises(acp.RequestError) as absent:
            await agent.ext_method("agentd/no-such-thing", {})
        assert absent.value.code == -32601
        status = await agent.ext_method("agentd/status", {})
        assert status["provider"]["kind"] == "anthropic"
