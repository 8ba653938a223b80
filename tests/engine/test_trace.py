"""What is logged during a turn says of which session, turn and origin it is, silent turns too."""

from __future__ import annotations

from typing import Any

import structlog
from structlog.testing import LogCapture

from agentd.core.turn import MAIN, Origin, TurnRequest

log = structlog.get_logger()

MARKS = ("session", "turn", "origin")


class Logging:
    """A provider that logs when it is asked."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.name, self.model = inner.name, inner.model

    async def stream(self, prompt: Any) -> Any:
        log.info("asked")
        async for event in self.inner.stream(prompt):
            yield event


def captured(world: Any) -> LogCapture:
    capture = LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, capture])
    world.stack.callback(structlog.reset_defaults)
    return capture


async def test_every_line_of_a_turn_carries_its_marks(world) -> None:
    capture = captured(world)
    inner, world.provider = world.provider, Logging(world.provider)
    await world.start()
    inner.say("Hello Ada")
    await world.say("a word that nobody else uses: xylophone")
    request = TurnRequest(MAIN, "look around", "beat:1", origin=Origin.HEARTBEAT)
    await (await world.sessions.submit(request)).wait()
    lines = [e for e in capture.entries if e["event"] in ("asked", "turn_ended")]
    assert [(e["event"], e["session"], e["origin"]) for e in lines] == [
        ("asked", "main", "user"),
        ("turn_ended", "main", "user"),
        ("asked", "main", "heartbeat"),
        ("turn_ended", "main", "heartbeat"),
    ]
    first, second = {e["turn"] for e in lines[:2]}, {e["turn"] for e in lines[2:]}
    assert len(first) == len(second) == 1
    assert first != second
    assert "xylophone" not in repr(capture.entries)
    assert "Hello Ada" not in repr(capture.entries)


async def test_a_flush_is_a_turn_of_its_own_and_marks_end_with_it(world) -> None:
    capture = captured(world)
    inner, world.provider = world.provider, Logging(world.provider)
    await world.start()
    await world.say("one")
    inner.say("NO_REPLY")
    await world.requests.flush(MAIN)
    asked = [e for e in capture.entries if e["event"] == "asked"]
    assert [e["origin"] for e in asked] == ["user", "flush"]
    assert asked[0]["turn"] != asked[1]["turn"]
    log.info("outside")
    assert not set(MARKS) & set(capture.entries[-1])


async def test_the_end_of_a_turn_that_never_ran_has_its_line(world) -> None:
    capture = captured(world)
    await world.start(begin=False)
    ticket = await world.submit("hello")
    assert world.sessions.cancel(MAIN)
    await world.sessions.start()
    await ticket.wait()
    [line] = [e for e in capture.entries if e["event"] == "turn_ended"]
    assert (line["session"], line["outcome"]) == ("main", "cancelled")
