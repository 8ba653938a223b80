"""From nothing to a configuration and a workspace."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.launch import start
from agentd.app.cli.setup import make, with_value
from agentd.core.errors import AgentdError
from agentd.core.paths import daemon_places, shipped_path
from tests.e2e.forked import parent

runner = CliRunner()

_TEXT = """\
[agent]
# your zone
timezone = ""

[provider]
# kind =
timeout = "1m"
"""


def test_init_makes_what_is_missing_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("AGENTD_HOME", str(home))
    first = runner.invoke(app, ["init", "--json"])
    assert first.exit_code == 0, first.output
    made = json.loads(first.stdout)
    assert str(home / "config.toml") in made["created"]
    written = (home / "config.toml").read_text()
    assert tomli.loads(written) == {}
    assert str(shipped_path("config.example.toml")) in written
    for name in ("AGENTS.md", "SOUL.md", "BOOTSTRAP.md", "HEARTBEAT.md", "memory"):
        assert (home / "workspace" / name).exists()
    (home / "config.toml").write_text("# mine\n")
    (home / "workspace" / "SOUL.md").write_text("brave\n")
    (home / "workspace" / "TOOLS.md").unlink()
    again = json.loads(runner.invoke(app, ["init", "--json"]).stdout)
    assert again["created"] == [str(home / "workspace" / "TOOLS.md")]
    assert (home / "config.toml").read_text() == "# mine\n"
    assert (home / "workspace" / "SOUL.md").read_text() == "brave\n"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_all_that_init_makes_is_the_owners_alone(tmp_path: Path, umask: int) -> None:
    places = daemon_places({"AGENTD_HOME": str(tmp_path / "home")})
    before = os.umask(umask)
    try:
        make(places, interactive=False)
    finally:
        os.umask(before)
    for path in (tmp_path / "home", *(tmp_path / "home").rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_a_place_that_cannot_be_written_is_told_with_a_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "file" / "home"))
    result = runner.invoke(app, ["init", "--json"])
    assert result.exit_code == 1
    assert "AGENTD_HOME" in json.loads(result.stdout)["error"]["cure"]


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        pytest.param("agent", "timezone", "Europe/Berlin", id="changed"),
        pytest.param("provider", "kind", "offline", id="taken into use"),
        pytest.param("agent", "timeout", "2m", id="added, though another table has it"),
        pytest.param("heartbeat", "enabled", False, id="new table"),
        pytest.param("agent", "timezone", 'a"b\\c\n', id="quoted"),
    ],
)
def test_one_value_is_set_and_all_else_stays(table: str, key: str, value: str | bool) -> None:
    wanted = tomli.loads(_TEXT)
    wanted.setdefault(table, {})[key] = value
    changed = with_value(_TEXT, table, key, value)
    assert tomli.loads(changed) == wanted
    assert "# your zone" in changed
    assert with_value(changed, table, key, value) == changed


def test_new_values_stand_in_the_order_in_which_they_were_set() -> None:
    text = with_value("", "heartbeat", "active_hours_start", "07:00")
    text = with_value(
        with_value(text, "log", "level", "info"), "heartbeat", "active_hours_end", "9"
    )
    assert text.splitlines()[1:4] == [
        "[heartbeat]",
        'active_hours_start = "07:00"',
        'active_hours_end = "9"',
    ]


def test_a_wrong_configuration_is_reported_whole_with_78(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text('[agent]\ntimezone = "Mars"\nwrong = 1\n')
    result = runner.invoke(app, ["config", "check"])
    assert result.exit_code == 78
    assert "timezone" in result.stderr
    assert "wrong" in result.stderr
    told = json.loads(runner.invoke(app, ["config", "check", "--json"]).stdout)
    assert told["error"]["code"] == "config"


_LIMIT = "[budget]\ndaily_usd = 1.0\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(_LIMIT, "no price for claude-sonnet-5-5", id="a limit without a price"),
        pytest.param('[workspace]\npath = "{home}"\n', "is in the workspace", id="state in notes"),
        pytest.param(
            '[workspace]\npath = "/proc/nope"\n',
            "no folder can be made in /proc",
            id="no such place",
        ),
    ],
)
@pytest.mark.parametrize("command", [("config", "check"), ("restart",), ("doctor",)])
def test_what_a_start_would_refuse_is_told_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str, told: str
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-nobody")
    (tmp_path / "config.toml").write_text(text.format(home=tmp_path))
    result = runner.invoke(app, list(command))
    assert told in " ".join(result.output.split())
    assert result.exit_code == (1 if command == ("doctor",) else 78)
    assert not (tmp_path / "state" / "daemon.log").exists()  # none was started to find out


@pytest.mark.parametrize(
    ("place", "told"), [("state/daemon.log", "daemon.log cannot be opened"), ("workspace", "File")]
)
def test_what_stands_where_agentd_writes_is_told_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, told: str
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    (tmp_path / place).parent.mkdir(exist_ok=True, mode=0o700)
    if place == "workspace":
        (tmp_path / place).touch()
    else:
        (tmp_path / place).mkdir()
    result = runner.invoke(app, ["up"])
    assert result.exit_code == 1
    assert told in result.stderr
    assert "move it away" in result.stderr


def seen(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_window_is_measured_with_the_workspace_that_the_first_start_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("[provider]\ncontext_window = 2000\n")
    before = runner.invoke(app, ["config", "check", "--json"])
    (tmp_path / "config.toml").unlink()
    runner.invoke(app, ["init"])
    (tmp_path / "config.toml").write_text("[provider]\ncontext_window = 2000\n")
    after = runner.invoke(app, ["config", "check", "--json"])
    assert (before.exit_code, after.exit_code) == (78, 78)
    assert before.stdout == after.stdout


@pytest.mark.parametrize("page", ["", "# Soul\n\nbe calm and brave\n" * 400])
def test_a_window_at_which_the_daemon_exits_is_no_right_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    runner.invoke(app, ["init"])
    if page:
        (tmp_path / "workspace" / "SOUL.md").write_text(page)
    (tmp_path / "config.toml").write_text("[provider]\ncontext_window = 2000\n")
    before = seen(tmp_path)
    refused = runner.invoke(app, ["config", "check", "--json"])
    assert refused.exit_code == 78
    assert seen(tmp_path) == before
    told = json.loads(refused.stdout)["error"]
    assert "context_window = 2000 is too small" in told["message"]
    least = re.search(r"set it to (\d+) or more", told["cure"])
    assert least
    (tmp_path / "config.toml").write_text(f"[provider]\ncontext_window = {least[1]}\n")
    assert runner.invoke(app, ["config", "check"]).exit_code == 0
    (tmp_path / "config.toml").write_text("[provider]\ncontext_window = 2000\n")
    environ = {**os.environ, "AGENTD_HOME": str(tmp_path)}
    started = parent().run(["run"], given=b"", environ=environ, folder=tmp_path, timeout=60)
    assert started[0] == 78
    assert told["message"] in started[2].decode()


def test_notes_that_have_grown_keep_no_daemon_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    runner.invoke(app, ["init"])
    (tmp_path / "workspace" / "MEMORY.md").write_text("- something to remember\n" * 5_000)
    (tmp_path / "config.toml").write_text("[provider]\ncontext_window = 9000\n")
    assert runner.invoke(app, ["config", "check"]).exit_code == 0


def test_a_limit_in_dollars_needs_no_price_where_no_model_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / "config.toml").write_text(_LIMIT)
    assert runner.invoke(app, ["config", "check"]).exit_code == 0


def test_the_configuration_in_force_is_shown_with_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "elsewhere"))
    file = tmp_path / "my.toml"
    file.write_text('[agent]\ntimezone = "Asia/Tokyo"\n')
    argv = ["config", "show", "--json", "--config", str(file)]
    shown = json.loads(runner.invoke(app, argv).stdout)
    settings = {one["key"]: (one["value"], one["source"]) for one in shown["settings"]}
    assert shown["file"] == str(file)
    assert settings["agent.timezone"] == ("Asia/Tokyo", "file")
    assert "default" in {source for _, source in settings.values()}
    assert runner.invoke(app, ["config", "check", "--config", str(file)]).exit_code == 0


def test_a_daemon_that_dies_at_its_start_is_explained_by_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[agent]\nwrong = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "agentd", "up"],
        env={**os.environ, "AGENTD_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (78, b"")
    assert b"wrong" in done.stderr
    log = tmp_path / "state" / "daemon.log"
    assert log.stat().st_mode & 0o777 == 0o600


def test_what_lies_in_the_present_folder_is_not_taken_for_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[agent]\nwrong = 1\n")
    (tmp_path / "agentd").mkdir()
    (tmp_path / "agentd" / "__init__.py").write_text("raise SystemExit('another agentd')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "agentd", "up"],
        env={**os.environ, "AGENTD_HOME": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 78, done.stderr
    assert b"another agentd" not in done.stderr


def test_a_daemon_that_dies_without_a_word_is_not_said_to_have_left_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos._exit(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with pytest.raises(AgentdError) as caught:
        asyncio.run(start(daemon_places(os.environ), None))
    assert caught.value.message == "the daemon ended at once (exit code 1)"
    assert caught.value.cure == "`agentd run` says why"
