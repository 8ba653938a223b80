"""The units are understood by systemd, keep the daemon confined, and agree with the code."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from agentd.app.daemon import StopTimeouts
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.core.errors import AlreadyRunning, ConfigError

UNITS = Path(__file__).resolve().parent.parent / "systemd"
SYSTEM, SOCKET, USER = (
    UNITS / "agentd@.service",
    UNITS / "agentd@.socket",
    UNITS / "user/agentd.service",
)
WATCH, TIMER = UNITS / "agentd-watch@.service", UNITS / "agentd-watch@.timer"
USERS_WATCH, USERS_TIMER = UNITS / "user/agentd-watch.service", UNITS / "user/agentd-watch.timer"
EXPOSURE_LIMIT = 1.5

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


class Unit(ConfigParser):
    """The settings of a unit file; of a repeated key the values joined by a line break."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, interpolation=None, comment_prefixes=("#",))
        self.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
        self.read(path)


def instance(tmp_path: Path) -> Path:
    for unit in (SYSTEM, SOCKET, WATCH, TIMER):
        shutil.copy(unit, tmp_path / unit.name.replace("@", "@alice"))
    return tmp_path / "agentd@alice.service"


def analyze(*arguments: str | Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"XDG_RUNTIME_DIR": str(runtime), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )


@needs_systemd
def test_systemd_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    service = instance(tmp_path)
    others = [service.with_suffix(".socket"), *tmp_path.glob("agentd-watch@alice.*")]
    assert len(others) == 3
    checks = [
        analyze("verify", service, *others, runtime=tmp_path),
        analyze("--user", "verify", USER, USERS_WATCH, USERS_TIMER, runtime=tmp_path),
    ]
    assert [(check.returncode, check.stderr) for check in checks] == [(0, ""), (0, "")]


@needs_systemd
def test_systemd_complains_when_there_is_a_reason(tmp_path: Path) -> None:
    service = instance(tmp_path)
    service.write_text(SYSTEM.read_text().replace("WatchdogSec=", "WatchdogSecs="))
    assert "WatchdogSecs" in analyze("verify", service, runtime=tmp_path).stderr


@needs_systemd
@pytest.mark.parametrize("name", ["agentd@alice.service", "agentd-watch@alice.service"])
def test_the_system_units_are_confined(tmp_path: Path, name: str) -> None:
    unit = instance(tmp_path).with_name(name)
    told = analyze("security", "--offline=true", unit, runtime=tmp_path).stdout
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert match is not None, told
    assert float(match[1]) <= EXPOSURE_LIMIT


@pytest.mark.parametrize("path", [SYSTEM, USER], ids=["system", "user"])
def test_the_units_agree_with_the_daemon(path: Path) -> None:
    service = Unit(path)["Service"]
    assert service["Type"] == "notify"
    never_again = {AlreadyRunning.exit_code, ConfigError.exit_code}
    assert set(map(int, service["RestartPreventExitStatus"].split())) == never_again
    assert StopTimeouts().total < 5 < int(service["TimeoutStopSec"])
    assert int(service["WatchdogSec"]) >= 20, "a probe may take ten seconds, twice in a period"
    assert service["ExecStart"] == "/usr/bin/env agentd run"
    assert service["ExecStartPre"] == "/usr/bin/env agentd config check"


@pytest.mark.parametrize(
    ("daemon", "watch", "timer", "name"),
    [
        (SYSTEM, WATCH, TIMER, "agentd-watch@%i.service"),
        (USER, USERS_WATCH, USERS_TIMER, "agentd-watch.service"),
    ],
    ids=["system", "user"],
)
def test_a_daemon_that_is_gone_is_missed_from_outside(
    daemon: Path, watch: Path, timer: Path, name: str
) -> None:
    assert Unit(daemon)["Unit"]["OnFailure"] == name
    service = Unit(watch)["Service"]
    assert (service["Type"], service["ExecStart"]) == (
        "oneshot",
        "/usr/bin/env agentd alerts watch",
    )
    assert "RuntimeDirectory" not in service, "its end would take the daemon's socket away"
    for key in ("User", "StateDirectory", "ConfigurationDirectory"):
        assert service.get(key) == Unit(daemon)["Service"].get(key)
    minutes = Unit(timer)["Timer"]["OnUnitInactiveSec"].removesuffix("min")
    assert int(minutes) * 60 < HeartbeatSettings().interval.total_seconds()
    assert timer.stem == watch.stem


def test_the_socket_unit_listens_where_clients_look() -> None:
    assert Unit(SOCKET)["Socket"]["ListenStream"] == "/run/agentd/%i/agentd.sock"
    assert Unit(SOCKET)["Socket"]["FileDescriptorName"] == "agentd"
    assert Unit(SYSTEM)["Service"]["RuntimeDirectory"] == "agentd/%i"
