"""A bridge for a group chat: bound to one session, it finds nothing else of a real daemon."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import acp
import pytest
from acp import schema

from tests.e2e.harness import PATIENCE, Client, Home, Json, Refused
from tests.e2e.test_acp_client import Editor
from tests.server.test_roles import METHODS, OF_A_BOUND_ONE, OWN, PARAMS

CLUB = "group:club"
CANARY = "boathouse-4417"


@pytest.fixture
async def club(running: Home) -> Client:
    """The owner's connection to a daemon with a group, and with something that is the owner's
    alone.
    """
    owner = running.clients[0]
    meta = {"_meta": {"agentd/key": CLUB}}
    await owner.call("session/new", {"cwd": "/", "mcpServers": [], **meta})
    for target in ("memory", "user", "daily_log"):
        await owner.call("_agentd/memory/write", {"target": target, "content": f"- {CANARY}"})
    await owner.say(f"say {CANARY}", "m1")
    return owner


@asynccontextmanager
async def bridge(home: Home, editor: Editor, key: str) -> AsyncIterator[acp.ClientSideConnection]:
    """What the protocol's own package speaks through `agentd acp --bind KEY`."""
    argv = (sys.executable, "-m", "agentd", "acp", "--bind", key)
    async with acp.spawn_agent_process(editor, *argv, env=home.environ()) as (agent, _process):
        async with asyncio.timeout(PATIENCE):
            await agent.initialize(acp.PROTOCOL_VERSION)
        yield agent


async def test_the_packages_client_talks_through_a_bound_bridge_and_reaches_nothing_else(
    running: Home, club: Client
) -> None:
    editor = Editor()
    async with bridge(running, editor, CLUB) as agent, asyncio.timeout(PATIENCE):
        listed = await agent.list_sessions()
        assert [info.session_id for info in listed.sessions] == [CLUB]
        await agent.load_session(cwd="/", session_id=CLUB, mcp_servers=[])
        text = schema.TextContentBlock(type="text", text="say hello club")
        answer = await agent.prompt(session_id=CLUB, prompt=[text])
        assert answer.stop_reason == "end_turn"
        assert ("agent_message_chunk", "hello club") in editor.said()
        for refused in (
            agent.new_session(cwd="/", mcp_servers=[]),
            agent.load_session(cwd="/", session_id="main", mcp_servers=[]),
            agent.fork_session(cwd="/", session_id=CLUB),
            agent.ext_method("agentd/status", {}),
            agent.prompt(session_id="main", prompt=[text]),
            agent.set_session_mode(session_id=CLUB, mode_id="ask"),
        ):
            with pytest.raises(acp.RequestError):
                await refused
    assert CANARY not in repr(editor.shown) + repr(editor.told) + repr(editor.asked)


async def test_no_method_of_a_real_daemon_answers_a_bound_connection(
    running: Home, club: Client
) -> None:
    bound = Client(*await asyncio.open_unix_connection(str(running.socket), limit=1 << 24))
    running.clients.append(bound)
    hello: Json = {"protocolVersion": 1, "_meta": {"agentd/bind": CLUB}}
    await bound.call("initialize", hello)
    sessions = await club.call("_agentd/sessions/list")
    reached = []
    for name in METHODS:
        if name in OF_A_BOUND_ONE:
            continue
        answer = bound.start(name, {**PARAMS, "sessionId": CLUB})
        await asyncio.wait([answer])
        if not str(answer.exception()).startswith(f"there is no method {name!r}"):
            reached.append(name)
    assert reached == [], f"of {len(METHODS)} methods, {len(OWN)} of them our own"
    for name in sorted(OF_A_BOUND_ONE - {"initialize", "authenticate", "session/list"}):
        with pytest.raises(Refused) as refused:
            await bound.call(name, {**PARAMS, "sessionId": "main"})
        assert refused.value.code == "not_found"
    assert await club.call("_agentd/sessions/list") == sessions
    assert CANARY not in "".join(bound.lines)
    # And the control: what a connection of the owner's reads does hold it.
    await club.call("_agentd/memory/read", {"path": "MEMORY.md"})
    assert CANARY in "".join(club.lines)


async def test_a_bridge_without_a_possible_session_ends_at_once(running: Home) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentd", "acp", "--bind", "nonsense"),
        env=running.environ(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        call = {"jsonrpc": "2.0", "id": 1, "method": "_agentd/status"}
        out, err = await process.communicate(json.dumps(call).encode() + b"\n")
    assert (process.returncode, out) == (2, b"")
    assert b"is no session key" in err


COPIES = (
    "Copy-of-MEMORY.md",
    "old_USER.md",
    "20260131.md",
    "journal/2026/01/31.md",
    "projects/x.md",
)


async def test_a_group_finds_what_is_shared_and_no_byte_of_the_rest(
    running: Home, club: Client
) -> None:
    for path in COPIES:
        file = running.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {path}\n{CANARY}\n")
    (running.workspace / "shared" / "boat.md").write_text("The boat is blue.\n")
    (running.workspace / "shared" / "m.md").hardlink_to(running.workspace / "MEMORY.md")
    await club.call("_agentd/memory/index")
    hidden = ("MEMORY.md", "USER.md", "SOUL.md", "shared/m.md", "sessions/main.jsonl", *COPIES)
    steps = [f"read {path}" for path in (*hidden, "shared/boat.md")]
    steps += [f"search {json.dumps({'query': query})}" for query in ("boathouse", "boat")]
    steps += ["put projects/y.md theirs", "say done by club"]
    bound = Client(*await asyncio.open_unix_connection(str(running.socket), limit=1 << 24))
    running.clients.append(bound)
    await bound.call("initialize", {"protocolVersion": 1, "_meta": {"agentd/bind": CLUB}})
    assert await bound.say(f"do {'; '.join(steps)}", "c1", CLUB) == "done by club"
    told = "".join(bound.lines)
    asked = [json.dumps(body) for body in running.requests()]
    theirs = [body for body in asked if "done by club" in body]
    assert "The boat is blue." in theirs[-1]
    assert CANARY not in told + "".join(theirs)
    assert theirs[-1].count("No such file: ") == len(hidden)
    assert not (running.workspace / "projects" / "y.md").exists()
    # And the control: in the owner's session the same steps do bring it up.
    await club.say(f"do {'; '.join(steps[:2])}; say done by me", "o1")
    assert CANARY in "".join(
        json.dumps(body) for body in running.requests() if "by me" in str(body)
    )
