"""What readers see while a change is made, carried out, or fails: one state, whole."""

from __future__ import annotations

import asyncio

import pytest

from agentd.core import failpoints
from agentd.core.errors import StorageError, StorageFull
from agentd.core.fact import OperationKind
from agentd.core.failpoints import FailpointError
from agentd.storage.fact_store import SqliteFacts
from agentd.testing import FactIndexDouble, MemoryWorkspace
from tests.memory.facts.books import MAX, REX, TEA

BOOKS = [f"The user owns {n} books." for n in range(1_000)]


class Gate:
    """A step of a change that waits until the test lets it go on, or fail."""

    def __init__(self) -> None:
        self.is_shut = False
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self.error: BaseException | None = None

    async def passed(self) -> None:
        if self.is_shut:
            self.is_shut = False
            self.reached.set()
            await self.opened.wait()
            if self.error is not None:
                raise self.error


class GatedWorkspace(MemoryWorkspace):
    gate = Gate()

    async def apply(self, intent, reader, by=None):
        await self.gate.passed()
        await super().apply(intent, reader, by)


class GatedFacts(SqliteFacts):
    gate = Gate()

    async def write(self, write):
        await self.gate.passed()
        return await super().write(write)


class GatedIndex(FactIndexDouble):
    gate = Gate()

    async def put(self, facts):
        await self.gate.passed()
        await super().put(facts)


def gated(home, step: str) -> Gate:
    """The book of the home, with a gate before this step of each change."""
    gate = Gate()
    if step == "page":
        home.workspace = GatedWorkspace(clock=home.clock)
        home.workspace.gate = gate
    if step == "rows":
        home.store = GatedFacts(home.db)
        home.store.gate = gate
    index = GatedIndex()
    if step == "index":
        index.gate = gate
    home.opened(index)
    return gate


async def test_who_reads_during_a_long_change_sees_nothing_of_it_until_it_is_done(home):
    await home.add(REX)
    task = asyncio.create_task(home.learn(*map(home.said, BOOKS)))
    seen = set()
    while not task.done():
        seen.add(len(await home.book.all()))
        await asyncio.sleep(0)
    await task
    assert seen <= {1, 1 + len(BOOKS)}
    assert 1 in seen


async def test_who_reads_before_the_page_is_written_waits_for_nothing(home):
    gate = gated(home, "page")
    [rex] = await home.add(REX)
    before = await home.book.all()
    gate.is_shut = True
    change = asyncio.create_task(home.replace(MAX, rex))
    await gate.reached.wait()
    reader = asyncio.create_task(home.book.all())
    await home.clock.settle()
    assert reader.done()
    assert reader.result() is before
    gate.opened.set()
    await change
    assert await home.texts() == [MAX]
    await home.check()


@pytest.mark.parametrize("error", [StorageFull("full"), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("step", ["page", "rows", "index"])
async def test_who_reads_while_a_change_fails_sees_all_of_it_or_nothing(home, step, error):
    gate = gated(home, step)
    [rex] = await home.add(REX)
    gate.is_shut, gate.error = True, error
    said = home.said(MAX, OperationKind.REPLACE, rex), home.said(TEA)
    change = asyncio.create_task(home.learn(*said))
    await gate.reached.wait()
    readers = [asyncio.create_task(home.texts()) for _ in range(3)]
    await home.clock.settle()
    gate.opened.set()
    with pytest.raises(type(error)):
        await change
    seen = [sorted(await reader) for reader in readers]
    assert seen == [[REX] if step == "page" else sorted([MAX, TEA])] * 3
    await home.check()
    home.opened()
    assert sorted(await home.texts()) == seen[0]
    await home.check()


async def test_a_state_that_somebody_holds_stays_as_it_is_whatever_fails_after_it(home):
    [rex] = await home.add(REX)
    held = await home.book.all()
    told = list(held)
    failpoints.arm("facts.written:1:raise")
    with pytest.raises(FailpointError):
        await home.replace(MAX, rex)
    assert list(held) == told
    assert await home.texts() == [MAX]


class Refusing(SqliteFacts):
    """Rows that cannot be read for the time being."""

    is_broken = False

    async def tombstones(self):
        if self.is_broken:
            raise StorageError("The disk refused.")
        return await super().tombstones()


async def test_a_page_that_cannot_be_taken_in_leaves_what_was_known_whole(home):
    home.store = Refusing(home.db)
    home.opened()
    await home.add(REX)
    home.write(home.page + f"- {TEA}\n")
    home.store.is_broken = True
    for _ in range(2):
        with pytest.raises(StorageError):
            await home.book.all()
    home.store.is_broken = False
    assert await home.texts() == [REX, TEA]
    await home.check()
