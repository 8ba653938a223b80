"""What is near a statement: the index is asked, and nobody waits for it without end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from agentd.domain.fact import Category, Fact, FactSource
from agentd.facts.nearby import REST, Nearby
from agentd.testing import FactIndexDouble, FakeClock

REX = "The user's dog is called Rex."
NOW = datetime(2026, 11, 22, tzinfo=UTC)
FACT = Fact("rex", REX, Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)


class SlowIndex(FactIndexDouble):
    """It answers once it is `open`."""

    def __init__(self):
        super().__init__({frozenset(("A dog, Rex.", REX)): 0.95})
        self.open = asyncio.Event()
        self.asked = 0

    async def near(self, text, floor, limit):
        self.asked += 1
        await self.open.wait()
        return await super().near(text, floor, limit)


@pytest.fixture
async def index():
    index = SlowIndex()
    await index.put([FACT])
    return index


def current(fact_id):
    return FACT if fact_id == FACT.id else None


async def test_an_index_that_never_answers_leaves_a_statement_without_neighbours(index):
    nearby = Nearby(index, FakeClock(), patience=0.01)
    assert (await nearby.find("A dog, Rex.", current))[0] == []
    (problem,) = nearby.problems()
    assert problem.code == "facts_unjudged"


async def test_it_is_left_alone_for_a_while_and_then_asked_again(index):
    clock = FakeClock()
    nearby = Nearby(index, clock, patience=0.01)
    for _ in range(20):
        await nearby.find("A dog, Rex.", current)
    assert index.asked == 1
    index.open.set()
    await clock.advance(REST)
    found, _ = await nearby.find("A dog, Rex.", current)
    assert [(one.fact.id, one.cosine) for one in found] == [("rex", 0.95)]
    assert nearby.problems() == ()


async def test_what_the_index_still_has_and_is_gone_is_no_neighbour(index):
    index.open.set()
    nearby = Nearby(index, FakeClock())
    assert (await nearby.find("A dog, Rex.", lambda _: None))[0] == []
