"""The sign of life: when it is missed, and when it is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agentd.automation.heartbeat.lifesign import LifeSign, LifeSigns, leave, read_sign
from agentd.core.errors import AgentdError, StorageError
from agentd.testing import FakeClock

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
HALF = timedelta(minutes=30)
SIGN = LifeSign(NOON, 5000.0, NOON + HALF, HALF)


@pytest.mark.parametrize(
    ("now", "awake", "is_missed"),
    [
        pytest.param(60, 60, False, id="twice the interval is not over"),
        pytest.param(61, 61, True, id="it is over"),
        pytest.param(600, 20, False, id="the machine slept"),
        pytest.param(600, 61, True, id="it slept and was awake for long enough"),
        pytest.param(-600, 61, True, id="the clock was set back"),
        pytest.param(9000, 5, False, id="the clock was set ahead"),
    ],
)
def test_only_time_awake_counts(now: int, awake: int, is_missed: bool) -> None:
    at = NOON + timedelta(minutes=now)
    assert SIGN.is_missed(at, SIGN.awake + awake * 60) == is_missed


@pytest.mark.parametrize(
    ("now", "awake", "is_missed"), [(600, 10, False), (600, 31, True), (10, 31, False)]
)
def test_after_a_restart_of_the_machine_it_gets_its_time_anew(
    now: int, awake: int, is_missed: bool
) -> None:
    assert SIGN.is_missed(NOON + timedelta(minutes=now), awake * 60) == is_missed


def test_a_sign_is_found_as_it_was_left(tmp_path: Path) -> None:
    file = tmp_path / "state" / "heartbeat.json"
    assert read_sign(file) is None
    leave(file, SIGN)
    leave(file, SIGN)
    assert read_sign(file) == SIGN
    assert file.stat().st_mode & 0o777 == 0o600
    for nonsense in ("", "[]", '{"due": null}', '{"written": 3}'):
        file.write_text(nonsense)
        with pytest.raises(AgentdError, match="no sign of life"):
            read_sign(file)


class Heart:
    """A heartbeat that is due when it says so."""

    patience = HALF

    def __init__(self) -> None:
        self.due: datetime | None = NOON
        self.is_broken = False
        self.ticks = 0

    async def tick(self) -> None:
        self.ticks += 1
        if self.is_broken:
            raise StorageError

    async def next_due(self) -> datetime | None:
        return self.due


async def test_a_sign_is_left_when_the_due_time_has_changed_and_not_by_a_tick_that_fails(
    tmp_path: Path,
) -> None:
    file, heart, clock = tmp_path / "heartbeat.json", Heart(), FakeClock()
    signs = LifeSigns(heart, file, clock)
    await signs.end()
    assert not file.exists()
    await signs.tick()
    first = read_sign(file)
    assert first is not None
    assert (first.due, first.grace) == (NOON, HALF + timedelta(minutes=1))
    await clock.advance(60)
    await signs.tick()
    assert read_sign(file) == first, "nothing is written while nothing changes"
    heart.due, heart.is_broken = NOON + HALF, True
    with pytest.raises(StorageError):
        await signs.tick()
    assert read_sign(file) == first
    heart.is_broken = False
    await signs.tick()
    second = read_sign(file)
    assert second is not None
    assert second.due == await signs.next_due() == NOON + HALF
    await signs.end()
    last = read_sign(file)
    assert last is not None
    assert last.is_last


async def test_a_sign_that_cannot_be_left_keeps_no_beat_from_coming_and_is_left_later(
    tmp_path: Path,
) -> None:
    heart, folder = Heart(), tmp_path / "state"
    folder.write_text("in the way")
    signs = LifeSigns(heart, folder / "heartbeat.json", FakeClock())
    with capture_logs() as logs:
        for _ in range(3):
            await signs.tick()
    assert heart.ticks == 3
    assert [record["event"] for record in logs] == ["life_sign_not_left"]
    folder.unlink()
    await signs.tick()
    assert read_sign(folder / "heartbeat.json") is not None
