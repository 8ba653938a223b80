"""What a daemon keeps is its user's alone, or it does not start."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd.app import daemon
from agentd.app.cli.app import app
from agentd.core.errors import ConfigError
from agentd.core.paths import DaemonPaths, daemon_places
from agentd.interfaces.acp.listener import SocketPlace
from agentd.storage.ownership import configuration, runtime_folder, secure_contents, secure_places

ME = os.getuid()
STRANGER = 4242


@pytest.fixture
def places(tmp_path: Path) -> DaemonPaths:
    home = tmp_path / "my home"  # needs quotes in a shell
    home.mkdir(mode=0o700)
    (home / "state").mkdir(mode=0o700)
    (home / "config.toml").touch(0o600)
    return daemon_places({"AGENTD_HOME": str(home)})


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def given_away(path: Path) -> int:
    """Make the path somebody else's than the user's who is returned."""
    if ME == 0:
        os.chown(path, STRANGER, STRANGER)
        return ME
    return ME + 1


def test_what_is_private_is_left_as_it_is(places):
    assert secure_places(places, ME) == ()


@pytest.mark.parametrize("name", ["config.toml", "state", "."])
@pytest.mark.parametrize("loose", [0o666, 0o644, 0o777, 0o720])
def test_modes_that_let_others_in_are_mended_and_told(places, name, loose):
    path = places.config_file.parent / name
    path.chmod(loose | (0o100 if path.is_dir() else 0))
    (told,) = secure_places(places, ME)
    assert mode(path) & 0o077 == 0
    assert told.startswith(
        f"{path.resolve()} has mode {loose | (0o100 if path.is_dir() else 0):04o}"
    )
    assert secure_places(places, ME) == ()


@pytest.mark.parametrize("name", ["config.toml", "state", "."])
def test_what_belongs_to_another_user_is_refused_and_left_alone(places, name):
    path = (places.config_file.parent / name).resolve()
    path.chmod(0o755)
    uid = given_away(path)
    with pytest.raises(ConfigError, match="belongs to") as error:
        secure_places(places, uid)
    assert "chown" in error.value.cure
    assert mode(path) == 0o755


@pytest.mark.parametrize("name", ["workspace", "state/state.db", "state/state.db-wal"])
def test_a_daemon_opens_nothing_of_another_user(places, name):
    path = (places.state_dir.parent / name).resolve()
    path.mkdir() if name == "workspace" else path.touch(0o600)
    assert secure_contents(places, ME) == ()
    uid = given_away(path)
    with pytest.raises(ConfigError, match="belongs to"):
        secure_contents(places, uid)


def test_what_a_daemon_opens_is_closed_to_the_writing_of_others(places):
    places.workspace.mkdir(mode=0o755)
    places.workspace.chmod(0o777)
    places.database.touch()
    places.database.chmod(0o666)
    assert len(secure_contents(places, ME)) == 2
    assert mode(places.workspace) == 0o755
    assert mode(places.database) == 0o600


def test_the_folder_around_a_configuration_named_by_hand_is_left_alone(tmp_path, places):
    elsewhere = tmp_path / "project"
    elsewhere.mkdir()
    elsewhere.chmod(0o755)
    (elsewhere / "my.toml").touch(0o644)
    moved = daemon_places({"AGENTD_HOME": str(places.state_dir.parent)}, elsewhere / "my.toml")
    (told,) = secure_places(moved, ME, config_is_elsewhere=True)
    assert "my.toml" in told
    assert mode(elsewhere) == 0o755


@pytest.mark.skipif(ME != 0, reason="only root can make files of root")
def test_roots_configuration_may_be_read_by_all_but_written_by_nobody(places):
    places.config_file.chmod(0o644)
    assert configuration(places.config_file, STRANGER, mend=True) == ""
    places.config_file.chmod(0o664)
    with pytest.raises(ConfigError, match="others can change it"):
        configuration(places.config_file, STRANGER, mend=True)
    assert mode(places.config_file) == 0o664


def test_a_link_in_the_place_of_the_runtime_folder_is_not_followed(tmp_path):
    victim, runtime = tmp_path / "victim", tmp_path / "agentd"
    victim.mkdir()
    victim.chmod(0o755)
    runtime.symlink_to(victim)
    places = daemon_places({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert places.socket.parent == runtime
    with pytest.raises(ConfigError, match="symbolic link"):
        secure_places(places, ME)
    with pytest.raises(ConfigError, match="symbolic link"), SocketPlace(places.socket).bound():
        pass
    assert mode(victim) == 0o755
    assert not list(victim.iterdir())


def test_a_link_that_leads_nowhere_is_not_filled(tmp_path):
    (tmp_path / "agentd").symlink_to(tmp_path / "nowhere")
    place = tmp_path / "agentd" / "agentd.sock"
    with pytest.raises(ConfigError, match="symbolic link"), SocketPlace(place).bound():
        pass
    assert not (tmp_path / "nowhere").exists()


def test_a_home_that_the_user_names_may_be_a_link(tmp_path, places):
    (tmp_path / "link").symlink_to(places.state_dir.parent)
    linked = daemon_places({"AGENTD_HOME": str(tmp_path / "link")})
    assert linked == places
    assert secure_places(linked, ME) == ()


def test_a_runtime_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "agentd"
    folder.mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="belongs to"):
        runtime_folder(folder, given_away(folder))


def test_no_daemon_starts_with_a_configuration_of_somebody_else(places, monkeypatch, capsys, umask):
    if given_away(places.config_file) != ME:
        pytest.skip("only root can give files away")
    monkeypatch.setenv("AGENTD_HOME", str(places.state_dir.parent))
    assert daemon.main() == ConfigError.exit_code == 78
    told = capsys.readouterr().err
    assert "belongs to" in told
    assert "what to do: run agentd as its owner" in told


def test_config_check_tells_of_a_mode_that_lets_others_change_it(places, monkeypatch):
    places.config_file.chmod(0o666)
    monkeypatch.setenv("AGENTD_HOME", str(places.state_dir.parent))
    plain = CliRunner().invoke(app, ["config", "check"])
    assert plain.exit_code == 0
    assert "has mode 0666, so that others can change it" in plain.stdout
    assert shlex.join(["chmod", "go=", str(places.config_file)]) in plain.stdout
    told = json.loads(CliRunner().invoke(app, ["config", "check", "--json"]).stdout)
    assert told["ok"]
    assert "0666" in told["warnings"][0]
    assert mode(places.config_file) == 0o666, "a look changes nothing"
