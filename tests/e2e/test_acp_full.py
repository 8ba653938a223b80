"""What a client sets, copies and closes, through `agentd acp` and a daemon with a model behind
it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import acp
import pytest
from acp import schema

from tests.e2e.harness import PATIENCE, Home
from tests.e2e.test_acp_client import Editor, connected, prompted
from tests.waiting import until


async def test_mode_and_effort_outlive_the_client_and_count_in_the_next_turn(running: Home) -> None:
    editor = Editor()
    async with connected(running, editor) as agent:
        made = await agent.new_session(cwd="/", mcp_servers=[])
        key = made.session_id
        assert made.modes
        assert made.modes.current_mode_id == "auto"
        await prompted(agent, key, "do write tea; say one")
        assert editor.asked == []
        await agent.set_session_mode(session_id=key, mode_id="ask")
        options = await agent.set_config_option(session_id=key, config_id="effort", value="low")
        assert {o.id: o.current_value for o in options.config_options}["effort"] == "low"
    editor = Editor()
    async with connected(running, editor) as agent:
        async with asyncio.timeout(PATIENCE):
            resumed = await agent.resume_session(session_id=key, cwd="/")
        assert resumed.modes
        assert resumed.modes.current_mode_id == "ask"
        await prompted(agent, key, "do write milk; say two")
    assert len(editor.asked) == 1
    bodies = running.requests()
    assert "output_config" not in bodies[0]
    assert bodies[-1]["output_config"] == {"effort": "low"}


async def test_a_fork_remembers_and_leaves_the_first_alone(running: Home) -> None:
    async with connected(running, Editor()) as agent:
        key = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        await prompted(agent, key, "say the first")
        fork = await agent.fork_session(session_id=key, cwd="/")
        await prompted(agent, fork.session_id, "say the second")
        texts = str(running.requests()[-1]["messages"])
        assert "say the first" in texts
        listed = {s.session_id for s in (await agent.list_sessions()).sessions}
        assert listed == {"main", key, fork.session_id}
        await agent.close_session(session_id=fork.session_id)
        exported = await agent.ext_method("agentd/sessions/export", {"key": key})
        assert "the second" not in str(exported)


async def test_closing_a_session_stops_its_turn(running: Home) -> None:
    editor = Editor()
    async with connected(running, editor) as agent:
        key = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            turn = group.create_task(prompted(agent, key, "slow 500"))
            await until(lambda: len(editor.said()) == 1, "the first words are shown")
            await agent.close_session(session_id=key)
        assert turn.result().stop_reason == "cancelled"


async def test_the_context_in_use_and_the_commands_are_told(running: Home) -> None:
    editor = Editor()
    async with connected(running, editor) as agent:
        key = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        await prompted(agent, key, "say one")
        await until(lambda: any(isinstance(u, schema.UsageUpdate) for u in editor.shown), "usage")
        usages = [u for u in editor.shown if isinstance(u, schema.UsageUpdate)]
        assert 0 < usages[0].used < usages[0].size
        facts = running.workspace / "memory" / "facts.md"
        for command, is_kept in (
            ("/remember the boiler code is 4417", True),
            ("/heartbeat", True),
            ("/help", True),
            ("/forget boiler", False),
        ):
            assert (await prompted(agent, key, command)).stop_reason == "end_turn"
            assert ("the boiler code is 4417" in facts.read_text("utf-8")) is is_kept
        with pytest.raises(acp.RequestError):
            await prompted(agent, key, "/model no-such-model")


async def test_the_sdk_is_loaded_for_a_session_and_not_for_a_question(home: Home) -> None:
    daemon = await home.start_alone()
    client = await daemon.connect()
    maps = Path(f"/proc/{daemon.process.pid}/maps")
    if not os.access(maps, os.R_OK):
        pytest.skip("only root may look into the memory of the daemon")
    await client.call("_agentd/status")
    await client.call("session/list")
    assert "jiter" not in maps.read_text("utf-8")
    await client.call("session/new", {"cwd": "/", "mcpServers": []})
    await until(lambda: "jiter" in maps.read_text("utf-8"), "the SDK is loaded")
    assert home.requests() == []
    await daemon.stop()


async def test_required_files_are_looked_for_again_after_a_compaction(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.say("say one", "m1")
    (home.workspace / "SOUL.md").unlink()
    assert "required_files_missing" not in home.complaints()
    await client.prompt("/new", "m2")
    await until(lambda: "required_files_missing" in home.complaints(), "the audit is told")
    await daemon.stop()
