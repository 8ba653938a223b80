"""Facts that are carried from one agentd to another, or back to the same."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from agentd.domain.fact import Category, ErasureReport, FactSource, Statement
from agentd.domain.workspace import FACTS_PATH as PATH
from agentd.errors import InvalidRequest
from agentd.facts.book import FactBook
from agentd.facts.exchange import take_in
from agentd.testing import FactIndexDouble, FakeClock, MemoryFactStore, MemoryWorkspace

TEA, COCOA = "The user drinks tea at night.", "The user drinks cocoa at night."


class Nowhere:
    """Erases nothing more than the book does."""

    async def begin(self, facts):
        pass

    async def carry_out(self):
        return ErasureReport({})


class Home:
    """A book of its own."""

    def __init__(self):
        self.clock = FakeClock()
        self.workspace = MemoryWorkspace(clock=self.clock)
        numbers = itertools.count(1)
        self.store = MemoryFactStore()
        self.book = FactBook(
            self.store,
            FactIndexDouble({}),
            self.workspace,
            self.clock,
            new_id=lambda: f"f{next(numbers):07d}",
            key=b"k" * 32,
            forgetting=Nowhere(),
        )

    async def tell(self, text):
        said = Statement(text, Category.PERSONAL, FactSource.EXPLICIT, self.clock.now())
        return (await self.book.learn([said]))[0].fact

    async def edit(self, old, new):
        page = self.workspace.files[PATH].decode()
        self.workspace.files[PATH] = page.replace(old, new).encode()
        self.clock.jump(timedelta(days=1))
        await self.book.sync()

    async def export(self):
        return [fact.as_json() for fact in await self.book.all()]

    async def texts(self, *, active):
        return [f.text for f in await self.book.all() if f.text and f.is_active is active]


async def test_facts_that_are_taken_in_twice_are_there_once():
    here, there = Home(), Home()
    await here.tell("The user lives in Graz.")
    here.clock.jump(timedelta(days=1))
    await here.tell("The user lives in Linz.")
    rows = await here.export()
    assert await take_in(there.book, rows) == {"added": 2, "known": 0, "refused": {}}
    facts = await there.export()
    assert await take_in(there.book, rows) == {"added": 0, "known": 2, "refused": {}}
    assert await there.export() == facts
    sightings = await there.store.sightings([fact["id"] for fact in facts])
    assert {len(seen) for seen in sightings.values()} == {1}


async def test_what_held_no_longer_when_it_was_written_out_holds_no_longer_where_it_is_taken_in():
    here, there = Home(), Home()
    await here.tell(TEA)
    await here.edit(TEA, COCOA)
    await take_in(there.book, await here.export())
    assert await there.texts(active=True) == [COCOA]
    assert await there.texts(active=False) == [TEA]
    now = next(fact for fact in await there.book.all() if fact.is_active)
    assert [fact.text for fact in await there.book.history(now.id)] == [TEA, COCOA]


async def test_what_was_put_aside_for_nothing_is_not_taken_in_as_what_holds():
    here, there = Home(), Home()
    await here.book.put_aside({(await here.tell(TEA)).id: ""})
    await take_in(there.book, await here.export())
    assert await there.texts(active=True) == []


async def test_what_was_forgotten_since_the_export_stays_forgotten():
    home = Home()
    fact = await home.tell(TEA)
    rows = await home.export()
    await home.book.forget([fact.id])
    assert await take_in(home.book, rows) == {"added": 0, "known": 0, "refused": {"forgotten": 1}}
    assert await home.texts(active=True) == []
    await home.tell(TEA)  # told again on purpose
    assert await home.texts(active=True) == [TEA]


async def test_one_row_that_is_no_fact_is_named_and_nothing_is_taken_in():
    home = Home()
    with pytest.raises(InvalidRequest, match=r"facts\[2\]\.valid_from"):
        await take_in(home.book, [(await Home().tell(TEA)).as_json(), {"text": COCOA}])
    assert await home.texts(active=True) == []
