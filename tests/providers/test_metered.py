"""Limits that hold whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from agentd.core.errors import ProviderError, StorageFull
from agentd.core.message import user
from agentd.core.prompt import (
    AnswerBegun,
    AnswerCompleted,
    Prompt,
    ProviderEvent,
    TextDelta,
    closing,
)
from agentd.core.turn import MAIN, Origin, Usage
from agentd.engine.budget import Budget, BudgetSettings, OriginBudget
from agentd.engine.queue import Interrupt, Interrupted
from agentd.providers.metered import MeteredProvider
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, MemoryLedger, ScriptedProvider

PRICES = {"m": {"input": 10.0, "output": 50.0}}
HELLO = Prompt((), (user("hello " * 100),), model="m-20261122")


def budget(**limits: object) -> Budget:
    return Budget(BudgetSettings.model_validate({"prices": PRICES, **limits}))


async def ask(
    metered: MeteredProvider, ledger, settings: Budget, prompt: Prompt = HELLO
) -> AnswerCompleted:
    """One call, charged as the engine does it."""
    async with closing(metered.stream(prompt)) as events:
        async for event in events:
            if isinstance(event, AnswerCompleted):
                cost = settings.price(event.model, event.usage)
                await ledger.charge(
                    MAIN,
                    prompt.origin,
                    event.model,
                    event.usage,
                    cost,
                    reservation=event.reservation,
                )
                return event
    raise AssertionError


async def test_a_call_whose_price_is_unknown_is_not_made_under_a_limit_in_dollars() -> None:
    clock, provider = FakeClock(), ScriptedProvider()
    ledger, settings = MemoryLedger(clock), budget(monthly_usd=1.0)
    metered = MeteredProvider(provider, ledger, settings, clock, 100)
    with pytest.raises(ProviderError, match="no price for cheapo") as error:
        await ask(metered, ledger, settings, replace(HELLO, model="cheapo"))
    assert error.value.kind == "budget"
    assert "[budget.prices" in error.value.cure
    assert provider.prompts == []
    free = budget(heartbeat_daily_tokens=5)
    metered = MeteredProvider(provider, ledger, free, clock, 100)
    assert await ask(metered, ledger, free, replace(HELLO, model="cheapo"))


def test_a_price_holds_for_dated_names_of_the_model() -> None:
    settings = budget()
    assert settings.price("m-20261122", Usage(1_000_000, 0)) == pytest.approx(10.0)
    assert settings.price("m", Usage(0, 1000, 1000, 1000)) == pytest.approx(0.05 + 0.001 + 0.0125)
    assert settings.price("other", Usage(1_000_000)) == 0.0
    assert budget(daily_usd=1).unpriced(["m-1", "x"]) == ("x",)
    assert budget().unpriced(["x"]) == ()


async def test_without_a_limit_nothing_is_reserved() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(heartbeat_daily_tokens=0)
    answer = await ask(
        MeteredProvider(ScriptedProvider(), ledger, settings, clock, 100), ledger, settings
    )
    assert answer.reservation is None
    assert len(ledger.charges) == 1


async def test_a_call_that_could_pass_the_limit_is_not_made() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(daily_usd=0.02)
    inner = ScriptedProvider()
    metered = MeteredProvider(inner, ledger, settings, clock, 1000)
    with pytest.raises(ProviderError) as refused:
        await ask(metered, ledger, settings)
    assert refused.value.kind == "budget"
    assert "daily_usd" in refused.value.message
    assert inner.prompts == []


async def test_what_a_failed_call_had_not_begun_is_given_back() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(daily_usd=0.2)
    down = ProviderError("down", kind="server_error")
    metered = MeteredProvider(ScriptedProvider(down), ledger, settings, clock, 1000)
    with pytest.raises(ProviderError):
        await ask(metered, ledger, settings)
    assert await ledger.spending(clock.now() - timedelta(days=1)) == (0, 0.0)


async def test_a_call_that_is_left_in_the_middle_is_charged_for_what_it_had_begun() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(daily_usd=10.0)
    metered = MeteredProvider(ScriptedProvider("one two three"), ledger, settings, clock, 1000)
    async with closing(metered.stream(HELLO)) as events:
        async for _ in events:
            break
    tokens, usd = await ledger.spending(clock.now() - timedelta(days=1))
    assert 170 < tokens < 300
    assert usd > 0


@pytest.mark.parametrize("limits", [{"daily_usd": 10.0}, {"heartbeat_daily_tokens": 0}])
async def test_a_failed_call_is_charged_what_the_service_counted(limits: dict[str, float]) -> None:
    clock = FakeClock()
    ledger = MemoryLedger(clock)
    silent = ProviderError("not a word", kind="empty_answer")
    silent.usage = Usage(2_000, 100)
    metered = MeteredProvider(ScriptedProvider(silent), ledger, budget(**limits), clock, 1000)
    with pytest.raises(ProviderError, match="not a word"):
        await run_through(metered)
    tokens, usd = await ledger.spending(clock.now() - timedelta(days=1))
    assert (tokens, usd) == (2_100, pytest.approx(0.025))


async def test_a_model_that_answers_by_another_name_costs_what_was_asked_for() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(daily_usd=0.2)
    upstream = ScriptedProvider(usage=Usage(1_000, 2_000), model="upstream-7")
    metered = MeteredProvider(upstream, ledger, settings, clock, 2_000)
    assert (await ask(metered, ledger, settings)).model == "m-20261122"
    _, usd = await ledger.spending(clock.now() - timedelta(days=1))
    assert usd == pytest.approx(0.11)
    with pytest.raises(ProviderError, match="daily_usd"):
        await ask(metered, ledger, settings)


@pytest.mark.parametrize("limits", [{"daily_usd": 10.0}, {"heartbeat_daily_tokens": 0}])
async def test_a_call_that_is_left_before_its_first_word_is_charged_what_it_was_sent(
    limits: dict[str, float],
) -> None:
    clock, begun = FakeClock(), asyncio.Event()
    ledger = MemoryLedger(clock)
    metered = MeteredProvider(Hanging(begun, AnswerBegun()), ledger, budget(**limits), clock, 1000)
    running = asyncio.create_task(run_through(metered))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    tokens, usd = await ledger.spending(clock.now() - timedelta(days=1))
    assert 170 < tokens < 300
    assert usd > 0


async def test_without_a_limit_a_cut_call_is_charged_too() -> None:
    clock, begun = FakeClock(), asyncio.Event()
    ledger = MemoryLedger(clock)
    metered = MeteredProvider(Hanging(begun), ledger, budget(), clock, 1000)
    running = asyncio.create_task(run_through(metered))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    tokens, _ = await ledger.spending(clock.now() - timedelta(days=1))
    assert tokens > 170


class FullLedger(MemoryLedger):
    """Has room for reservations and none for charges."""

    async def charge(self, *args: object, **kwargs: object) -> int:
        raise StorageFull("the disk is full")


class Hanging(ScriptedProvider):
    """Begins to answer, and never ends."""

    def __init__(self, begun: asyncio.Event, event: ProviderEvent | None = None) -> None:
        super().__init__()
        self._begun = begun
        self._event = event or TextDelta("one")

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        yield self._event
        self._begun.set()
        await asyncio.Event().wait()


async def run_through(metered: MeteredProvider, interrupt: Interrupt | None = None) -> None:
    async with closing(metered.stream(HELLO)) as events, (interrupt or Interrupt()).guard():
        async for _ in events:
            pass


@pytest.mark.parametrize("by", ["user", "stop"])
async def test_a_cancel_stays_one_though_the_cut_call_cannot_be_charged(by: str) -> None:
    clock, begun, interrupt = FakeClock(), asyncio.Event(), Interrupt()
    ledger = FullLedger(clock)
    metered = MeteredProvider(Hanging(begun), ledger, budget(daily_usd=10.0), clock, 1000)
    running = asyncio.create_task(run_through(metered, interrupt))
    await begun.wait()
    with capture_logs() as logs:
        if by == "user":
            interrupt.request()
        else:
            running.cancel()
        with pytest.raises(Interrupted if by == "user" else asyncio.CancelledError):
            await running
    assert [(e["event"], e["reason"]) for e in logs] == [("cut_call_not_charged", "storage_full")]
    _, usd = await ledger.spending(clock.now() - timedelta(days=1))
    assert usd > 0.05  # all that was set aside: 1000 tokens of an answer


async def test_why_a_call_failed_is_told_though_it_cannot_be_charged() -> None:
    clock = FakeClock()
    down = ProviderError("down", kind="server_error")
    metered = MeteredProvider(
        ScriptedProvider(down), FullLedger(clock), budget(daily_usd=10.0), clock, 1000
    )
    with pytest.raises(ProviderError, match="down"):
        await run_through(metered)


async def test_a_month_of_restarts_never_spends_more_than_its_limits(tmp_path: Path) -> None:
    """Priced calls of random size, twenty restarts, some of them in the middle of a call."""
    clock = FakeClock(datetime(2026, 11, 1, tzinfo=UTC), "Europe/Berlin")
    settings = budget(daily_usd=1.0, monthly_usd=12.0)
    spent_by_day: dict[str, float] = {}
    refused = made = 0
    for start in range(20):
        async with Database.open(tmp_path / "state.db", STATE) as db:
            ledger = SqliteLedger(db, clock)
            size = 200 * (1 + start % 7)
            inner = ScriptedProvider(usage=Usage(2000 * (1 + start % 3), size), model="m")
            metered = MeteredProvider(inner, ledger, settings, clock, 1500)
            for _ in range(60):
                await clock.advance(2160)
                day = clock.now().astimezone(clock.zone).date().isoformat()
                prompt = Prompt((), (user("x" * 16_000),))
                try:
                    answer = await ask(metered, ledger, settings, prompt)
                except ProviderError as error:
                    refused += error.kind == "budget"
                    continue
                made += 1
                cost = settings.price("m", answer.usage)
                spent_by_day[day] = spent_by_day.get(day, 0.0) + cost
            stream = metered.stream(Prompt((), (user("cut"),)))  # a crash: nobody settles this one
            await anext(stream, None) if start % 2 else None
            await stream.aclose()
    assert made > 100
    assert refused > 100
    assert max(spent_by_day.values()) <= 1.0
    assert sum(v for d, v in spent_by_day.items() if d.startswith("2026-11")) <= 12.0


async def test_a_storm_of_beats_stops_at_its_own_limit() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(heartbeat_daily_tokens=50_000)
    inner = ScriptedProvider(usage=Usage(900, 100))
    metered = MeteredProvider(inner, ledger, settings, clock, 1000)
    beat = Prompt((), (user("beat"),), origin=Origin.HEARTBEAT)
    for _ in range(200):
        try:
            await ask(metered, ledger, settings, beat)
        except ProviderError:
            break
    used, _ = await ledger.spending(clock.now() - timedelta(days=1), Origin.HEARTBEAT)
    assert 45_000 < used <= 50_000
    await ask(metered, ledger, settings)  # the owner's own messages go on


async def test_silent_turns_are_over_budget_once_even_their_smallest_call_would_pass_a_limit() -> (
    None
):
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(daily_usd=0.1)
    most = Usage(0, 1000)  # 0.05

    async def used_up(*calls: tuple[str, Usage]) -> bool:
        return await OriginBudget(settings, ledger, clock, Origin.HEARTBEAT, calls).is_used_up()

    assert not await used_up(("m", most))
    await ledger.charge(MAIN, Origin.USER, "m", Usage(0, 1200), 0.06)
    assert await used_up(("m", most))
    assert not await used_up(("m", most), ("m", Usage(0, 100)))  # a fallback would be asked
    assert not await used_up()


async def test_reading_facts_ends_for_the_day_at_its_own_limit() -> None:
    clock = FakeClock()
    ledger, settings = MemoryLedger(clock), budget(facts_daily_tokens=2_000)
    reading = replace(HELLO, origin=Origin.EXTRACTION)
    metered = MeteredProvider(ScriptedProvider(), ledger, settings, clock, 1_500)
    await ask(metered, ledger, settings, reading)
    await ledger.charge(MAIN, Origin.EXTRACTION, "m", Usage(1_000), 0.0)
    with pytest.raises(ProviderError, match="facts_daily_tokens"):
        await ask(metered, ledger, settings, reading)
    await ask(metered, ledger, settings)
    clock.jump(timedelta(days=1))
    await ask(metered, ledger, settings, reading)
