"""Tools of another program, called by the daemon as a model asks for them."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentd.app.restore import restore
from agentd.core.paths import daemon_places
from tests.e2e.harness import Client, Daemon, Home
from tests.mcp.servers import ROGUE
from tests.waiting import until, until_told

Json = dict[str, Any]


def configure(home: Home, *flags: str, more: str = "") -> Path:
    """A server that writes what it is asked to the file that is returned."""
    log = home.root / "rogue.log"
    command = json.dumps([sys.executable, ROGUE, *flags])
    home.configure(
        "[mcp.servers.rogue]\n"
        f"command = {command}\n"
        f"env = {{ ROGUE_LOG = {json.dumps(str(log))} }}\n"
        f"{more}"
    )
    return log


def calls(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("call")]


async def known(home: Home) -> tuple[Daemon, Client]:
    """A daemon that has got to know the server, and a client of it."""
    daemon = await home.start()
    client = await daemon.connect()

    async def tools() -> object:
        return (await client.call("_agentd/status"))["mcp"][0]["tools"]

    await until_told(tools, "the server's tools are known")
    return daemon, client


async def test_the_user_is_asked_and_the_answer_is_text_from_outside(home: Home) -> None:
    log = configure(home)
    daemon, client = await known(home)
    client.chooses = "allow_once"
    use = 'use rogue__echo {"text": "hello"}'
    assert await client.say(f"do {use}; {use}; say done", "m1") == "done"
    assert calls(log) == ['call echo {"text": "hello"}'] * 2
    told = json.dumps(home.requests()[-1]["messages"])
    assert "rogue.echo answered:" in told
    first, second = (json.dumps(one) for one in client.asked)
    assert "Call rogue.echo" in first
    assert "text from outside may have chosen this call" not in first
    assert "text from outside may have chosen this call" in second
    names = {tool["name"] for tool in home.requests()[0]["tools"]}
    assert {"rogue__echo", "rogue__write", "memory_search"} <= names
    rows = await client.export()
    assert [row["role"] for row in rows if "tool_result" in json.dumps(row)]
    (server,) = (await client.call("_agentd/status"))["mcp"]
    assert (server["state"], server["tools"], server["reason"]) == ("running", 2, "")
    await daemon.stop()


async def test_nothing_is_called_without_a_yes(home: Home) -> None:
    log = configure(home)
    daemon, client = await known(home)
    use = 'use rogue__write {}; use tool_call {"tool": "rogue.write", "input": {}}'
    assert await client.say(f"do {use}; say done", "m1") == "done"
    assert len(client.asked) == 2
    assert calls(log) == []
    assert "The user did not allow rogue.write" in json.dumps(home.requests()[-1]["messages"])
    await daemon.stop()


async def test_an_idle_daemon_starts_no_server_that_it_knows(home: Home) -> None:
    log = configure(home)
    daemon, _ = await known(home)
    await daemon.stop()
    before = log.read_text()
    daemon = await home.start()
    client = await daemon.connect()
    (server,) = (await client.call("_agentd/status"))["mcp"]
    assert (server["state"], server["tools"], server["starts"]) == ("idle", 2, 0)
    await client.say("say hello", "m1")
    assert log.read_text() == before
    await daemon.stop()


async def test_a_server_that_does_not_start_is_told_by_status_and_doctor(home: Home) -> None:
    configure(home, "stillborn")
    daemon = await home.start()
    client = await daemon.connect()
    status: Json = {"mcp": [{}]}
    while not status["mcp"][0].get("reason"):
        status = await client.call("_agentd/status")
    (problem,) = [one for one in status["problems"] if one["code"] == "mcp_died"]
    assert "no luck at all" in problem["text"]
    found = (await client.call("_agentd/doctor"))["checks"]
    (check,) = [one for one in found if one["code"] == "mcp"]
    assert check["level"] == "warn"
    assert "rogue: paused, died, 0 tools" in check["text"]
    assert await client.say("say hello", "m1") == "hello"
    await daemon.stop()


async def test_a_beat_calls_what_is_listed_for_it_and_nothing_else(home: Home) -> None:
    log = configure(home, more='silent = ["echo"]\n')
    daemon, client = await known(home)
    use = 'use look {"entry": "do use"}; use tool_call {"tool": "rogue.write", "input": {}}; '
    use += 'use rogue__echo {"text": "seen"}; use rogue__echo {"text": "more"}'
    (home.workspace / "HEARTBEAT.md").write_text(f"- [ ] do {use}; say HEARTBEAT_OK\n")
    first = await client.call("_agentd/heartbeat/run", {"force": True})
    # The second call reads, by the word of the server and of the owner, who has listed it; the turn
    # about the whole checklist made the same calls in vain.
    looked = ['call echo {"text": "seen"}', 'call echo {"text": "more"}']
    assert calls(log) == looked
    beat = home.requests()[-1]
    assert {t["name"] for t in beat["tools"] if "__" in t["name"]} == {"rogue__echo"}
    asked = len(home.requests())
    second = await client.call("_agentd/heartbeat/run", {"force": True})
    assert calls(log) == looked * 2
    assert len(home.requests()) == asked
    assert (first["reason"], second["reason"], second["tokens"]) == ("ack", "unchanged", 0)
    assert client.asked == []
    await daemon.stop()


async def test_a_call_that_is_cancelled_ends_and_the_server_is_told(home: Home) -> None:
    log = configure(home, "hang", more='permission = "allow"\n')
    daemon, client = await known(home)
    turn = client.prompt('do use rogue__echo {"text": "x"}; say done', "m1")
    await until(lambda: calls(log), "the server is called")
    client.notify("session/cancel", {"sessionId": "main"})
    assert (await turn)["stopReason"] == "cancelled"
    await until(lambda: "cancelled" in log.read_text(), "the server hears of it")
    assert "What it has done by then is unknown" in json.dumps(await client.export())
    await daemon.stop()


async def test_servers_end_with_the_daemon(home: Home) -> None:
    configure(home, "deaf")
    daemon, _ = await known(home)
    servers = [path for path in Path("/proc").glob("[0-9]*") if _runs(path, home)]
    assert servers
    await daemon.stop()
    await until(lambda: not any(_runs(path, home) for path in servers), "they have ended")


def _runs(path: Path, home: Home) -> bool:
    """Whether a process is a server of this home."""
    try:
        is_ours = str(home.root).encode() in (path / "environ").read_bytes()
        return is_ours and b"rogue.py" in (path / "cmdline").read_bytes()
    except OSError:
        return False


async def test_those_who_watch_see_how_far_a_call_is(home: Home) -> None:
    configure(home, "slow", more='permission = "allow"\n')
    daemon, client = await known(home)
    assert await client.say('do use rogue__echo {"text": "x"}; say done', "m1") == "done"
    frames = [json.loads(line) for line in client.lines]
    updates = [f["params"]["update"] for f in frames if f.get("method") == "session/update"]
    calls = [one for one in updates if one["sessionUpdate"] == "tool_call_update"]
    assert [one["status"] for one in calls] == ["in_progress", "completed"]
    assert calls[0]["content"][0]["content"]["text"].startswith("1 of 99 xxx")
    await daemon.stop()


async def test_what_was_known_of_a_server_comes_back_with_a_restore(home: Home) -> None:
    program = home.root.parent / f"{home.root.name}.py"
    program.write_text(Path(ROGUE).read_text())
    home.configure(f"[mcp.servers.rogue]\ncommand = {json.dumps([sys.executable, str(program)])}\n")
    daemon, client = await known(home)
    file = home.root.parent / f"{home.root.name}.tar.gz"
    await client.call("_agentd/backup", {"file": str(file)})
    await daemon.stop()
    program.write_text(program.read_text().replace("Says it again.", "Says it to all."))
    shutil.rmtree(home.root / "state")
    places = daemon_places(home.environ())
    now = datetime.now(UTC)
    restore(file, places, home.environ(), now, force=True, agree=lambda strange: None)
    daemon, client = await known(home)
    client.chooses = "allow_once"
    assert await client.say('do use rogue__echo {"text": "a"}; say done', "m1") == "done"
    assert "Says it to all." in json.dumps(client.asked)
    assert "Says it again." in json.dumps(client.asked)
    program.unlink()
    file.unlink()
    await daemon.stop()
