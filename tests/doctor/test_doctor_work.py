"""Each check of the daemon's work finds its defect, and says well once that is cured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from agentd.app.doctor.examine import examine
from agentd.app.doctor.work_checks import (
    BudgetsCheck,
    ClockDriftCheck,
    DeliveryCheck,
    FlushesCheck,
    ProblemsCheck,
    RetentionCheck,
    ServiceCheck,
    TicksCheck,
    UnfinishedTurnsCheck,
    WindowCheck,
)
from agentd.core.alert import NewAlert, alert_digest
from agentd.core.errors import ProviderError, StorageError
from agentd.core.health import Finding, Problem
from agentd.core.message import Text, user
from agentd.core.prompt import Prompt
from agentd.core.retention import Retained
from agentd.core.transcript import Coverage, NewRow, RowRole
from agentd.core.turn import MAIN, Origin, StopReason, Turn, TurnRequest, Usage
from agentd.providers.faults import FAULTS, failure
from agentd.providers.resilience import CircuitBreaker
from agentd.testing import FakeClock, MemoryOutbox, MemorySessions, ScriptedProvider


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> MemorySessions:
    return MemorySessions(clock)


async def call(provider: CircuitBreaker) -> None:
    async for _ in provider.stream(Prompt((), (user("Hello"),))):
        pass


async def talk(store: MemorySessions, number: int) -> None:
    receipt = await store.receive(TurnRequest(MAIN, "hi", f"m{number}"))
    await store.begin(receipt.turn_id)
    turn = Turn(MAIN, f"m{number}", "ho", StopReason.END_TURN, Usage())
    await store.finish(receipt.turn_id, turn, (NewRow(RowRole.ASSISTANT, (Text("ho"),)),))


def level(finding: Finding) -> str:
    assert finding.text
    assert finding.level == "ok" or finding.cure
    return str(finding.level)


async def test_a_schedule_that_stopped_waking_fails_until_it_wakes() -> None:
    ages: dict[str, float] = {}
    check = TicksCheck(lambda: ages, 60)
    assert level(await check.look()) == "fail"
    ages |= {"heartbeat": 121, "jobs": 3}
    assert level(found := await check.look()) == "fail"
    assert "heartbeat" in found.text
    assert "jobs" not in found.text
    ages["heartbeat"] = 119
    assert level(await check.look()) == "ok"


async def test_rows_that_were_cut_unsaved_are_told_until_a_flush_covers_them(
    store: MemorySessions,
) -> None:
    for number in range(4):
        await talk(store, number)
    check = FlushesCheck(store, enabled=True)
    assert level(await check.look()) == "ok", "nothing was cut"
    assert await store.swap(MAIN, 0, 7, "what was said before")
    assert level(found := await check.look()) == "warn"
    assert "main" in found.text
    await store.cover(MAIN, Coverage(1, 4, ok=True, reason="flushed"))
    assert level(await check.look()) == "warn", "rows 5 and 6 are not covered"
    await store.cover(MAIN, Coverage(5, 8, ok=True, reason="flushed"))
    assert level(await check.look()) == "ok"
    assert level(await FlushesCheck(store, enabled=False).look()) == "ok"


async def test_a_failed_flush_is_told_until_one_works(store: MemorySessions) -> None:
    await talk(store, 1)
    check = FlushesCheck(store, enabled=True)
    await store.flush_failed(MAIN, "empty")
    assert level(await check.look()) == "warn"
    await store.cover(MAIN, Coverage(1, 1, ok=False, reason="gave up"))
    assert level(await check.look()) == "warn"
    await store.cover(MAIN, Coverage(2, 2, ok=True, reason="flushed"))
    assert level(await check.look()) == "warn", "the first row is still not saved"
    await store.cover(MAIN, Coverage(1, 1, ok=True, reason="flushed"))
    assert level(await check.look()) == "ok"
    await store.cover(MAIN, Coverage(900, 901, ok=False, reason="gave up"))
    assert level(await check.look()) == "ok", "no row of these is left"


async def test_a_turn_that_begins_again_and_again_is_told_until_it_ends(
    store: MemorySessions,
) -> None:
    receipt = await store.receive(TurnRequest(MAIN, "hi", "m1"))
    await store.begin(receipt.turn_id)
    check = UnfinishedTurnsCheck(store)
    assert level(await check.look()) == "ok"
    await store.begin(receipt.turn_id)
    assert level(found := await check.look()) == "warn"
    assert f"--turn {receipt.turn_id}" in found.cure
    turn = Turn(MAIN, "m1", "", StopReason.END_TURN, Usage())
    await store.finish(receipt.turn_id, turn)
    assert level(await check.look()) == "ok"


async def test_an_alert_that_was_given_up_is_told_until_it_is_acknowledged(
    clock: FakeClock,
) -> None:
    outbox = MemoryOutbox(clock)
    alert = await outbox.put(NewAlert("x", "test", alert_digest("x"), ("webhook", "socket")))
    await outbox.retry(alert.id, "socket", None)
    check = DeliveryCheck(outbox)
    assert level(await check.look()) == "ok", "nobody was looking"
    await outbox.retry(alert.id, "webhook", None)
    assert level(found := await check.look()) == "warn"
    assert f"agentd alerts ack {alert.id}" in found.cure
    await outbox.ack(alert.id)
    assert level(await check.look()) == "ok"


@pytest.mark.parametrize(
    ("fixed", "effective", "expected"),
    [
        (2_000, 100_000, "ok"),
        (2_000, 90_000, "warn"),
        (20_000, 100_000, "warn"),
        (40_000, 100_000, "fail"),
    ],
)
async def test_a_window_that_the_prompt_fills_or_that_is_another_one_is_told(
    fixed: int, effective: int, expected: str
) -> None:
    async def measure() -> int:
        return fixed

    assert level(await WindowCheck(100_000, effective, 76_000, measure).look()) == expected


@pytest.mark.parametrize(
    ("all_turns", "beats", "expected"),
    [(False, False, "ok"), (False, True, "warn"), (True, True, "fail")],
)
async def test_a_budget_that_is_used_up_is_told(
    all_turns: bool, beats: bool, expected: str
) -> None:
    async def answer(value: bool) -> bool:
        return value

    async def made(origin: Origin) -> None:
        return None

    check = BudgetsCheck(lambda: answer(all_turns), lambda: answer(beats), made)
    assert level(await check.look()) == expected


async def test_what_a_part_complains_of_fails_with_its_own_cure() -> None:
    told: list[Problem] = [Problem("breaker_open", "calls are paused", "wait"), Problem("x", "y")]
    check = ProblemsCheck(lambda: told, "it answers", "provider")
    found = await check.look()
    assert (level(found), found.cure) == ("fail", "wait")
    assert "1 more" in found.text
    told.clear()
    assert level(await check.look()) == "ok"


@pytest.mark.parametrize("kind", ["auth", "connect", "server_error", "not_found"])
async def test_a_service_that_has_not_answered_is_not_said_to(clock: FakeClock, kind: str) -> None:
    model = ScriptedProvider(failure(kind))
    breaker = CircuitBreaker(model, clock)
    check = ServiceCheck(breaker.problems, breaker.heard, clock)
    assert "not been asked" in (await check.look()).text
    with pytest.raises(ProviderError):
        await call(breaker)
    found = await check.look()
    assert (level(found), found.cure) == ("fail", FAULTS[kind].cure)
    assert FAULTS[kind].message in found.text
    model.say("hello")
    await call(breaker)
    clock.jump(timedelta(minutes=3))
    found = await check.look()
    assert level(found) == "ok"
    assert "answered 3m ago" in found.text


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("connect", "warn"), ("bad_request", "warn"), ("auth", "fail"), ("budget", "ok")],
)
async def test_how_the_last_call_failed_is_told_beside_the_last_answer(
    clock: FakeClock, kind: str, expected: str
) -> None:
    breaker = CircuitBreaker(ScriptedProvider("hello", failure(kind)), clock)
    check = ServiceCheck(breaker.problems, breaker.heard, clock)
    await call(breaker)
    with pytest.raises(ProviderError):
        await call(breaker)
    found = await check.look()
    assert level(found) == expected
    assert "answered" in found.text


async def test_a_model_that_is_built_in_is_not_asked_for_its_last_answer(clock: FakeClock) -> None:
    found = await ServiceCheck(tuple, None, clock).look()
    assert (level(found), found.text) == ("ok", "the built-in model answers")


async def test_a_clock_that_was_set_back_is_told_and_a_sleep_is_not(clock: FakeClock) -> None:
    check = ClockDriftCheck(clock, clock.now(), clock.monotonic())
    clock.jump(timedelta(hours=9))
    assert level(await check.look()) == "ok"
    clock.jump(timedelta(hours=-10))
    assert level(await check.look()) == "warn"
    assert level(await ClockDriftCheck(clock, clock.now(), clock.monotonic()).look()) == "ok"


async def test_a_check_that_cannot_look_fails_and_hides_no_other() -> None:
    class Broken:
        code = "broken"

        def __init__(self, error: Exception) -> None:
            self.error = error

        async def look(self) -> Finding:
            raise self.error

    errors = [StorageError("no store", cure="restart"), OSError(13, "denied", "/x"), ValueError()]
    fine = ProblemsCheck(tuple, "all is well", "fine")
    found = await examine([*map(Broken, errors), fine])
    assert [str(f.level) for f in found] == ["fail", "fail", "fail", "ok"]
    assert (found[0].cure, found[1].text) == ("restart", "/x cannot be looked at: denied")


async def test_old_rows_that_nothing_was_saved_of_are_told_until_they_are_gone() -> None:
    gone = Retained(30, datetime(2026, 11, 21, 12, tzinfo=UTC), removed=5)
    assert level(await RetentionCheck(lambda: gone).look()) == "ok"
    left = replace(gone, kept={"timeout": 4, "disabled": 2})
    assert level(found := await RetentionCheck(lambda: left).look()) == "warn"
    assert "2 (disabled), 4 (timeout)" in found.text
    assert level(found := await RetentionCheck(lambda: Retained(0)).look()) == "ok"
    assert "for ever" in found.text
