"""Retention: when it runs, in which order it erases, and what it tells."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from agentd.core.errors import StorageError
from agentd.core.retention import AgedRows, Retained
from agentd.core.search import Source
from agentd.memory.deletion import Retention
from agentd.memory.index.indexer import Indexer
from agentd.testing import FakeClock, MemoryWorkspace

PATH = "sessions/chat:x.jsonl"


class Rows:
    """Old rows of one session, erased from a list store."""

    def __init__(self, store, index) -> None:
        self.store, self.index = store, index
        self.found = AgedRows(("chat:x",), 2, 0, {"timeout": 3})
        self.asked: list[datetime] = []
        self.searchable: list[bool] = []
        self.broken: StorageError | None = None
        self.last: datetime | None = None

    async def newest(self, now: datetime) -> datetime | None:
        return self.last if self.last is None or self.last <= now else None

    async def survey(self, before: datetime) -> AgedRows:
        self.asked.append(before)
        if self.broken:
            raise self.broken
        return self.found

    async def remove(self, before: datetime, sessions) -> None:
        self.searchable.append(PATH in self.index.entries)
        for session in sessions:
            self.store.transcripts[session] = self.store.transcripts[session][2:]
        self.found = AgedRows()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def indexer(index, store, clock):
    return Indexer(index, MemoryWorkspace(clock=clock), store, clock)


@pytest.fixture
async def rows(index, store, indexer, row):
    for n, text in enumerate(("old question", "old answer", "new question", "new answer"), 1):
        store.add("chat:x", row(n, "user" if n % 2 else "assistant", text))
    await indexer.sync()
    assert PATH in index.entries
    return Rows(store, index)


def retention_of(rows, indexer, clock, days=30, **more):
    return Retention(rows, indexer, clock, days, **more)


async def test_search_lets_go_of_a_session_first_and_takes_up_what_is_left_under_its_old_lines(
    rows, index, indexer, clock
):
    await retention_of(rows, indexer, clock).tick()
    assert rows.searchable == [False]
    assert index.erased == [PATH]
    await indexer.wait_idle()
    said = [(chunk.start_line, chunk.shown) for chunk in index.entries[PATH][1]]
    assert said == [(3, "[user] new question"), (4, "[assistant] new answer")]
    assert (await index.digests(Source.SESSIONS))[PATH].endswith(":4")


async def test_it_runs_at_the_start_and_once_a_day(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock)
    start = clock.now()
    assert await retention.next_due() == start
    for hours in (0, 23, 1):
        clock.jump(timedelta(hours=hours))
        await retention.tick()
    month = timedelta(days=30)
    assert rows.asked == [start - month, start - month + timedelta(days=1)]
    assert await retention.next_due() == start + timedelta(days=2)


async def test_days_of_nothing_keep_everything_until_they_are_set(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock, days=0)
    await retention.tick()
    assert await retention.next_due() is None
    assert rows.asked == []
    assert retention.status() == Retained(0)
    retention.adopt(7)
    await retention.tick()
    assert rows.asked == [clock.now() - timedelta(days=7)]
    retention.adopt(0)
    assert retention.status() == Retained(0)


async def test_it_tells_what_it_erased_and_what_it_kept_and_why(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock)
    await retention.tick()
    assert retention.status() == Retained(30, clock.now(), removed=2, kept={"timeout": 3})
    assert retention.status().as_json() == {
        "days": 30,
        "last": clock.now().isoformat(),
        "removed": 2,
        "kept": {"timeout": 3},
    }


async def test_nothing_is_rewritten_when_nothing_is_too_old(rows, index, indexer, clock):
    rows.found = AgedRows(kept={"timeout": 1})
    others: list[datetime] = []

    async def erase(before: datetime) -> None:
        others.append(before)

    await retention_of(rows, indexer, clock, others=(erase,)).tick()
    assert rows.searchable == index.erased == []
    assert others == [clock.now() - timedelta(days=30)], "what is kept elsewhere may be older"


async def test_a_failure_is_told_and_tried_again_within_the_hour(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock)
    rows.broken = StorageError("the disk is full", cure="make room")
    await retention.tick()
    (problem,) = retention.problems()
    assert (problem.code, problem.cure) == ("retention_failed", "make room")
    assert retention.status().last is None
    rows.broken = None
    clock.jump(timedelta(minutes=59))
    await retention.tick()
    assert rows.searchable == []
    clock.jump(timedelta(minutes=1))
    await retention.tick()
    assert rows.searchable == [False]
    assert retention.problems() == ()


async def test_a_session_is_indexed_again_even_if_its_rows_could_not_be_erased(
    rows, index, indexer
):
    with pytest.raises(StorageError):
        async with indexer.without(["chat:x"]):
            raise StorageError("the disk is full")
    await indexer.wait_idle()
    assert index.entries[PATH][1][0].start_line == 1


async def test_a_clock_that_no_row_speaks_for_is_believed_for_a_week(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock, days=365)
    rows.last = clock.now()
    year = timedelta(days=365)
    for ahead in (timedelta(days=7), timedelta(days=8), timedelta(days=3653)):
        clock.jump(ahead)
        await retention.tick()
        clock.jump(-ahead)
    week = rows.last + timedelta(days=7) - year
    assert rows.asked == [week, week, week]


async def test_a_clock_that_was_ahead_does_not_put_it_off(rows, indexer, clock):
    retention = retention_of(rows, indexer, clock)
    clock.jump(timedelta(days=3653))
    await retention.tick()
    clock.jump(-timedelta(days=3653))
    await retention.tick()
    await clock.advance(24 * 3600)
    await retention.tick()
    assert rows.asked[1:] == [clock.now() - timedelta(days=30)]
