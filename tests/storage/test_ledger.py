"""The contract of Ledger, over every implementation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentd.domain.turn import MAIN, Origin, Usage


async def test_costs_add_up_by_time_and_origin(stores, clock):
    start = clock.now()
    await stores.ledger.charge(MAIN, Origin.USER, "big", Usage(1, 2, 3, 4), 0.5)
    clock.jump(timedelta(hours=1))
    await stores.ledger.charge(MAIN, Origin.HEARTBEAT, "small", Usage(100), 0.25)
    assert await stores.ledger.spent(start) == (110, pytest.approx(0.75))
    assert await stores.ledger.spent(clock.now()) == (100, pytest.approx(0.25))
    assert await stores.ledger.spent(start, Origin.USER) == (10, pytest.approx(0.5))
    assert await stores.ledger.spent(clock.now() + timedelta(seconds=1)) == (0, 0)
