"""`agentd service`: the unit names this agentd, and nothing is pretended to have been enabled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd.app.cli.app import app
from agentd.app.cli.service import (
    own_executable,
    put,
    remove,
    system_service,
    users_service,
)
from agentd.core.errors import AgentdError, NotFound

runner = CliRunner()
EXE, PYTHON = Path("/opt/agentd/bin/agentd"), Path("/usr/bin/env")
FAKE = '#!/bin/sh\necho "$(basename $0) $*" >> "{calls}"\n[ "$1" != fail ] && exit {code}\n'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What systemctl and loginctl were called with; both succeed."""
    fake(tmp_path, 0)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "calls"


def fake(tmp_path: Path, code: int) -> None:
    (tmp_path / "bin").mkdir(exist_ok=True)
    for name in ("systemctl", "loginctl"):
        command = tmp_path / "bin" / name
        command.write_text(FAKE.format(calls=tmp_path / "calls", code=code))
        command.chmod(0o700)


def unit(tmp_path: Path) -> Path:
    return tmp_path / "config" / "systemd" / "user" / "agentd.service"


def test_the_users_unit_is_written_and_enabled(
    tmp_path: Path, environ: dict[str, str], calls: Path
) -> None:
    service = users_service(environ, EXE)
    assert put(service, booted=True, running=False) == []
    text = unit(tmp_path).read_text()
    assert "ExecStart=/opt/agentd/bin/agentd run\n" in text
    assert "ExecStartPre=/opt/agentd/bin/agentd config check\n" in text
    assert "/usr/bin/env" not in text
    assert calls.read_text().splitlines() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now agentd agentd-watch.timer",
        "loginctl enable-linger",
    ]
    calls.unlink()
    assert remove(service, booted=True) == []
    assert not unit(tmp_path).exists()
    assert calls.read_text().splitlines() == [
        "systemctl --user disable --now agentd agentd-watch.timer",
        "systemctl --user daemon-reload",
    ]
    with pytest.raises(NotFound):
        remove(service, booted=True)


def test_without_systemd_it_says_what_to_type(
    tmp_path: Path, environ: dict[str, str], calls: Path
) -> None:
    left = put(users_service(environ, EXE), booted=False, running=False)
    assert left == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now agentd agentd-watch.timer",
        "loginctl enable-linger",
    ]
    assert unit(tmp_path).exists()
    assert not calls.exists()


def test_a_command_that_fails_is_left_to_type(
    tmp_path: Path, environ: dict[str, str], calls: Path
) -> None:
    fake(tmp_path, 1)
    left = put(users_service(environ, EXE), booted=True, running=False)
    assert "systemctl --user enable --now agentd agentd-watch.timer" in left


def test_a_running_daemon_is_not_met_by_a_second_one(environ: dict[str, str], calls: Path) -> None:
    left = put(users_service(environ, EXE), booted=True, running=True)
    assert left[:2] == ["agentd stop", "systemctl --user enable --now agentd agentd-watch.timer"]
    assert calls.read_text() == "systemctl --user daemon-reload\n"


def test_a_unit_that_was_changed_by_hand_is_kept(
    tmp_path: Path, environ: dict[str, str], calls: Path
) -> None:
    unit(tmp_path).parent.mkdir(parents=True)
    unit(tmp_path).write_text("# mine\n")
    for _ in range(2):
        put(users_service(environ, EXE), booted=False, running=False)
    assert unit(tmp_path).with_name("agentd.service.old").read_text() == "# mine\n"


@pytest.mark.parametrize("path", ["/home/alice/.venv/bin/agentd", "/root/bin/agentd"])
def test_a_path_that_the_system_unit_would_not_see_is_refused(path: str) -> None:
    with pytest.raises(AgentdError, match="sees no homes") as caught:
        system_service("alice", Path(path), PYTHON)
    assert "/opt" in caught.value.cure
    assert users_service({}, Path(path)).files
    with pytest.raises(AgentdError, match="sees no homes"):
        system_service("alice", EXE, Path("/home/alice/.local/bin/python"))


def test_the_system_units_are_for_one_person(tmp_path: Path, calls: Path) -> None:
    service = system_service("alice", EXE, PYTHON, tmp_path / "agentd@.service")
    assert put(service, booted=True, running=False) == []
    assert (tmp_path / "agentd@.socket").exists()
    assert "ExecStart=/opt/agentd/bin/agentd run" in (tmp_path / "agentd@.service").read_text()
    assert calls.read_text().splitlines()[-1] == (
        "systemctl enable --now agentd@alice agentd-watch@alice.timer"
    )
    watch = (tmp_path / "agentd-watch@.service").read_text()
    assert "ExecStart=/opt/agentd/bin/agentd alerts watch" in watch


def test_a_path_that_a_unit_cannot_spell_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(AgentdError, match="cannot stand"):
        users_service(environ, Path("/opt/my agent/agentd"))
    text, watch, _ = users_service(environ, Path("/opt/100%/agentd")).files.values()
    assert "ExecStart=/opt/100%%/agentd run" in text
    assert "ExecStart=/opt/100%%/agentd alerts watch" in watch


def test_the_users_unit_serves_the_home_that_is_set(environ: dict[str, str]) -> None:
    usual = users_service(environ, EXE).files.values()
    texts = users_service({**environ, "AGENTD_HOME": "/srv/my 100%"}, EXE).files.values()
    services = [text for text in texts if "[Service]" in text]
    assert len(services) == 2
    for text in services:
        assert '[Service]\nEnvironment="AGENTD_HOME=/srv/my 100%%"\n' in text
    assert not any("AGENTD_HOME" in text for text in usual)
    with pytest.raises(AgentdError, match="cannot stand"):
        users_service({**environ, "AGENTD_HOME": '/srv/"'}, EXE)


def test_a_dry_run_prints_and_writes_nothing(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", environ["XDG_CONFIG_HOME"])
    result = runner.invoke(app, ["service", "install", "--dry-run"])
    assert result.exit_code == 0
    assert f"ExecStart={own_executable()} run" in result.stdout
    assert "$ systemctl --user enable --now agentd agentd-watch.timer" in result.stdout
    planned = json.loads(runner.invoke(app, ["service", "install", "--dry-run", "--json"]).stdout)
    names = ("agentd.service", "agentd-watch.service", "agentd-watch.timer")
    assert list(planned["files"]) == [str(unit(tmp_path).with_name(name)) for name in names]
    assert not (tmp_path / "config").exists()
    gone = runner.invoke(app, ["service", "uninstall", "--json"])
    assert (gone.exit_code, json.loads(gone.stdout)["error"]["code"]) == (1, "not_found")
