"""`agentd doctor`: what it finds here and what the daemon finds, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.setup import make
from agentd.core.paths import daemon_places
from tests.scripted_daemon import ScriptedDaemon

runner = CliRunner()

FINE = {"code": "ticks", "level": "ok", "text": "the schedule woke", "cure": ""}
BAD = {"code": "search", "level": "fail", "text": "not found", "cure": "`agentd memory index`"}
SHADY = {"code": "flushes", "level": "warn", "text": "unsaved", "cure": "`agentd sessions flush`"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "h"
    monkeypatch.setenv("AGENTD_HOME", str(root))
    make(daemon_places({"AGENTD_HOME": str(root)}), interactive=False)
    return root


@pytest.mark.parametrize(
    ("checks", "code"), [([FINE], 0), ([FINE, SHADY], 0), ([FINE, SHADY, BAD], 1)]
)
def test_only_what_does_not_work_fails_the_command(
    home: Path, checks: list[dict[str, str]], code: int
) -> None:
    with ScriptedDaemon(home / "agentd.sock") as daemon:
        (home / "agentd.sock").chmod(0o600)
        daemon.on("_agentd/doctor", lambda params, wire: {"checks": checks})
        as_json = runner.invoke(app, ["doctor", "--json"])
        for_people = runner.invoke(app, ["doctor"])
    result = json.loads(as_json.stdout)
    bad = [check["code"] for check in result["checks"] if check["level"] == "fail"]
    assert bad == ["search"] * code
    assert (as_json.exit_code, for_people.exit_code, result["ok"]) == (code, code, not code)
    assert result["checks"][-len(checks) :] == checks
    assert {"config", "permissions", "disk_space", "clock", "sqlite", "unit"} <= {
        check["code"] for check in result["checks"]
    }
    assert f"ok   {FINE['text']}\n" in for_people.stdout
    assert ("→ `agentd sessions flush`" in for_people.stdout) == (SHADY in checks)


def test_a_wrong_configuration_and_a_daemon_that_is_down_are_findings_too(home: Path) -> None:
    (home / "config.toml").write_text("[agent]\nwrong = 1\n")
    result = runner.invoke(app, ["doctor", "--json"])
    checks = {check["code"]: check for check in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 1
    assert checks["config"]["level"] == checks["daemon"]["level"] == "fail"
    assert "wrong" in checks["config"]["text"]
    assert "agentd up" in checks["daemon"]["cure"]
    assert checks["permissions"]["level"] == "ok"
