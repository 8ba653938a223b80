"""Where things are."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agentd.core.errors import InvalidRequest
from agentd.core.paths import (
    DaemonPaths,
    client_sockets,
    cure_of,
    daemon_places,
    ensure_private_dir,
    expanded,
    is_system_service,
    shipped_path,
    write_private,
)

_USER = {"HOME": "/home/ann", "USER": "ann"}


def test_agentd_home_holds_everything() -> None:
    env = {
        **_USER,
        "AGENTD_HOME": "/srv/a",
        "STATE_DIRECTORY": "/var/lib/x",
        "XDG_RUNTIME_DIR": "/run/user/1",
    }
    home = Path("/srv/a")
    assert daemon_places(env) == DaemonPaths(
        home / "config.toml", home / "workspace", home / "state", home / "agentd.sock"
    )
    assert client_sockets(env) == (home / "agentd.sock",)


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.EROFS, "make it writable"),
        (errno.EACCES, "make it writable"),
        (errno.ENOSPC, "make room"),
        (errno.EISDIR, "move it away"),
        (errno.EEXIST, "move it away"),
    ],
)
def test_what_cannot_be_opened_has_a_cure(number: int, cure: str) -> None:
    assert cure_of(OSError(number, os.strerror(number))).partition(cure)[1]


def test_a_relative_agentd_home_counts_from_the_working_directory() -> None:
    assert daemon_places({"AGENTD_HOME": "x"}).state_dir == Path.cwd() / "x/state"


def test_without_any_variable_the_xdg_defaults_are_taken() -> None:
    home = Path("/home/ann")
    assert daemon_places(_USER) == DaemonPaths(
        home / ".config/agentd/config.toml",
        home / ".local/share/agentd/workspace",
        home / ".local/state/agentd",
        home / ".local/state/agentd/agentd.sock",
    )


def test_xdg_directories_are_used_and_relative_ones_ignored() -> None:
    env = {
        **_USER,
        "XDG_CONFIG_HOME": "/c",
        "XDG_STATE_HOME": "relative",
        "XDG_DATA_HOME": "/d",
        "XDG_RUNTIME_DIR": "/run/user/1000",
    }
    assert daemon_places(env) == DaemonPaths(
        Path("/c/agentd/config.toml"),
        Path("/d/agentd/workspace"),
        Path("/home/ann/.local/state/agentd"),
        Path("/run/user/1000/agentd/agentd.sock"),
    )


def test_systemds_directories_win_over_xdg() -> None:
    env = {
        **_USER,
        "XDG_RUNTIME_DIR": "/run/user/1000",
        "CONFIGURATION_DIRECTORY": "/etc/agentd/ann",
        "STATE_DIRECTORY": "/var/lib/agentd/ann:/var/lib/other",
        "RUNTIME_DIRECTORY": "/run/agentd/ann",
    }
    assert daemon_places(env) == DaemonPaths(
        Path("/etc/agentd/ann/config.toml"),
        Path("/var/lib/agentd/ann/workspace"),
        Path("/var/lib/agentd/ann"),
        Path("/run/agentd/ann/agentd.sock"),
    )


@pytest.mark.parametrize("env", [{"AGENTD_HOME": "/srv/a"}, _USER], ids=["home", "xdg"])
def test_another_configuration_file_moves_nothing_else(env: dict[str, str]) -> None:
    usual, moved = daemon_places(env), daemon_places(env, Path("/etc/my.toml"))
    assert moved.config_file == Path("/etc/my.toml")
    assert (moved.workspace, moved.state_dir, moved.socket) == (
        usual.workspace,
        usual.state_dir,
        usual.socket,
    )


def test_clients_try_the_runtime_directory_then_the_service_then_the_state_directory() -> None:
    assert client_sockets({**_USER, "XDG_RUNTIME_DIR": "/run/user/1000"}) == (
        Path("/run/user/1000/agentd/agentd.sock"),
        Path("/run/agentd/ann/agentd.sock"),
        Path("/home/ann/.local/state/agentd/agentd.sock"),
    )


def test_clients_find_a_daemon_started_in_the_same_environment() -> None:
    for extra in ({}, {"XDG_RUNTIME_DIR": "/run/user/1"}, {"XDG_STATE_HOME": "/s"}):
        env = {**_USER, **extra}
        assert daemon_places(env).socket in client_sockets(env)


def test_a_user_name_cannot_lead_out_of_the_services_folder() -> None:
    for name in ("../ann", "..", "a/b"):
        sockets = client_sockets({**_USER, "USER": name})
        assert not any(is_system_service(path) for path in sockets)


def test_what_ships_with_a_checkout_is_found_beside_the_package() -> None:
    assert shipped_path("pyproject.toml").is_file()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_folders_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = ensure_private_dir(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (made, made.parent)] == [0o700, 0o700]


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)
    assert ensure_private_dir(tmp_path / "shared").stat().st_mode & 0o777 == 0o755


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        ensure_private_dir(tmp_path / "file" / "below")


def test_a_private_file_is_there_as_a_whole_or_nothing_of_it_is(tmp_path: Path) -> None:
    file, part = tmp_path / "note", tmp_path / "note.part"
    part.write_text("what a crash has left")
    write_private(file, "tea")
    write_private(file, b"green tea")
    assert file.read_bytes() == b"green tea"
    assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_private(tmp_path / "folder", "tea")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "note"]


def test_a_command_is_told_of_a_home_folder_that_nobody_has() -> None:
    with pytest.raises(InvalidRequest, match="'~nobody-of-that-name/x' has no home folder"):
        expanded("~nobody-of-that-name/x")
    with pytest.raises(InvalidRequest, match="no home folder"):
        daemon_places({"AGENTD_HOME": "~nobody-of-that-name"})
