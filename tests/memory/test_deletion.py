"""A deleted session goes from every place, whatever fails or leaves in between."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from agentd.core.errors import NotFound, StorageError
from agentd.core.turn import MAIN, SessionKey
from agentd.memory.deletion import SessionErasure
from agentd.testing import FakeClock, MemorySessions

CHAT = SessionKey("chat:a")


class OpenSessions:
    """What owns deletions: they go on when whoever asked has left."""

    def __init__(self, store: MemorySessions) -> None:
        self.store = store
        self.tasks: set[asyncio.Task[None]] = set()

    async def delete(self, session, then):
        async def work():
            await self.store.delete(session)
            await then(session)

        task = asyncio.ensure_future(work())
        self.tasks.add(task)
        await asyncio.shield(task)


class Place:
    """Has words of sessions, and gives none of them away while it is broken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words = {CHAT, MAIN}
        self.broken: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0

    async def erase(self, session: SessionKey) -> None:
        self.asked += 1
        await self.gate.wait()
        if self.broken:
            raise self.broken
        self.words.discard(session)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(clock):
    store = MemorySessions(clock)
    await store.create(CHAT)
    return store


@pytest.fixture
def places():
    return [Place("index"), Place("images"), Place("history")]


@pytest.fixture
def erasure(store, places):
    return SessionErasure(OpenSessions(store), store, {p.name: p.erase for p in places})


async def test_a_deleted_session_is_gone_from_every_place(erasure, store, places):
    await erasure.delete(CHAT)
    assert [place.words for place in places] == [{MAIN}] * 3
    assert await store.unerased() == {}
    with pytest.raises(NotFound):
        await erasure.delete(CHAT)


async def test_it_goes_on_when_whoever_asked_has_left(erasure, store, places, clock):
    places[0].gate.clear()
    asking = asyncio.ensure_future(erasure.delete(CHAT))
    await clock.settle()
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    assert CHAT in places[2].words, "the test could not fail"
    places[0].gate.set()
    await clock.settle()
    assert [place.words for place in places] == [{MAIN}] * 3
    assert await store.unerased() == {}


async def test_a_place_that_fails_keeps_no_other_from_it_and_is_told_and_tried_again(
    erasure, store, places
):
    places[0].broken = StorageError("the disk fails", cure="mend it")
    places[1].broken = ZeroDivisionError()
    with pytest.raises(
        StorageError, match=r"is deleted.*index and the images: the disk fails"
    ) as e:
        await erasure.delete(CHAT)
    assert e.value.cure == "mend it"
    assert [CHAT in place.words for place in places] == [True, True, False]
    ((code, cure),) = [(p.code, p.cure) for p in erasure.problems()]
    assert (code, cure) == ("deletion_pending", "mend it")
    places[0].broken = None
    await erasure.tick()
    assert [CHAT in place.words for place in places] == [False, True, False]
    ((text, cure),) = [(p.text, p.cure) for p in erasure.problems()]
    assert "ZeroDivisionError" in text
    assert "again" in cure
    assert list((await store.unerased()).values()) == [CHAT]
    places[1].broken = None
    await erasure.tick()
    assert [place.words for place in places] == [{MAIN}] * 3
    assert [place.asked for place in places] == [2, 3, 1]
    assert (erasure.problems(), await store.unerased()) == ((), {})


async def test_a_session_that_is_not_gone_everywhere_can_be_deleted_again(erasure, places):
    places[2].broken = StorageError("the disk fails", cure="mend it")
    for _ in range(2):
        with pytest.raises(StorageError, match="is deleted"):
            await erasure.delete(CHAT)
    places[2].broken = None
    await erasure.delete(CHAT)
    assert CHAT not in places[2].words
    with pytest.raises(NotFound):
        await erasure.delete(CHAT)


async def test_what_an_earlier_run_left_is_finished(store, places):
    await store.delete(CHAT)  # and a crash
    erasure = SessionErasure(OpenSessions(store), store, {p.name: p.erase for p in places})
    await erasure.tick()
    assert [place.words for place in places] == [{MAIN}] * 3
    assert await store.unerased() == {}


async def test_a_session_that_began_again_meanwhile_is_deleted_with_its_new_words(
    erasure, store, places
):
    places[0].broken = StorageError("the disk fails", cure="mend it")
    with pytest.raises(StorageError):
        await erasure.delete(MAIN)
    places[0].broken = None
    places[2].words.add(MAIN)
    await erasure.delete(MAIN)
    assert [place.words for place in places] == [{CHAT}] * 3
    assert await store.unerased() == {}
