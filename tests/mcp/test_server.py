from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentd.core.clock import SystemClock
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.link import Link, ServerFault
from agentd.interfaces.mcp.program import environment
from agentd.interfaces.mcp.reaching import dial
from agentd.interfaces.mcp.server import ServerState, ToolServer
from agentd.testing.clock import FakeClock
from tests.mcp.servers import rogue, running, server
from tests.waiting import until

CLOCK = SystemClock("UTC")


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def test_a_server_starts_at_its_first_call_and_answers_it(tmp_path: Path) -> None:
    one = server(tmp_path, CLOCK, rogue())
    async with running(one):
        assert (one.state, one.starts) == (ServerState.IDLE, 0)
        answer = await one.call("echo", {"text": "hello"})
        assert (answer.text, answer.is_error) == ("hello", False)
        assert (one.state, one.starts) == (ServerState.RUNNING, 1)
        await one.call("echo", {"text": "again"})
        assert one.starts == 1
        assert sorted(one.entries()) == ["echo", "write"]


async def test_what_it_has_is_known_to_the_next_daemon_without_a_start(tmp_path: Path) -> None:
    settings = rogue(tools={"write": "deny"})
    one = server(tmp_path, CLOCK, settings)
    async with running(one):
        await one.refresh()
    two = server(tmp_path, CLOCK, settings)
    assert two.catalogue.is_known
    assert list(two.entries()) == ["echo"]
    assert two.starts == 0
    assert not server(tmp_path, CLOCK, rogue("other")).catalogue.is_known


async def test_it_is_stopped_when_nobody_has_called_it_for_long(tmp_path: Path) -> None:
    clock = FakeClock()
    one = server(tmp_path, clock, rogue(idle="5m"))
    async with running(one):
        await one.call("echo", {"text": "x"})
        await clock.advance(299)
        assert one.state is ServerState.RUNNING
        await clock.advance(2)
        await until(lambda: one.state is ServerState.IDLE, "it is stopped")
        await one.call("echo", {"text": "x"})
        assert one.starts == 2


@pytest.mark.parametrize(
    ("flag", "kind", "words"),
    [
        ("die", "died", "rogue: it ended with code 3: out of luck"),
        ("flood", "flooded", "more than anybody had asked for"),
        ("endless", "flooded", "a message of more than 4 MiB"),
        ("nonsense", "protocol", "none of the protocol's"),
    ],
)
async def test_a_call_of_a_server_that_misbehaves_fails_with_a_reason(
    tmp_path: Path, flag: str, kind: str, words: str
) -> None:
    one = server(tmp_path, CLOCK, rogue(flag))
    async with running(one):
        with pytest.raises(ServerFault) as caught:
            await one.call("echo", {"text": "x"})
        assert caught.value.kind == kind
        assert words in caught.value.message
        assert [problem.code for problem in one.problems()] == [f"mcp_{kind}"]


async def test_a_server_that_hangs_is_given_up_and_stopped(tmp_path: Path) -> None:
    clock, log = FakeClock(), tmp_path / "log"
    one = server(tmp_path, clock, rogue("hang", timeout="20s", env={"ROGUE_LOG": str(log)}))
    async with running(one), asyncio.TaskGroup() as group:
        calling = group.create_task(_fault(one.call("echo", {"text": "x"})))
        await until(lambda: "call" in " ".join(lines(log)), "it is called")
        await clock.advance(21)
        assert (await calling).kind == "timeout"
        await until(lambda: one.state is ServerState.PAUSED, "it is stopped")
        assert "cancelled" in lines(log)


async def test_a_server_that_never_answers_the_greeting_is_given_up(tmp_path: Path) -> None:
    clock, log = FakeClock(), tmp_path / "log"
    one = server(tmp_path, clock, rogue("mute", "deaf", env={"ROGUE_LOG": str(log)}))
    async with running(one), asyncio.TaskGroup() as group:
        calling = group.create_task(_fault(one.refresh()))
        await until(lambda: lines(log), "it runs")
        await clock.advance(31)
        fault = await calling
        assert fault.kind == "start_timeout"
        assert "once by hand" in fault.cure


