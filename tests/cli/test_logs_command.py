"""`agentd logs`: from the daemon, from the file it left, and from the journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from tests.scripted_daemon import Hangup, ScriptedDaemon

runner = CliRunner()

RECORD = {"at": "2026-11-21T12:00:01.500+00:00", "level": "info", "event": "turn_ended", "turn": 7}
JOURNALCTL = """\
#!/bin/sh
echo "$@" >> "{calls}"
case "$*" in
*--follow*) echo '{{"event": "later", "level": "error"}}' ;;
*) echo '{{"event": "new", "level": "error"}}'; echo '{{"event": "old", "level": "info"}}';
   echo '{{"event": "oldest", "level": "error"}}' ;;
esac
"""


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        daemon.on("initialize", lambda params, wire: {"_meta": {"agentd/zone": "Europe/Berlin"}})
        yield daemon


def test_records_are_readable_lines_in_the_owners_time(daemon: ScriptedDaemon) -> None:
    page = {"records": [RECORD], "before": None, "after": "1:5"}
    daemon.on("_agentd/logs", lambda params, wire: page)
    result = runner.invoke(app, ["logs", "--turn", "7", "--origin", "user"])
    assert result.output == "2026-11-21 13:00:01 info    turn_ended turn=7\n"
    (asked,) = daemon.params_of("_agentd/logs")
    assert (asked["turn"], asked["origin"], asked["limit"]) == (7, "user", 200)
    as_json = runner.invoke(app, ["logs", "--json"])
    assert json.loads(as_json.stdout) == RECORD


def test_many_records_come_page_by_page_and_oldest_first(daemon: ScriptedDaemon) -> None:
    def page(params, wire):
        if params["before"] is None:
            return {"records": [{"event": "b"}] * params["limit"], "before": "1:9", "after": "1:99"}
        return {"records": [{"event": "a"}], "before": None, "after": "1:9"}

    daemon.on("_agentd/logs", page)
    result = runner.invoke(app, ["logs", "-n", "1001", "--json"])
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events == ["a", *["b"] * 1000]
    assert [p["limit"] for p in daemon.params_of("_agentd/logs")] == [1000, 1]


def test_following_begins_behind_the_last_page(daemon: ScriptedDaemon) -> None:
    def follow(params, wire):
        assert params["after"] == "1:5"
        wire.notify("_agentd/log", {"records": [{"event": "later", "level": "error"}]})
        raise Hangup

    daemon.on(
        "_agentd/logs", lambda params, wire: {"records": [RECORD], "before": None, "after": "1:5"}
    )
    daemon.on("_agentd/logs/follow", follow)
    result = runner.invoke(app, ["logs", "-f", "--json"])
    events = [json.loads(line).get("event") for line in result.stdout.splitlines()]
    assert events[:2] == ["turn_ended", "later"]
    assert result.exit_code != 0, "the daemon went away"


def test_the_log_of_a_daemon_that_has_ended_is_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    logs = tmp_path / "state" / "logs"
    logs.mkdir(parents=True)
    (logs / "agentd.log").write_text(json.dumps(RECORD) + '\n{"event": "x", "level": "debug"}\n')
    result = runner.invoke(app, ["logs", "--level", "info", "--json"])
    assert (result.exit_code, json.loads(result.stdout)) == (0, RECORD)
    assert "no daemon runs" in result.stderr


def test_without_daemon_and_without_a_file_the_exit_code_is_69(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    assert runner.invoke(app, ["logs"]).exit_code == 69


def test_the_journal_is_asked_when_the_daemon_says_so(
    daemon: ScriptedDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = {"records": [], "journal": {"name": "agentd.service", "is_users": True}}
    daemon.on("_agentd/logs", lambda params, wire: journal)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    absent = runner.invoke(app, ["logs"])
    assert absent.exit_code == 1
    assert "journalctl" in absent.stderr
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "journalctl"
    command.write_text(JOURNALCTL.format(calls=tmp_path / "calls"))
    command.chmod(0o700)
    result = runner.invoke(app, ["logs", "-n", "2", "-f", "--level", "error", "--json"])
    events = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert events == ["oldest", "new", "later"]
    usual = "--output=cat --no-pager --user-unit=agentd.service"
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"{usual} --reverse",
        f"{usual} --follow --lines=0",
    ]
