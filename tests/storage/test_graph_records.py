"""The contract of GraphRecords, ShareStore and ProgramStates, over every implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.graph import EpisodeHash, KeptEpisode, Share
from agentd.storage.graph_records import MOST_WITHDRAWN, SqliteGraphRecords
from agentd.testing.graph_doubles import MemoryGraphRecords

NOW = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)


def episode(number):
    return EpisodeHash(number.to_bytes(32, "big"))


def kept(number, teller="ada", said="agent needs memory"):
    return KeptEpisode(episode(number), teller, NOW + timedelta(hours=number), said, f"{number} x")


@pytest.fixture(params=["sqlite", "memory"])
def store(request, state_db):
    return MemoryGraphRecords() if request.param == "memory" else SqliteGraphRecords(state_db)


async def test_what_is_kept_comes_in_its_order_and_stays_as_it_came(store):
    await store.keep([kept(2), kept(1, "")])
    await store.keep([kept(2, "eve", "something else")])
    assert list(await store.kept_episodes()) == [kept(1, ""), kept(2)]


async def test_what_goes_is_kept_out_by_its_names(store):
    await store.keep([kept(1), kept(2)])
    await store.drop([episode(1), episode(9)], ["b", "a"])
    await store.drop([], ["a"])
    assert list(await store.kept_episodes()) == [kept(2)]
    assert await store.withdrawn_names() == {"a", "b"}


async def test_text_of_earlier_releases_is_taken_in_once(store):
    assert not await store.has_earlier()
    share = Share("team", episode(3), "f1", "salt", is_sent=True)
    await store.take_earlier([kept(1)], ["a"], [share], NOW)
    assert await store.has_earlier()
    assert list(await store.kept_episodes()) == [kept(1)]
    assert await store.withdrawn_names() == {"a"}
    assert tuple(await store.shares()) == (share,)


async def test_shares_are_what_was_put_last(store):
    first, second = Share("team", episode(1), "f1", "s"), Share("home", episode(2))
    await store.put_shares([first, second])
    assert tuple(await store.shares()) == (first, second)
    await store.put_shares([second])
    assert tuple(await store.shares()) == (second,)


async def test_a_program_finds_what_it_has_kept(store):
    assert await store.program_state("a") == ""
    await store.keep_program_state("a", "one", NOW)
    await store.keep_program_state("b", "two", NOW)
    await store.keep_program_state("a", "three", NOW)
    assert await store.program_state("a") == "three"
    await store.keep_program_state("a", "", NOW)
    assert (await store.program_state("a"), await store.program_state("b")) == ("", "two")


async def test_of_the_names_that_are_kept_out_the_newest_stay(state_db):
    store = SqliteGraphRecords(state_db)
    await store.drop([], [f"{n:05}" for n in range(MOST_WITHDRAWN + 3)])
    names = await store.withdrawn_names()
    assert len(names) == MOST_WITHDRAWN
    assert "00002" not in names


async def test_what_is_dropped_without_a_trace_leaves_no_byte(state_db):
    store = SqliteGraphRecords(state_db)
    await store.keep([kept(1, said="zebrafinch " * 400), kept(2)])
    await store.drop([episode(1)], traceless=True)
    files = state_db.path.parent.glob("state.db*")
    assert b"zebrafinch" not in b"".join(one.read_bytes() for one in files)
