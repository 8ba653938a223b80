"""Which unit a process runs in."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentd.interfaces.commands.units import Unit, unit_of


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/system-agentd.slice/agentd@alice.service", "agentd@alice.service"),
        ("0::/user.slice/user-1000.slice/session-2.scope", None),
        ("0::/", None),
    ],
)
def test_a_system_unit_is_told_by_its_control_group(
    tmp_path: Path, cgroup: str, unit: str | None
) -> None:
    (tmp_path / "cgroup").write_text(cgroup + "\n")
    expected = Unit(unit, is_users=False) if unit else None
    assert unit_of(tmp_path / "cgroup") == expected


def test_a_users_unit_is_below_the_users_manager(tmp_path: Path) -> None:
    path = "/user.slice/user-1000.slice/user@1000.service/app.slice/agentd.service"
    (tmp_path / "cgroup").write_text(f"0::{path}\n")
    unit = unit_of(tmp_path / "cgroup")
    assert unit == Unit("agentd.service", is_users=True)
    assert unit.journal("--lines=0") == [
        *("journalctl", "--output=cat", "--no-pager", "--user-unit=agentd.service", "--lines=0")
    ]


def test_without_control_groups_there_is_no_unit(tmp_path: Path) -> None:
    assert unit_of(tmp_path / "absent") is None
