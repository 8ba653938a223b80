"""Nobody hears what a silent turn says."""

from __future__ import annotations

import json

from tests.e2e.harness import Home, texts
from tests.e2e.model_server import CANARY
from tests.waiting import until


async def test_a_flush_reaches_no_client_no_transcript_and_no_log(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    watcher = await daemon.connect()
    await watcher.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    for number in range(4):
        assert await client.say(f"say answer {number}", f"m{number}") == f"answer {number}"
    report = await client.call("_agentd/sessions/compact", {"key": "main"})
    assert (report["flushed"], report["compacted"]) == (True, True)
    assert home.notes().count(f"{CANARY}-{home.name}") == 1
    assert f"{CANARY}-{home.name}" not in json.dumps(await client.export())
    listed = await client.call("_agentd/sessions/list")
    assert [s["key"] for s in listed["sessions"]] == ["main"]
    late = await daemon.connect()
    await late.call("session/load", {"sessionId": "main", "cwd": "/", "mcpServers": []})
    assert await client.say("say goodbye", "m9") == "goodbye"
    await until(lambda: "goodbye" in "".join(watcher.lines), "the watcher hears the next turn")
    await daemon.stop()


async def test_a_beat_with_nothing_to_tell_is_heard_by_nobody(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.say("say hello", "m1")
    (home.workspace / "HEARTBEAT.md").write_text("- [ ] keep an eye on things\n")
    before = len(client.lines)
    beat = await client.call("_agentd/heartbeat/run", {"force": True})
    assert (beat["outcome"], beat["reason"]) == ("quiet", "ack")
    rows = await client.export()
    assert len(client.lines) == before + 2  # the answers to the two calls
    assert "HEARTBEAT_OK" not in json.dumps(rows)
    await client.say("say again", "m2")
    assert "HEARTBEAT_OK" not in json.dumps(home.requests()[-1]["messages"])
    await daemon.stop()


async def test_a_beat_whose_model_only_repeats_what_it_told_is_quiet(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    (home.workspace / "HEARTBEAT.md").write_text(
        "- [ ] do tell the cellar is wet; say I told them\n"
    )
    first = await client.call("_agentd/heartbeat/run", {"force": True})
    assert (first["outcome"], first["reason"]) == ("alert", "notify")
    again = await client.call("_agentd/heartbeat/run", {"force": True})
    assert (again["outcome"], again["reason"]) == ("quiet", "duplicate")
    assert len((await client.call("_agentd/alerts/list"))["alerts"]) == 1
    await daemon.stop()


async def test_an_alert_is_shown_to_those_who_are_there_and_to_those_who_come(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    (home.workspace / "HEARTBEAT.md").write_text("- [ ] report the cellar is under water\n")
    beat = await client.call("_agentd/heartbeat/run", {"force": True})
    assert (beat["outcome"], beat["text"]) == ("alert", "the cellar is under water")
    await until(lambda: client.alerts == ["the cellar is under water"], "the alert is shown")
    again = await client.call("_agentd/heartbeat/run", {"force": True})
    assert (again["outcome"], again["reason"]) == ("quiet", "duplicate")
    await client.say("say dry now", "m1")
    assert client.alerts == ["the cellar is under water"]
    assert texts(await client.export(), "notice") == ["the cellar is under water"]
    assert "the cellar is under water" in json.dumps(home.requests()[-1]["messages"])
    await daemon.stop()
