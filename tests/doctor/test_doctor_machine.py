"""Each check of the machine finds its defect, and says well once that is cured."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentd.app.doctor.machine_checks import (
    ClockCheck,
    DiskCheck,
    ErasureCheck,
    LeftoversCheck,
    MovedAsideCheck,
    PermissionsCheck,
    SocketPathCheck,
    SqliteVersionCheck,
)
from agentd.app.doctor.service_checks import LingerCheck, UnitFileCheck
from agentd.core.paths import DaemonPaths
from agentd.storage.erasing import mark_unclean
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock


@pytest.fixture
def places(tmp_path: Path) -> DaemonPaths:
    """A home as the daemon leaves it; its name needs quotes in a shell."""
    home = tmp_path / "my home's"
    places = DaemonPaths(
        home / "config.toml", home / "workspace", home / "state", home / "agentd.sock"
    )
    for folder in (home, places.workspace, places.state_dir, places.state_dir / "logs"):
        folder.mkdir(mode=0o700)
    for file in (places.config_file, places.state_dir / "state.db", places.socket):
        file.touch(0o600)
    return places


@pytest.mark.parametrize(
    "name",
    [".", "config.toml", "agentd.sock", "workspace", "state", "state/logs", "state/state.db"],
)
async def test_what_others_can_reach_fails_until_the_cure_is_run(
    places: DaemonPaths, name: str
) -> None:
    check = PermissionsCheck(places, places.workspace)
    assert (await check.look()).level == "ok"
    path = places.config_file.parent / name
    path.chmod(path.stat().st_mode | 0o040)
    found = await check.look()
    assert (found.level, str(path) in found.text) == ("fail", True)
    assert os.system(found.cure) == 0
    assert (await check.look()).level == "ok"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
async def test_a_file_of_somebody_else_fails_until_the_cure_is_run(places: DaemonPaths) -> None:
    check = PermissionsCheck(places, places.workspace)
    os.chown(places.config_file, 4242, -1)
    cure = (await check.look()).cure
    assert os.system(cure.removeprefix("as root: ")) == 0
    assert (await check.look()).level == "ok"


async def test_a_disk_that_is_nearly_full_fails(tmp_path: Path) -> None:
    free = {tmp_path: 99_000_000}
    check = DiskCheck((tmp_path, tmp_path / "absent"), free.__getitem__)
    found = await check.look()
    assert (found.level, "99 MB" in found.text) == ("fail", True)
    free[tmp_path] = 200_000_000
    assert (await check.look()).level == "ok"


async def test_before_anything_is_made_the_disk_it_would_be_made_on_is_looked_at(
    tmp_path: Path,
) -> None:
    check = DiskCheck((tmp_path / "home" / "state",), {tmp_path: 99_000_000}.__getitem__)
    found = await check.look()
    assert (found.level, found.text) == ("fail", f"99 MB are free at {tmp_path}")


@pytest.mark.parametrize(
    ("year", "zone", "system", "level"),
    [
        (2026, "Europe/Berlin", "", "ok"),
        (2026, "", "UTC", "ok"),
        (2026, "", "", "warn"),
        (1970, "UTC", "UTC", "fail"),
        (2150, "UTC", "UTC", "fail"),
    ],
)
async def test_a_clock_that_cannot_be_right_fails_and_an_unknown_zone_is_told(
    year: int, zone: str, system: str, level: str
) -> None:
    clock = FakeClock(datetime(year, 1, 2, tzinfo=UTC))
    assert (await ClockCheck(clock, zone, system).look()).level == level


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 6, 23), "ok"),
        ((3, 7, 0), "warn"),
        ((3, 44, 5), "warn"),
        ((3, 44, 6), "ok"),
        ((3, 45, 1), "warn"),
        ((3, 50, 6), "warn"),
        ((3, 50, 7), "ok"),
        ((3, 51, 2), "warn"),
        ((3, 51, 3), "ok"),
    ],
)
async def test_a_sqlite_that_two_programs_can_corrupt_is_told(
    version: tuple[int, ...], level: str
) -> None:
    assert (await SqliteVersionCheck(version).look()).level == level


async def test_a_socket_path_is_told_from_the_length_on_that_others_cannot_reach() -> None:
    assert (await SocketPathCheck(Path("/" + "x" * 106)).look()).level == "ok"
    assert (await SocketPathCheck(Path("/" + "x" * 107)).look()).level == "warn"


async def test_leftovers_are_told_until_they_are_removed(places: DaemonPaths) -> None:
    clock = FakeClock(datetime.now(UTC))
    check = LeftoversCheck(places.state_dir, places.workspace, clock)
    assert (await check.look()).level == "ok"
    aside = places.state_dir / "index.db.corrupt-1"
    stray = places.workspace / ".agentd-0123.tmp"
    copy = places.state_dir / ".backup-0123"
    aside.touch()
    stray.touch()
    copy.mkdir()
    (copy / "state.db").touch()
    found = await check.look()
    assert (found.level, aside.name in found.text) == ("warn", True)
    assert stray.name not in found.text, "somebody may be writing it just now"
    assert copy.name not in found.text
    clock.jump(timedelta(minutes=6))
    found = await check.look()
    assert stray.name in found.text
    assert copy.name in found.text
    assert os.system(found.cure.partition(": ")[2]) == 0
    assert (await check.look()).level == "ok"


async def test_what_a_restore_moved_aside_is_told_until_it_is_removed(places: DaemonPaths) -> None:
    check = MovedAsideCheck(places, places.workspace)
    assert (await check.look()).level == "ok"
    places.workspace.mkdir(exist_ok=True)
    kept = [
        places.state_dir / "state.db.before-20261129T100000",
        places.workspace.with_name(f"{places.workspace.name}.before-20261129T100000"),
        places.config_file.with_name(f"{places.config_file.name}.before-20261129T100000"),
    ]
    kept[0].touch()
    kept[1].mkdir()
    kept[2].touch()
    found = await check.look()
    assert (found.level, found.text[:8]) == ("warn", "3 copies")
    assert os.system(found.cure.partition(": ")[2]) == 0
    assert not any(path.exists() for path in kept)
    assert (await check.look()).level == "ok"


async def test_a_deletion_that_was_cut_is_told_until_a_start_finishes_it(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    file = tmp_path / "state.db"
    check = ErasureCheck(tmp_path, clock)
    assert (await check.look()).level == "ok"
    mark_unclean(file)
    assert (await check.look()).level == "ok", "it may be on its way"
    clock.jump(timedelta(minutes=6))
    found = await check.look()
    assert (found.level, "state.db" in found.text) == ("warn", True)
    assert "agentd restart" in found.cure
    async with Database.open(file, STATE):
        assert (await check.look()).level == "ok"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ExecStart=/bin/agentd run\nTimeoutStopSec=30\n", ""),
        ("ExecStart=/bin/agentd run\n# TimeoutStopSec=1\n", ""),
        ("ExecStart=/usr/bin/env agentd run\nTimeoutStopSec=1min 30s\n", ""),
        ("ExecStart=/bin/agentd run\nTimeoutStopSec=infinity\n", ""),
        ("ExecStart=/bin/agentd run\nTimeoutStopSec=4\n", "TimeoutStopSec=4"),
        ("ExecStart=/bin/agentd run\nTimeoutStopSec=500ms\n", "TimeoutStopSec=500ms"),
        ("ExecStart=/gone/agentd run\n", "/gone/agentd"),
        ("[Service]\n", "nothing"),
    ],
)
async def test_a_unit_that_kills_or_starts_nothing_fails(
    tmp_path: Path, text: str, told: str
) -> None:
    unit = tmp_path / "agentd.service"
    check = UnitFileCheck(
        (unit,), 4.5, which=lambda name: name if name in ("agentd", "/bin/agentd") else None
    )
    assert (await check.look()).level == "ok", "none is installed"
    unit.write_text(f"[Service]\n{text}")
    found = await check.look()
    assert (found.level, told in found.text) == ("fail" if told else "ok", True)


async def test_a_users_unit_without_lingering_is_told_until_that_is_enabled(tmp_path: Path) -> None:
    unit, marker = tmp_path / "agentd.service", tmp_path / "alice"
    check = LingerCheck(unit, marker)
    assert (await check.look()).level == "ok", "none is installed"
    unit.touch()
    assert (await check.look()).level == "warn"
    marker.touch()
    assert (await check.look()).level == "ok"
