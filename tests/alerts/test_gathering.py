"""Quiet hours and digests, from the outbox to the sinks: each alert at least once, none twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentd.automation.alerts.alert_settings import SinkSettings
from agentd.automation.alerts.dispatch import Dispatcher
from agentd.core.alert import (
    Alert,
    AlertSeverity,
    DeliveryState,
    NewAlert,
    Recipients,
    alert_digest,
)
from agentd.core.errors import AgentdError
from agentd.storage.migrations import STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock

EVENING = datetime(2026, 5, 4, 21, 50, tzinfo=UTC)
NIGHT = SinkSettings(quiet_hours_start="22:00", quiet_hours_end="07:00")  # type: ignore[arg-type]  # as the file has it
QUARTER = SinkSettings(digest=timedelta(minutes=15))


class Phone:
    """Takes alerts with the minute at which they came, or fails while it is off."""

    def __init__(self, name: str, clock: FakeClock) -> None:
        self.name = name
        self.is_off = False
        self.tries = 0
        self.taken: list[tuple[str, str]] = []
        self._clock = clock

    async def send(self, alert: Alert) -> None:
        self.tries += 1
        if self.is_off:
            raise AgentdError(f"{self.name} is off")
        self.taken.append((f"{self._clock.now():%H:%M}", alert.told))


class Evening:
    """A dispatcher over a real outbox, with a phone that has wishes and one that has none."""

    def __init__(self, db: Database, wishes: SinkSettings) -> None:
        self._db = db
        self.clock = FakeClock(EVENING)
        self.outbox = SqliteOutbox(db, self.clock)
        self.phone, self.plain = Phone("phone", self.clock), Phone("plain", self.clock)
        self.timings = {"phone": wishes.timing(self.clock.zone)}
        self.to = Recipients(("phone", "plain"), least={"phone": wishes.severity})
        self.dispatcher = self.another()

    def another(self) -> Dispatcher:
        """What a new daemon makes of the same outbox."""
        self.dispatcher = Dispatcher(
            self.outbox, (self.phone, self.plain), self.clock, timings=self.timings, max_tries=34
        )
        return self.dispatcher

    async def tell(self, text: str, severity: AlertSeverity = AlertSeverity.INFO) -> Alert | None:
        alert = self.to.alert(text, "test", alert_digest(text), severity=severity)
        put = await self.outbox.put(alert)
        self.dispatcher.wake()
        await self.pass_by(0)
        return put

    async def pass_by(self, minutes: float, step: float = 1) -> None:
        """Time goes by, so many minutes at a step. What the store's thread was asked for before is
        done when it answers.
        """
        for _ in range(max(1, int(minutes / step))):
            await self.clock.advance(min(minutes, step) * 60)
            for _ in range(20):
                await self._db.read(lambda _: None)
                await self.clock.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.dispatcher.run())
            await self.pass_by(0)
            yield
            task.cancel()


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database.open(tmp_path / "state.db", STATE) as db:
        yield db


async def test_what_comes_in_the_quiet_hours_comes_as_one_message_in_the_morning(
    db: Database,
) -> None:
    evening = Evening(db, NIGHT)
    async with evening.running():
        await evening.tell("before")
        await evening.pass_by(20)
        await evening.tell("one")
        await evening.pass_by(60, step=10)
        await evening.tell("two")
        await evening.pass_by(460, step=10)
        await evening.pass_by(9)
        assert evening.phone.taken == [("21:50", "before")]
        await evening.pass_by(3)
    ((at, text),) = evening.phone.taken[1:]
    assert at in {"07:00", "07:01"}  # it looks once a minute
    assert text == "2 alerts\n\nMon 22:10 one\n\nMon 23:10 two"
    assert [text for _, text in evening.plain.taken] == ["before", "one", "two"]
    assert {state for a in await evening.outbox.alerts(9) for state in a.delivered.values()} == {
        DeliveryState.SENT
    }


async def test_what_is_urgent_wakes_the_user(db: Database) -> None:
    evening = Evening(db, NIGHT)
    async with evening.running():
        await evening.pass_by(30)
        await evening.tell("quiet")
        await evening.tell("the cellar is under water", AlertSeverity.URGENT)
        assert evening.phone.taken == [("22:20", "the cellar is under water")]


async def test_a_digest_gathers_what_comes_within_it(db: Database) -> None:
    evening = Evening(db, QUARTER)
    async with evening.running():
        await evening.tell("one")
        await evening.pass_by(10)
        await evening.tell("two")
        assert evening.phone.taken == []
        await evening.pass_by(6)
        assert [text for _, text in evening.phone.taken] == [
            "2 alerts\n\nMon 21:50 one\n\nMon 22:00 two"
        ]
        await evening.tell("three")
        await evening.pass_by(16)
    assert evening.phone.taken[1][1] == "three"
    assert len(evening.phone.taken) == 2


async def test_what_is_held_survives_a_restart_and_is_told_once(db: Database) -> None:
    evening = Evening(db, QUARTER)
    async with evening.running():
        await evening.tell("one")
    evening.another()
    async with evening.running():
        await evening.pass_by(5)
        await evening.tell("two")
    evening.another()
    async with evening.running():
        assert evening.phone.taken == []
        await evening.pass_by(60)
    assert [text for _, text in evening.phone.taken] == [
        "2 alerts\n\nMon 21:50 one\n\nMon 21:55 two"
    ]
    assert len(evening.plain.taken) == 2


async def test_a_phone_that_was_off_for_hours_repeats_nothing_to_the_other(db: Database) -> None:
    """A failing sink beside a good one, a restart in the middle of the tries, and equal texts."""
    evening = Evening(db, SinkSettings())
    evening.phone.is_off = True
    async with evening.running():
        assert await evening.tell("the door is open") is not None
        await evening.pass_by(30)
        assert await evening.tell("the door is open") is None
    tries = evening.phone.tries
    assert tries > 5
    (alert,) = await evening.outbox.alerts(9)
    assert [(one.sink, str(one.state), one.error) for one in alert.handovers] == [
        ("phone", "pending", "phone is off"),
        ("plain", "sent", ""),
    ]
    evening.another()
    async with evening.running():
        assert evening.phone.tries == tries, "a restart is no reason to try sooner"
        await evening.pass_by(180, step=10)
        evening.phone.is_off = False
        await evening.pass_by(61)
    assert [text for _, text in evening.phone.taken] == ["the door is open"]
    assert [text for _, text in evening.plain.taken] == ["the door is open"]


async def test_a_message_of_several_that_fails_is_tried_again_whole(db: Database) -> None:
    evening = Evening(db, QUARTER)
    evening.phone.is_off = True
    async with evening.running():
        await evening.tell("one")
        await evening.tell("two")
        await evening.pass_by(17)
        assert evening.phone.tries > 1
        evening.phone.is_off = False
        await evening.pass_by(60)
    assert [text for _, text in evening.phone.taken] == [
        "2 alerts\n\nMon 21:50 one\n\nMon 21:50 two"
    ]


async def test_a_sink_gets_what_is_severe_enough_for_it(db: Database) -> None:
    evening = Evening(db, SinkSettings(severity=AlertSeverity.WARNING))
    async with evening.running():
        await evening.tell("chatter")
        await evening.tell("the disk is nearly full", AlertSeverity.WARNING)
    assert [text for _, text in evening.phone.taken] == ["the disk is nearly full"]
    assert len(evening.plain.taken) == 2


async def test_a_test_alert_goes_to_every_sink_at_any_hour(db: Database) -> None:
    wishes = SinkSettings(
        severity=AlertSeverity.URGENT,
        quiet_hours_start="21:00",  # type: ignore[arg-type]  # as the file has it
        quiet_hours_end="07:00",  # type: ignore[arg-type]  # as the file has it
        digest=timedelta(hours=1),
    )
    evening = Evening(db, wishes)
    async with evening.running():
        await evening.dispatcher.test()
        await evening.pass_by(0)
    assert len(evening.phone.taken) == len(evening.plain.taken) == 1


async def test_how_each_sink_fares_is_told(db: Database) -> None:
    evening = Evening(db, NIGHT)
    evening.phone.is_off = True
    async with evening.running():
        await evening.tell("one")
        phone, plain = await evening.dispatcher.standings()
    assert (phone["sink"], phone["waiting"], phone["error"]) == ("phone", 1, "phone is off")
    assert (phone["quiet_hours"], phone["severity"], phone["digest"]) == ("22:00-07:00", "info", "")
    assert phone["next_try"] is not None
    assert (plain["waiting"], plain["failed"], plain["error"]) == (0, 0, "")
    assert plain["sent_at"] is not None


async def test_an_alert_for_nobody_is_recorded(db: Database) -> None:
    evening = Evening(db, NIGHT)
    await evening.outbox.put(NewAlert("x", "test", "d", ()))
    assert (await evening.outbox.alerts(1))[0].handovers == ()