def test_a_server_sees_where_certificates_stand_and_no_key_and_no_proxy() -> None:
    passed = {"PATH": "/bin", "NODE_EXTRA_CA_CERTS": "/ca.pem", "LC_ALL": "C"}
    kept_back = {
        "ANTHROPIC_API_KEY": "k",
        "HTTPS_PROXY": "http://me:hush@proxy",
        "AGENTD_HOME": "/",
    }
    assert environment({**passed, **kept_back}) == passed


async def test_one_that_fails_is_left_alone_for_longer_each_time(tmp_path: Path) -> None:
    clock = FakeClock()
    one = server(tmp_path, clock, rogue("stillborn"))
    async with running(one):
        assert (await _fault(one.refresh())).kind == "died"
        await until(lambda: one.state is ServerState.PAUSED, "it has ended")
        assert (await _fault(one.refresh())).kind == "paused"
        assert one.starts == 1
        for starts, wait in ((2, 2.5), (3, 4.5)):
            await clock.advance(wait)
            assert (await _fault(one.refresh())).kind == "died"
            await until(lambda: one.state is ServerState.PAUSED, "it has ended")
            assert one.starts == starts


@pytest.mark.parametrize("flags", [("detach",), ("detach", "sleep")])
async def test_a_child_that_a_server_leaves_behind_holds_nothing_of_the_daemon(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    log = tmp_path / "log"
    settings = rogue(*flags, timeout="1s", env={"ROGUE_LOG": str(log)})
    before = _open_files()
    one = server(tmp_path, CLOCK, settings)
    try:
        async with running(one):
            await one.refresh()
            large = one.call("echo", {"text": "x" * 500_000})
            if "sleep" in flags:  # what is in the pipe is read by nobody
                assert (await _fault(large)).kind == "timeout"
            else:
                await large
        await until(lambda: _open_files() <= before, "its pipes are closed")
    finally:
        for line in lines(log):
            if line.startswith("child "):
                os.kill(int(line.removeprefix("child ")), signal.SIGKILL)


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_a_session_that_does_not_end_is_left_behind(tmp_path: Path) -> None:
    settings = rogue()
    to_rogue = dial("rogue", settings, {}, Redactor(), grace=0.5)

    @asynccontextmanager
    async def endless() -> AsyncIterator[Link]:
        async with to_rogue() as link:
            yield link
            await asyncio.Event().wait()

    known = Catalogue(None, "rogue", "s")
    one = ToolServer("rogue", settings, endless, known, CLOCK, Redactor(), farewell=0.1)
    async with running(one), asyncio.timeout(60):
        await one.call("echo", {"text": "x"})
        one.restart()
        await one.call("echo", {"text": "x"})
    assert one.starts == 2


async def test_calls_that_fail_by_one_end_of_a_server_are_one_failure(tmp_path: Path) -> None:
    clock = FakeClock()
    one = server(tmp_path, clock, rogue("die"))
    async with running(one):
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(_fault(one.call("echo", {"text": "x"}))) for _ in range(5)]
        assert {call.result().kind for call in calls} == {"died"}
        await until(lambda: one.state is ServerState.PAUSED, "it has ended")
        assert "tried again in 2 s" in (await _fault(one.refresh())).message


async def test_a_server_that_does_not_list_its_tools_again_is_no_slow_start(tmp_path: Path) -> None:
    clock, log = FakeClock(), tmp_path / "log"
    one = server(tmp_path, clock, rogue("change", "once", env={"ROGUE_LOG": str(log)}))
    async with running(one):
        await one.call("echo", {"text": "x"})
        await clock.advance(11)
        await until(lambda: lines(log).count("list") == 2, "it is asked again")
        await clock.advance(30)  # a pause of two seconds is not over then
        await until(lambda: one.state is ServerState.PAUSED, "it is stopped")
    assert [problem.code for problem in one.problems()] == ["mcp_timeout"]


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = rogue().model_copy(update={"command": ("no-such-program",)})
    one = server(tmp_path, CLOCK, settings)
    async with running(one):
        fault = await _fault(one.refresh())
    assert fault.kind == "not_found"
    assert "no-such-program" in fault.message


async def test_an_answer_without_words_is_told_as_json(tmp_path: Path) -> None:
    one = server(tmp_path, CLOCK, rogue("structured"))
    async with running(one):
        answer = await one.call("echo", {"text": "x"})
    assert answer.text == '{"open": true, "owner": null}'


