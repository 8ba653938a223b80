"""The system clock tells UTC and finds the owner's zone."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.core.clock import SystemClock, system_zone, zone_or_empty
from agentd.core.ports import Clock


def test_now_is_aware_and_between_two_readings() -> None:
    clock: Clock = SystemClock("Europe/Berlin")
    before, now, after = datetime.now(UTC), clock.now(), datetime.now(UTC)
    assert before <= now <= after
    assert now.tzinfo is UTC
    assert clock.zone.key == "Europe/Berlin"


async def test_sleeping_ends_and_monotonic_time_does_not_go_back() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert before <= clock.monotonic() <= time.monotonic()


@pytest.mark.parametrize(
    ("tz", "link", "zone"),
    [
        pytest.param("America/New_York", "Europe/Rome", "America/New_York", id="TZ wins"),
        pytest.param(":Asia/Tokyo", "Europe/Rome", "Asia/Tokyo", id="TZ with a colon"),
        pytest.param("/usr/share/zoneinfo/Asia/Tokyo", "", "Asia/Tokyo", id="TZ as a file"),
        pytest.param("EST5EDT4,M3", "Europe/Rome", "Europe/Rome", id="a rule is passed over"),
        pytest.param("../../etc/passwd", "Europe/Rome", "Europe/Rome", id="no way out"),
        pytest.param("", "Europe/Rome", "Europe/Rome", id="link"),
        pytest.param("", "", "UTC", id="nothing known"),
        pytest.param("", "Mars/Base", "UTC", id="unknown link"),
    ],
)
def test_system_zone(tmp_path: Path, tz: str, link: str, zone: str) -> None:
    localtime = tmp_path / "localtime"
    if link:
        localtime.symlink_to(tmp_path / "usr/share/zoneinfo" / link)
    assert system_zone({"TZ": tz}, localtime) == zone


def test_without_a_configured_zone_the_system_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    assert SystemClock().zone.key == "Pacific/Auckland"


def test_a_machine_that_names_no_zone_is_told_apart_from_one_in_utc(tmp_path: Path) -> None:
    assert zone_or_empty({"TZ": "UTC"}, tmp_path / "localtime") == "UTC"
    assert zone_or_empty({}, tmp_path / "localtime") == ""
