"""`agentd config check` tells what is named and is not there; `agentd doctor` does, too."""

from __future__ import annotations

import json
import os
import sys
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.logs import LogSettings, open_log
from agentd.core.clock import SystemClock
from agentd.core.errors import ConfigError

runner = CliRunner()

_ABSENT = [
    ("[alerts]\ncommand = ['/no/program', 'x']\n", "alerts.command", "/no/program"),
    ("[alerts]\ncommand = ['no-such-program']\n", "alerts.command", "no-such-program"),
    ("[provider]\nkind = 'anthropic'\napi_key_file = '/no/key'\n", "[provider]", "/no/key"),
    ("[provider]\napi_key_file = '/no/key'\n", "[provider] api_key_file", "/no/key"),
    ("[provider]\nkind = 'anthropic'\n", "ANTHROPIC_API_KEY", "no key"),
    ("[mcp.servers.x]\ncommand = ['/no/mcp']\n", "mcp.servers.x.command", "/no/mcp"),
    (
        (
            "[memory_search]\nprovider = "
            "'openai'\n[memory_search.embedder]\napi_key_file = '/no/key'\n"
        ),
        "[memory_search.embedder] api_key_file",
        "/no/key",
    ),
    (
        "[memory_search]\nextra_paths = ['x=/no/folder']\n",
        "memory_search.extra_paths",
        "/no/folder",
    ),
    ("[workspace]\nread_scopes = ['x=/no/folder']\n", "workspace.read_scopes", "/no/folder"),
    ("[graph]\nkey_file = '/no/key'\n", "[graph] key_file", "/no/key"),
    ("[log]\nfile = '/proc/no/x.log'\n", "log.file", "/proc"),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return tmp_path


def configure(home: Path, text: str) -> None:
    file = home / "config.toml"
    file.touch(mode=0o600)
    file.write_text(text)


@pytest.mark.parametrize(("text", "setting", "thing"), _ABSENT)
def test_what_is_named_and_not_there_is_a_warning_with_its_setting_and_a_cure(
    home: Path, text: str, setting: str, thing: str
) -> None:
    configure(home, text)
    checked = runner.invoke(app, ["config", "check"])
    assert checked.exit_code == 0, "the daemon starts, and a service looks before it does"
    assert setting in checked.stdout
    assert thing in checked.stdout
    assert "warning: " in checked.stdout
    assert "→ " in checked.stdout
    (warning,) = json.loads(runner.invoke(app, ["config", "check", "--json"]).stdout)["warnings"]
    looked = json.loads(runner.invoke(app, ["doctor", "--json"]).stdout)["checks"]
    found = [one for one in looked if one["code"] == "config" and one["level"] == "warn"]
    assert [f"{one['text']} → {one['cure']}" for one in found] == [warning]


@pytest.mark.skipif(os.access("/proc/sys", os.W_OK), reason="no folder here is read-only for root")
def test_a_workspace_that_can_only_be_read_is_a_warning(home: Path) -> None:
    configure(home, "[workspace]\npath = '/proc/sys'\n")
    checked = runner.invoke(app, ["config", "check"])
    if os.getuid() == 0:
        assert checked.exit_code == 0
        assert "warning: nothing can be written in the workspace /proc/sys" in checked.stdout
        assert "workspace.path" in checked.stdout
    else:
        assert "belongs to root" in checked.stderr


def test_what_is_there_is_no_warning(home: Path) -> None:
    key = home / "key"
    key.touch(mode=0o600)
    key.write_text("sk-somebody\n")
    configure(
        home,
        f"[alerts]\ncommand = ['{sys.executable}', '-c', '']\n"
        f"[provider]\nkind = 'anthropic'\napi_key_file = '{key}'\n"
        f"[memory_search]\nextra_paths = ['x={home}']\n"
        "[mcp.servers.x]\nenabled = false\ncommand = ['/no/mcp']\n"
        f"[log]\nfile = '{home}/not/yet/x.log'\n",
    )
    told = json.loads(runner.invoke(app, ["config", "check", "--json"]).stdout)
    assert told["warnings"] == []
    assert not (home / "not").exists()


def test_a_webhook_without_its_variable_keeps_a_daemon_from_starting_and_is_a_mistake(
    home: Path,
) -> None:
    configure(home, "[alerts]\nwebhook_url_env = 'NO_SUCH_HOOK'\n")
    checked = runner.invoke(app, ["config", "check"])
    assert checked.exit_code == 78
    assert "webhook_url_env" in checked.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_workspace_of_somebody_else_is_a_mistake(home: Path) -> None:
    other = home / "other"
    other.mkdir()
    os.chown(other, 12345, -1)
    configure(home, f"[workspace]\npath = '{other}'\n")
    checked = runner.invoke(app, ["config", "check"])
    assert checked.exit_code == 78
    assert "belongs to" in checked.stderr


def test_a_log_file_that_cannot_be_opened_is_told_with_its_setting(tmp_path: Path) -> None:
    settings = LogSettings(file="/proc/no/x.log")
    opened = open_log(settings, tmp_path, SystemClock("UTC"), {}, StringIO())
    with pytest.raises(ConfigError, match=r"\[log\] file"), opened:
        pass
