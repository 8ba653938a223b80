"""The contract of Ledger, over every implementation."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.core.errors import BudgetReached
from agentd.core.money import BUILT_IN, Cap, Charge
from agentd.core.turn import MAIN, Origin, Usage


async def test_costs_add_up_by_time_and_origin(stores, clock):
    start = clock.now()
    await stores.ledger.charge(MAIN, Origin.USER, "big", Usage(1, 2, 3, 4), 0.5)
    clock.jump(timedelta(hours=1))
    await stores.ledger.charge(MAIN, Origin.HEARTBEAT, "small", Usage(100), 0.25)
    assert await stores.ledger.spending(start) == (110, pytest.approx(0.75))
    assert await stores.ledger.spending(clock.now()) == (100, pytest.approx(0.25))
    assert await stores.ledger.spending(start, Origin.USER) == (10, pytest.approx(0.5))
    assert await stores.ledger.spending(clock.now() + timedelta(seconds=1)) == (0, 0)


async def test_a_reservation_counts_until_the_call_is_charged(stores, clock):
    start = clock.now()
    held = await stores.ledger.reserve(Origin.USER, "big", Usage(1000, 500), 3.0, ())
    assert await stores.ledger.spending(start) == (1500, pytest.approx(3.0))
    await stores.ledger.charge(MAIN, Origin.USER, "big", Usage(90, 10), 0.2, reservation=held)
    assert await stores.ledger.spending(start) == (100, pytest.approx(0.2))


async def test_a_cap_is_never_passed_not_even_by_calls_at_once(stores, clock):
    cap = Cap("daily_usd", clock.now(), usd=1.0)
    results = await asyncio.gather(
        *(stores.ledger.reserve(Origin.USER, "m", Usage(1), 0.3, (cap,)) for _ in range(8)),
        return_exceptions=True,
    )
    refused = [r for r in results if isinstance(r, BudgetReached)]
    assert len(refused) == 5
    assert await stores.ledger.spending(cap.since) == (3, pytest.approx(0.9))


async def test_a_cap_of_one_origin_leaves_the_others_alone(stores, clock):
    cap = Cap("heartbeat_daily_tokens", clock.now(), tokens=100, origin=Origin.HEARTBEAT)
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(5000), 0.0)
    await stores.ledger.reserve(Origin.HEARTBEAT, "m", Usage(100), 0.0, (cap,))
    with pytest.raises(BudgetReached):
        await stores.ledger.reserve(Origin.HEARTBEAT, "m", Usage(1), 0.0, (cap,))


async def test_a_call_too_dear_for_any_day_is_not_told_to_wait(stores, clock):
    cap = Cap("daily_usd", clock.now(), usd=0.1)
    with pytest.raises(BudgetReached, match="would be passed") as alone:
        await stores.ledger.reserve(Origin.USER, "m", Usage(1), 0.14, (cap,))
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(1), 0.06)
    with pytest.raises(BudgetReached, match=r"\$0.06 are spent") as beside:
        await stores.ledger.reserve(Origin.USER, "m", Usage(1), 0.05, (cap,))
    assert (
        alone.value.cure
        == "raise daily_usd, or lower [provider] max_tokens where that bounds the call"
    )
    assert beside.value.cure == "wait for the next period, or raise daily_usd"


async def test_cache_use_is_a_share_of_what_was_read(stores, clock):
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(10, 5, 80, 10), 0.0)
    await stores.ledger.charge(MAIN, Origin.EMBEDDING, "e", Usage(1000), 0.0)
    assert await stores.ledger.cache_use(clock.now()) == (80, 100)


async def test_a_breakdown_names_sessions_and_origins_the_dearest_first(stores, clock):
    start = clock.now()
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(10), 0.1)
    await stores.ledger.charge(MAIN, Origin.FLUSH, "m", Usage(5), 0.5)
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(10), 0.1)
    assert await stores.ledger.breakdown(start) == (
        (MAIN, Origin.FLUSH, 5, pytest.approx(0.5)),
        (MAIN, Origin.USER, 20, pytest.approx(0.2)),
    )


async def test_every_call_can_be_listed(stores, clock):
    start = clock.now()
    await stores.ledger.charge(MAIN, Origin.USER, "big", Usage(1, 2, 3, 4), 0.5)
    clock.jump(timedelta(hours=1))
    await stores.ledger.charge(MAIN, Origin.HEARTBEAT, "small", Usage(100), 0.25)
    assert await stores.ledger.entries() == (
        Charge(start, MAIN, Origin.USER, "big", Usage(1, 2, 3, 4), 0.5),
        Charge(clock.now(), MAIN, Origin.HEARTBEAT, "small", Usage(100), 0.25),
    )


async def test_the_built_in_provider_uses_up_no_limit_and_costs_nothing(stores, clock):
    cap = Cap("heartbeat_daily_tokens", clock.now(), tokens=100, origin=Origin.HEARTBEAT)
    await stores.ledger.charge(MAIN, Origin.HEARTBEAT, BUILT_IN, Usage(5000, 0, 70), 0.0)
    assert await stores.ledger.spending(cap.since) == (0, 0)
    assert await stores.ledger.breakdown(cap.since) == ()
    assert await stores.ledger.cache_use(cap.since) == (0, 0)
    await stores.ledger.reserve(Origin.HEARTBEAT, "m", Usage(100), 0.0, (cap,))
    assert [charge.model for charge in await stores.ledger.entries()] == [BUILT_IN, "m"]


async def test_what_was_spent_by_a_clock_that_was_ahead_uses_up_no_later_day(stores, clock):
    today = clock.now()
    cap = Cap("daily_usd", today, usd=1.0)
    clock.jump(timedelta(days=365))
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(1), 0.9)
    clock.jump(-timedelta(days=365))
    await stores.ledger.reserve(Origin.USER, "m", Usage(1), 0.3, (cap,))
    assert await stores.ledger.spending(today) == (1, pytest.approx(0.3))
    assert [row[3] for row in await stores.ledger.breakdown(today)] == [pytest.approx(0.3)]


async def test_a_clock_that_is_set_back_by_hours_gives_no_budget_anew(stores, clock):
    today = clock.now() - timedelta(hours=12)
    await stores.ledger.charge(MAIN, Origin.USER, "m", Usage(1), 0.9)
    clock.jump(timedelta(hours=-3))
    with pytest.raises(BudgetReached):
        await stores.ledger.reserve(
            Origin.USER, "m", Usage(1), 0.3, (Cap("daily_usd", today, usd=1.0),)
        )
