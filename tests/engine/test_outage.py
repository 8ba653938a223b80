"""Messages wait while the model's service is away, over restarts, and are answered once, in
order.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.core.errors import ShuttingDown
from agentd.core.event import AnswerWaits, TurnStarted
from agentd.core.prompt import Prompt
from agentd.core.transcript import RowRole
from agentd.core.turn import MAIN, Origin, PromptScope, SessionKey, StopReason, TurnRequest
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.providers.faults import FAULTS, failure
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.resilience import CircuitBreaker, RetryingProvider
from agentd.testing import ScriptedProvider, call, check_messages

HOURS = timedelta(hours=1)
MINUTE = 60.0
WAITING = ("rate_limited", "overloaded", "server_error", "server_timeout", "connect")
WAITING = (*WAITING, "connect_timeout", "timeout", "stream_cut", "bad_certificate")
SESSIONS = ("main", "chat:a", "chat:b")


class Service(ScriptedProvider):
    """A service that fails with `fault` while one is set, and counts the calls that reach it."""

    def __init__(self) -> None:
        super().__init__(default=lambda prompt: f"answer to {_asked(prompt)}")
        self.fault = ""
        self.failing = lambda: None  # called before it fails
        self.calls = 0
        self.inside = self.most = 0

    async def stream(self, prompt: Prompt):
        self.calls += 1
        if self.fault:
            self.failing()
            raise failure(self.fault)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            async for event in super().stream(prompt):
                yield event
        finally:
            self.inside -= 1


def _asked(prompt: Prompt) -> str:
    return prompt.messages[-1].blocks[-1].text


@pytest.fixture
async def world(world):
    world.service_double = Service()
    world.patience = 6 * HOURS
    await begin(world)
    return world


async def begin(world) -> None:
    """Start the engine over the service, in the wrappers that a daemon puts around it."""
    calls = RetryingProvider(
        world.service_double, ServiceSettings(), world.clock, chance=lambda: 0.0
    )
    world.provider = CircuitBreaker(calls, world.clock)
    await world.start()


async def restart(world) -> None:
    await world.sessions.drain(0)
    await world.stop()
    await begin(world)
    await settled(world)


async def settled(world) -> None:
    """Until nothing goes on but waiting."""
    for _ in range(12):
        await world.clock.settle()
        await world.db.read(lambda conn: None)


async def pass_time(world, seconds: float, step: float = 5 * MINUTE) -> None:
    """Let time go on while the engine works."""
    left = seconds
    while left > 0:
        await world.clock.advance(min(step, left))
        await settled(world)
        left -= step


async def outcomes(world) -> dict[str, str]:
    """Each message that has ended: what it came to."""

    def find(conn):
        found = conn.execute("SELECT message_id, outcome FROM turns WHERE outcome IS NOT NULL")
        return {row["message_id"]: row["outcome"] for row in found}

    return await world.db.read(find)


def silent(session: str, name: str, origin: Origin) -> TurnRequest:
    return TurnRequest(SessionKey(session), "look", name, origin, PromptScope.LIGHT)


@pytest.mark.parametrize("fault", FAULTS)
async def test_six_hours_with_every_fault(world, fault) -> None:
    """Three sessions, two messages in the first, a beat and a job every half an hour, a restart
    every hour and a half; the service is back after five and a half hours.
    """
    service = world.service_double
    await world.say("hello", "before")
    service.fault = fault
    sent = {f"{session}-1": session for session in SESSIONS} | {"main-2": "main"}
    sent_at = world.clock.now()
    for name, session in sent.items():
        await world.submit(f"question {name}", name, session)
        await settled(world)
    await pass_time(world, 3 * MINUTE, 30.0)
    if fault not in WAITING:
        # Summing up waits by the clock between its tries, however late this machine lets it begin.
        while not (ended := await outcomes(world)).keys() >= sent.keys():
            assert world.clock.now() < sent_at + HOURS
            await pass_time(world, 30.0, 30.0)
        assert all(f"provider_{fault}" in ended[name] or "breaker" in ended[name] for name in sent)
        return
    before = service.calls
    for half in range(1, 12):
        for origin in (Origin.HEARTBEAT, Origin.JOB):
            assert not any(world.sessions.is_busy(SessionKey(key)) for key in SESSIONS)
            request = silent("main", f"{origin}:{half}", origin)
            ticket = await world.sessions.submit(request)
            await pass_time(world, MINUTE, 15.0)
            assert (await ticket.wait()).failure is not None
        await pass_time(world, 28 * MINUTE)
        if half % 3 == 0:
            await restart(world)
            await pass_time(world, MINUTE, 5.0)
        (problem,) = world.outage.problems()
        assert problem.code == "service_away"
        assert not (await outcomes(world)).keys() & sent.keys()
    per_hour = (service.calls - before) / 5.5
    assert per_hour <= 40, "one probe for all, with four tries, at most every ten minutes or so"
    service.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    ended = await outcomes(world)
    for name in sent:
        assert f"answer to question {name}" in ended[name]
    assert service.most == 1
    assert world.outage.problems() == ()
    said = [r.text for r in await world.store.rows(MAIN) if r.role.is_spoken]
    assert said == [
        *("hello", "answer to hello"),
        *("question main-1", "answer to question main-1"),
        *("question main-2", "answer to question main-2"),
    ]
    late = [p for p in service.prompts if "question" in _asked(p)]
    assert len(late) == 4
    assert all("[This message was sent Saturday 2026-11-21 12:" in str(p.messages) for p in late)
    for prompt in service.prompts:
        check_messages(prompt.messages)


async def test_one_tries_for_all_however_many_wait(world) -> None:
    service = world.service_double
    await world.say("hello")
    service.fault = "overloaded"
    calls = []
    for count in (1, 15):
        for n in range(count):
            await world.submit("question", f"{count}-{n}", f"chat:{count}-{n}")
        await pass_time(world, 30 * MINUTE, MINUTE)
        before = service.calls
        await pass_time(world, 120 * MINUTE, MINUTE)
        calls.append(service.calls - before)
    few, many = calls
    assert 0 < many <= few + 4
    service.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert len(await outcomes(world)) == 1 + 1 + 15
    assert service.most == 1, "and then one after the other"


async def test_a_message_is_given_up_when_its_patience_ends(world) -> None:
    service = world.service_double
    await world.say("hello")
    service.fault = "overloaded"
    first = await world.submit("first", "first")
    await pass_time(world, 60 * MINUTE)
    await world.submit("second", "second", "chat:b")
    await restart(world)
    with pytest.raises(ShuttingDown):
        await first.wait()
    await pass_time(world, 4 * 60 * MINUTE + 50 * MINUTE)
    assert not {"first", "second"} & (await outcomes(world)).keys()
    await pass_time(world, 15 * MINUTE)
    ended = await outcomes(world)
    assert "provider_overloaded" in ended["first"]
    assert "has waited 6h" in ended["first"]
    assert "second" not in ended
    await pass_time(world, 60 * MINUTE)
    assert "has waited 6h" in (await outcomes(world))["second"]
    service.fault = ""
    await pass_time(world, 12 * MINUTE)
    await world.say("later", "later")
    assert "first" not in [b.text for m in service.prompts[-1].messages for b in m.blocks]


async def test_a_message_whose_last_try_outlasts_its_patience_says_how_long_it_has_waited(world):
    service = world.service_double
    await world.say("hello")
    service.fault = "overloaded"
    service.failing = lambda: world.clock.jump(timedelta(hours=7))
    ticket = await world.submit("slow", "slow")
    await pass_time(world, 10 * MINUTE)
    assert "has waited 6h" in (await ticket.wait()).failure.message


async def test_nothing_waits_for_a_configuration_that_has_never_worked(world) -> None:
    world.service_double.fault = "connect"
    ticket = await world.submit("hello")
    await pass_time(world, MINUTE, 5.0)
    assert (await ticket.wait()).failure.code == "provider_connect"
    world.service_double.fault = ""
    await pass_time(world, MINUTE)
    assert (await world.say("again")).failure is None
    await world.stop()
    world.service = "another digest"  # of other settings
    await begin(world)
    world.service_double.fault = "connect"
    ticket = await world.submit("and now")
    await pass_time(world, MINUTE, 5.0)
    assert (await ticket.wait()).failure.code == "provider_connect"


async def test_a_message_without_patience_fails_as_before_while_others_wait(world) -> None:
    await world.say("hello")
    world.service_double.fault = "overloaded"
    await world.submit("waits", "waits")
    await pass_time(world, MINUTE, 5.0)
    world.patience = timedelta(0)
    ticket = await world.submit("fails", "fails", "chat:b")
    await pass_time(world, MINUTE, 5.0)
    assert (await ticket.wait()).failure is not None
    assert "waits" not in await outcomes(world)


async def test_each_message_that_waits_can_be_cancelled(world) -> None:
    await world.say("hello")
    world.service_double.fault = "overloaded"
    tickets = {name: await world.submit(name, name) for name in ("first", "second", "third")}
    other = await world.submit("other", "other", "chat:b")
    await pass_time(world, MINUTE, 5.0)
    assert world.sessions.cancel_message(MAIN, "second")
    assert (await tickets["second"].wait()).stop_reason is StopReason.CANCELLED
    assert world.sessions.cancel(MAIN)
    assert (await tickets["first"].wait()).stop_reason is StopReason.CANCELLED
    assert not world.sessions.cancel_message(MAIN, "unknown")
    world.service_double.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert (await tickets["third"].wait()).text == "answer to third"
    assert (await other.wait()).text == "answer to other"
    asked = [_asked(p) for p in world.service_double.prompts]
    assert asked == ["hello", *sorted(["other", "third"], key=asked.index)]


async def test_watchers_are_told_once_in_words_and_see_the_message_once(world) -> None:
    await world.say("hello")
    world.service_double.fault = "overloaded"
    await world.submit("waits", "waits")
    await pass_time(world, 60 * MINUTE)
    world.service_double.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert "waits" in await outcomes(world)
    events = [e for e in world.events.events if isinstance(e, AnswerWaits)]
    assert [e.is_new for e in events] == [True, *[False] * (len(events) - 1)]
    assert "The service is overloaded." in events[0].text
    assert "until 2026-11-21 18:00" in events[0].text
    assert all(e.seconds > 0 for e in events)
    assert len([e for e in world.events.of(TurnStarted) if e.message_id == "waits"]) == 1


async def test_an_outage_in_the_middle_of_a_turn_repeats_no_tool(world) -> None:
    service = world.service_double
    await world.say("hello")

    def reply(prompt: Prompt):
        service.fault = "overloaded"
        return call("memory_write", "w1", content="Max is the dog")

    service.say(reply)
    await world.submit("remember Max", "m")
    await pass_time(world, 30 * MINUTE)
    await restart(world)
    await pass_time(world, 30 * MINUTE)
    service.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert "m" in await outcomes(world)
    assert world.workspace.text("memory/2026-11-21.md").count("Max is the dog") == 1
    rows = await world.store.rows(MAIN)
    assert [r.role for r in rows].count(RowRole.NOTICE) == 0
    for prompt in service.prompts:
        check_messages(prompt.messages)


async def test_probes_that_a_stop_ends_do_not_count_as_crashes(world) -> None:
    await world.say("hello")
    world.service_double.fault = "connect"
    await world.submit("waits", "waits")
    for _ in range(6):
        await pass_time(world, 11 * MINUTE, MINUTE)
        await restart(world)
    world.service_double.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert "answer to waits" in (await outcomes(world))["waits"]


async def test_an_outage_costs_no_memories_and_no_summary(world) -> None:
    """Rows that are due for a flush stay due; nothing is recorded as lost, nothing replaced by
    rule.
    """
    await world.stop()
    world.window = 8_000
    world.compaction_settings = CompactionSettings(background=True)
    await begin(world)
    for n in range(9):
        await world.say(f"message {n} {'blah ' * 400}")
        if n == 6:
            world.service_double.fault = "overloaded"
            break
    await world.submit(f"more {'blah ' * 400}", "more")
    await pass_time(world, 3 * 60 * MINUTE)
    assert all(c.ok for c in await world.store.coverages(MAIN))
    assert (await world.store.load(MAIN)).trouble.failures == 0
    world.service_double.fault = ""
    await pass_time(world, 12 * MINUTE, MINUTE)
    assert "more" in await outcomes(world)


async def test_a_session_whose_flush_an_outage_has_cut_can_be_deleted(world) -> None:
    await world.say("hello", session="chat:a")
    world.service_double.fault = "overloaded"
    report = world.requests.flush(SessionKey("chat:a"))
    async with asyncio.TaskGroup() as group:
        flushing = group.create_task(report)
        await pass_time(world, MINUTE, 5.0)
    assert flushing.result().reason == "provider_overloaded"
    await world.requests.delete(SessionKey("chat:a"))
    assert not await world.store.exists(SessionKey("chat:a"))
