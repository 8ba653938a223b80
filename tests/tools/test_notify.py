from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from agentd.automation.alerts.dispatch import Dispatcher
from agentd.core.alert import Alert, NewAlert, Recipients, alert_digest
from agentd.core.errors import ToolFailed
from agentd.core.prompt import Effect
from agentd.core.tool import ToolCall
from agentd.core.turn import Origin, SessionKey, kind_of
from agentd.interfaces.tools.notify import Notify
from agentd.testing import FakeClock, MemoryOutbox


class ListOutbox:
    def __init__(self) -> None:
        self.stored: list[NewAlert] = []

    async def put(self, alert: NewAlert) -> Alert | None:
        if any(a.digest == alert.digest for a in self.stored):
            return None
        self.stored.append(alert)
        return Alert(len(self.stored), FakeClock().now(), alert.text, alert.origin)


def told(text: str, session: str = "main", origin: Origin = Origin.HEARTBEAT) -> ToolCall:
    key = SessionKey(session)
    return ToolCall("c", "notify", {"text": text}, key, kind_of(key), origin)


def tool():
    outbox = ListOutbox()
    return Notify(outbox, _recipients, lambda: None), outbox


def _recipients(origin: Origin) -> Recipients:
    return Recipients((f"sink-{origin}",), "me")


class OneSink:
    """A sink that takes everything."""

    name = "sink-user"

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def send(self, alert: Alert) -> None:
        self.taken.append(alert.text)


async def test_an_alert_of_a_chat_leaves_at_once() -> None:
    clock, sink = FakeClock(), OneSink()
    outbox = MemoryOutbox(clock)
    dispatcher = Dispatcher(outbox, [sink], clock)
    notify = Notify(outbox, _recipients, dispatcher.wake)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(dispatcher.run())
        await clock.settle()  # it has found nothing, and sleeps until it is woken
        await notify.run(told("Backup failed!", origin=Origin.USER), None)
        await clock.settle()
        running.cancel()
    assert sink.taken == ["Backup failed!"]


async def test_an_alert_goes_to_the_targets_of_its_origin_once():
    notify, outbox = tool()
    assert notify.spec.effect is Effect.IDEMPOTENT
    first = await notify.run(told(" Backup failed! "), None)
    (alert,) = outbox.stored
    assert (alert.text, alert.origin, alert.sinks, alert.to) == (
        "Backup failed!",
        "heartbeat",
        ("sink-heartbeat",),
        "me",
    )
    out = await notify.run(told("backup  FAILED!"), None)
    assert "not sent again" in out.text
    assert (first.is_repetition, out.is_repetition) == (False, True)
    assert len(outbox.stored) == 1


@pytest.mark.parametrize("text", ["", " \n", "x" * 4001])
async def test_texts_that_are_no_alert(text):
    notify, outbox = tool()
    with pytest.raises(ToolFailed):
        await notify.run(told(text), None)
    assert outbox.stored == []


@pytest.mark.parametrize("session", ["group:a", "isolated:a", "unknown"])
async def test_others_cannot_reach_the_owner(session):
    notify, outbox = tool()
    with pytest.raises(ToolFailed):
        await notify.run(told("hi", session, Origin.USER), None)
    assert outbox.stored == []


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("Disk full", "disk\n full ", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("STRASSE", "stra\u00dfe", True),
        ("disk 90 %", "disk 91 %", False),
        ("a b", "ab", False),
    ],
)
def test_equal_alerts_are_those_with_the_same_words(one, other, equal):
    assert (alert_digest(one) == alert_digest(other)) is equal


@pytest.mark.parametrize(("tainted", "severity"), [(False, "urgent"), (True, "warning")])
async def test_it_is_urgent_unless_others_had_a_part_in_it(tainted, severity):
    notify, outbox = tool()
    await notify.run(replace(told("the cellar is under water"), tainted=tainted), None)
    assert outbox.stored[0].severity == severity


async def test_the_owners_turns_may_notify_and_beats(tools_offered) -> None:
    assert "notify" in await tools_offered("main")
    assert "notify" in await tools_offered("beat")
    assert "notify" not in await tools_offered("group:club")