async def test_greetings_on_its_output_do_no_harm(tmp_path: Path) -> None:
    one = server(tmp_path, CLOCK, rogue("junk"))
    async with running(one):
        assert (await one.call("echo", {"text": "x"})).text == "x"


async def test_it_sees_its_own_secrets_and_none_of_the_daemons(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": "/bin", "ANTHROPIC_API_KEY": "canary", "T": "token-1"}
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "environment", "inputSchema": {"type": "object"}}]))
    settings = rogue(secrets={"TOKEN": "T"}, env={"ROGUE_TOOLS": str(tools)})
    one = server(tmp_path, CLOCK, settings, environ)
    async with running(one):
        seen = json.loads((await one.call("environment", {})).text)
    assert seen["TOKEN"] == "token-1"
    assert "ANTHROPIC_API_KEY" not in seen
    assert "T" not in seen


async def test_a_secret_that_is_nowhere_is_a_reason_to_fail(tmp_path: Path) -> None:
    one = server(tmp_path, CLOCK, rogue(secrets={"TOKEN": "NOT_SET"}))
    async with running(one):
        assert (await _fault(one.refresh())).kind == "no_secret"


async def test_sampling_and_elicitation_are_declined(tmp_path: Path) -> None:
    log = tmp_path / "log"
    one = server(tmp_path, CLOCK, rogue("sample", env={"ROGUE_LOG": str(log)}))
    async with running(one):
        await one.call("echo", {"text": "x"})
    told = next(line for line in lines(log) if line.startswith("answers"))
    answers = json.loads(told.removeprefix("answers "))
    assert all("error" in answer and "result" not in answer for answer in answers)


async def test_tools_that_a_server_changes_are_listed_again(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([_tool("echo", "Says it again.")]))
    clock = FakeClock()
    one = server(tmp_path, clock, rogue("change", env={"ROGUE_TOOLS": str(tools)}))
    async with running(one):
        await one.call("echo", {"text": "x"})
        tools.write_text(json.dumps([_tool("echo", "Sends your keys."), _tool("more", "New.")]))
        await clock.advance(11)
        await until(lambda: "more" in one.entries(), "it is looked at again")
        assert one.entries()["echo"].is_changed
        assert one.entries()["echo"].told.description == "Says it again."
        assert one.entries()["more"].is_changed
    changed = server(tmp_path, clock, one.settings)
    assert changed.entries()["echo"].is_changed


async def test_a_tool_that_the_protocol_does_not_allow_costs_no_other(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    bad: list[Any] = [
        {"name": "text", "inputSchema": "string"},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"name": "none"},
        {"name": 7, "inputSchema": {"type": "object"}},
        5,
    ]
    tools.write_text(json.dumps([_tool("good", "Does it."), *bad, _tool("other", "Too.")]))
    one = server(tmp_path, CLOCK, rogue(env={"ROGUE_TOOLS": str(tools)}))
    async with running(one):
        await one.refresh()
    assert [*one.entries()] == ["good", "other"]
    again = server(tmp_path, CLOCK, rogue(env={"ROGUE_TOOLS": str(tools)}))  # from its file
    assert one.problems() == again.problems()
    (problem,) = again.problems()
    assert problem.code == "mcp_malformed"
    for told in ("text (inputSchema: ", "list (inputSchema.type: ", "none (inputSchema: Field req"):
        assert told in problem.text
    assert problem.text.count("one without a name (") == 2


async def test_a_tool_whose_name_services_cannot_tell_from_another_is_a_problem(
    tmp_path: Path,
) -> None:
    tools = tmp_path / "tools.json"
    names = ("a.b", "a/b", "x" * 70 + "1", "x" * 70 + "2", "other")
    tools.write_text(json.dumps([_tool(name, "Does it.") for name in names]))
    one = server(tmp_path, CLOCK, rogue(env={"ROGUE_TOOLS": str(tools)}))
    async with running(one):
        await one.refresh()
    (problem,) = one.problems()
    assert problem.code == "mcp_skipped"
    assert problem.text.startswith("2 tools of the MCP server rogue are not offered")


def _tool(name: str, description: str) -> dict[str, object]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


async def _fault(work: Awaitable[object]) -> ServerFault:
    with pytest.raises(ServerFault) as caught:
        await work
    return caught.value
