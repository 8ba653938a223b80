"""The contract of FactStore, over every implementation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentd.domain.erasure import Needles
from agentd.domain.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Provenance,
    Sighting,
    Triple,
)
from agentd.domain.message import Text
from agentd.domain.transcript import NewRow, RowRole
from agentd.domain.turn import MAIN, SessionKey
from agentd.storage.facts import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import MemoryFactStore

NOW = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)
CHAT = SessionKey("chat:a")


def a_fact(fact_id="aaaaaaaa", text="The user's dog is called Rex.", **fields):
    first = Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)
    return replace(first, **fields)


@pytest.fixture(params=["sqlite", "memory"])
async def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryFactStore()
        return
    async with Database.open(tmp_path / "state" / "state.db", STATE) as db:
        yield SqliteFacts(db)


async def test_facts_come_back_as_they_were_stored_the_oldest_first(store):
    facts = (
        a_fact(triple=Triple("user", 'dog "name"', "Réx|\n🐶"), origin=Provenance(CHAT, 12)),
        a_fact(
            "bbbbbbbb",
            "Once 😀",
            category=Category.OUTCOME,
            source=FactSource.EXTRACTED,
            confidence=1 / 3,
            status=FactStatus.SUPERSEDED,
            valid_to=NOW + timedelta(days=1),
            superseded_by="aaaaaaaa",
            noted_at=NOW + timedelta(seconds=1),
        ),
        Fact.grave("cccccccc", NOW + timedelta(days=2)),
    )
    await store.save(tuple(reversed(facts)))
    assert await store.facts() == facts


async def test_saving_again_replaces_and_keeps_the_rest(store):
    await store.save([a_fact(), a_fact("bbbbbbbb", "Other.")])
    await store.save([a_fact(text="The user's dog is called Max.")])
    assert [fact.text for fact in await store.facts()] == [
        "The user's dog is called Max.",
        "Other.",
    ]


async def test_marks_only_go_forward(store):
    assert await store.marks() == {}
    await store.save([], marks={MAIN: 10, CHAT: 3})
    await store.save([], marks={MAIN: 7, CHAT: 4})
    assert await store.marks() == {MAIN: 10, CHAT: 4}


async def test_each_sighting_counts_once_and_the_oldest_comes_first(store):
    first, second = (
        Sighting("aaaaaaaa", NOW + timedelta(days=day), Provenance(CHAT, day)) for day in (1, 2)
    )
    await store.save([a_fact()], sightings=[second, first])
    await store.save([], sightings=[first])
    found = await store.sightings(["aaaaaaaa", "bbbbbbbb"])
    assert {fact_id: list(seen) for fact_id, seen in found.items()} == {
        "aaaaaaaa": [first, second],
        "bbbbbbbb": [],
    }


async def test_a_buried_fact_is_an_id_and_hashes(store):
    await store.save(
        [a_fact(triple=Triple("user", "dog", "Rex")), a_fact("bbbbbbbb", "Other.")],
        sightings=[Sighting("aaaaaaaa", NOW, Provenance(CHAT, 1))],
    )
    await store.put_vectors("m", {"aaaaaaaa": b"1234"})
    later = NOW + timedelta(hours=1)
    await store.bury(["aaaaaaaa"], [b"one", b"two"], later)
    facts = {fact.id: fact for fact in await store.facts()}
    assert facts["aaaaaaaa"] == Fact.grave("aaaaaaaa", later)
    assert facts["bbbbbbbb"].text == "Other."
    assert await store.vectors("m") == {}
    assert not (await store.sightings(["aaaaaaaa"]))["aaaaaaaa"]
    assert await store.buried() == {b"one", b"two"}
    await store.put_vectors("m", {"aaaaaaaa": b"1234"})
    assert await store.vectors("m") == {}, "a job that still ran may not bring it back"
    await store.unbury([b"one"])
    assert await store.buried() == {b"two"}


async def test_burying_nothing_known_keeps_only_hashes(store):
    await store.bury(["dddddddd"], [b"one"], NOW)
    assert await store.facts() == ()
    assert await store.buried() == {b"one"}


async def test_parked_ids_are_exactly_the_last_ones(store):
    assert await store.parked() == ()
    await store.park(["b", "a"])
    assert await store.parked() == ("b", "a")
    await store.park(["c"])
    assert await store.parked() == ("c",)
    await store.park([])
    assert await store.parked() == ()


async def test_vectors_belong_to_a_model_and_to_the_words(store):
    await store.save([a_fact(), a_fact("bbbbbbbb", "Other.")])
    await store.put_vectors("m", {"aaaaaaaa": b"1", "bbbbbbbb": b"2", "nobody00": b"3"})
    await store.put_vectors("n", {"aaaaaaaa": b"4"})
    assert await store.vectors("m") == {"aaaaaaaa": b"1", "bbbbbbbb": b"2"}
    await store.save([a_fact(text="Something else."), a_fact("bbbbbbbb", "Other.", confidence=0.1)])
    assert await store.vectors("m") == {"bbbbbbbb": b"2"}
    assert await store.vectors("n") == {}


async def test_rebuilding_leaves_these_facts_and_what_hangs_on_nothing(store):
    seen = Sighting("aaaaaaaa", NOW, Provenance(CHAT, 1))
    await store.save([a_fact(), a_fact("bbbbbbbb", "Other.")], marks={MAIN: 3}, sightings=[seen])
    await store.put_vectors("m", {"aaaaaaaa": b"1", "bbbbbbbb": b"2"})
    await store.bury([], [b"one"], NOW)
    await store.rebuild([a_fact(), a_fact("cccccccc", "New.")])
    assert {fact.id for fact in await store.facts()} == {"aaaaaaaa", "cccccccc"}
    assert await store.marks() == {MAIN: 3}
    assert list((await store.sightings(["aaaaaaaa"]))["aaaaaaaa"]) == [seen]
    assert await store.buried() == {b"one"}
    assert await store.vectors("m") == {"aaaaaaaa": b"1"}


async def test_an_erasure_stays_until_it_is_ended(store):
    needles = Needles(("The user's dog is called Rex.",), (("Rex", ("dog",)),))
    number = await store.begin_erasure(needles)
    assert await store.begin_erasure(needles) == number
    other = await store.begin_erasure(Needles(("x",)))
    assert await store.erasures() == {number: needles, other: Needles(("x",))}
    await store.end_erasure(number)
    await store.end_erasure(number)
    assert await store.erasures() == {other: Needles(("x",))}


async def test_no_byte_of_a_buried_fact_is_left_once_its_erasure_has_ended(state_db):
    store = SqliteFacts(state_db)
    many = [a_fact(f"{n:08d}", f"Zitronenfalter {n} " + "x" * (n % 900)) for n in range(400)]
    await store.save(many)
    await store.put_vectors("m", {fact.id: b"zitronenfalter" for fact in many})
    number = await store.begin_erasure(Needles(("Zitronenfalter",)))
    await store.bury([fact.id for fact in many], [], NOW)
    await store.end_erasure(number)
    held = b"".join(file.read_bytes() for file in state_db.path.parent.iterdir())
    assert b"00000399" in held, "the test could not fail"
    assert b"itronenfalter" not in held


async def test_a_deleted_session_is_no_longer_where_facts_were_said(state_db, clock):
    sessions, store = SqliteSessions(state_db, clock), SqliteFacts(state_db)
    await sessions.add_rows(CHAT, [(NewRow(RowRole.USER, (Text("hello"),)), NOW)])
    fact = a_fact(origin=Provenance(CHAT, 1))
    seen = [Sighting(fact.id, NOW, Provenance(CHAT, seq)) for seq in (1, 2)]
    await store.save([fact, a_fact("bbbbbbbb", "B.", origin=Provenance(MAIN, 5))], sightings=seen)
    await store.save([], marks={CHAT: 1, MAIN: 5})
    await sessions.delete(CHAT)
    assert [f.origin for f in await store.facts()] == [Provenance(), Provenance(MAIN, 5)]
    assert [s.origin for s in (await store.sightings([fact.id]))[fact.id]] == [Provenance()]
    assert await store.marks() == {MAIN: 5}


async def test_the_last_answer_to_a_proposal_counts(store):
    assert await store.answered() == {}
    await store.answer("aaaaaaaa", NOW, accepted=False)
    await store.answer("bbbbbbbb", NOW, accepted=True)
    await store.answer("aaaaaaaa", NOW + timedelta(days=1), accepted=True)
    await store.answer("bbbbbbbb", NOW + timedelta(days=1), accepted=False)
    await store.rebuild([])
    assert await store.answered() == {"aaaaaaaa": True, "bbbbbbbb": False}
