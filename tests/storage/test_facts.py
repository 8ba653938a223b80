"""The rows of facts, their evidence and their changes."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from agentd.core.erasure import Erasure
from agentd.core.errors import StorageError
from agentd.core.fact import (
    Category,
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactSource,
    FactStatus,
    FactWrite,
    FormerState,
    Provenance,
    Triple,
)
from agentd.core.message import Text
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey
from agentd.storage.erasures import SqliteErasures
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE, Schema
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database

NOW = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)
CHAT = SessionKey("chat:a")
DAY = timedelta(days=1)


def a_fact(fact_id="aaaa", text="The user's dog is called Rex.", **fields):
    first = Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)
    return replace(first, **fields)


@pytest.fixture
def store(state_db):
    return SqliteFacts(state_db)


async def put(store, *facts, **fields):
    return await store.write(FactWrite(facts, **fields))


async def evidence(store, fact_id="aaaa"):
    return list((await store.evidence([fact_id]))[fact_id])


async def test_facts_come_back_as_they_were_stored_the_oldest_first(store):
    facts = (
        a_fact(triple=Triple("user", 'dog "name"', "Réx|\n🐶"), origin=Provenance(CHAT, 12)),
        a_fact(
            "bbbb",
            "Once 😀",
            category=Category.OUTCOME,
            source=FactSource.EXTRACTED,
            confidence=1 / 3,
            status=FactStatus.SUPERSEDED,
            valid_to=NOW + DAY,
            superseded_by="aaaa",
            noted_at=NOW + timedelta(seconds=1),
        ),
        a_fact("cccc", "Maybe.", status=FactStatus.PROPOSED, replaces=("aaaa", "bbbb"), noted_at=NOW + DAY),
        a_fact("dddd", "Over.", status=FactStatus.ENDED, valid_to=NOW, noted_at=NOW + 2 * DAY),
        Fact.tombstone("eeee", NOW + 3 * DAY),
    )  # fmt: skip
    await put(store, *reversed(facts))
    assert await store.facts() == facts


async def test_writing_again_replaces_and_keeps_the_rest(store):
    await put(store, a_fact(), a_fact("bbbb", "Other."))
    await put(store, a_fact(text="The user's dog is called Max."))
    assert [fact.text for fact in await store.facts()] == [
        "The user's dog is called Max.",
        "Other.",
    ]


async def test_half_a_surrogate_pair_does_not_keep_a_fact_from_being_stored(store):
    await put(store, a_fact(text="The \ud800user"))
    assert "user" in (await store.facts())[0].text


async def test_marks_only_go_forward(store):
    assert await store.marks() == {}
    await put(store, marks={MAIN: 10, CHAT: 3})
    await put(store, marks={MAIN: 7, CHAT: 4})
    assert await store.marks() == {MAIN: 10, CHAT: 4}


async def test_each_piece_of_evidence_counts_once_and_the_oldest_comes_first(store):
    first, second, asked = (
        Evidence(NOW + DAY, CHAT, 1, 3, 9, fact_id="aaaa"),
        Evidence(NOW + 2 * DAY, CHAT, 2, 0, 5, fact_id="aaaa"),
        Evidence(NOW, CHAT, 1, 0, 20, is_context=True, fact_id="aaaa"),
    )
    await put(store, a_fact(), evidence=(second, first, asked))
    await put(store, evidence=(first, asked))
    assert await evidence(store) == [asked, first, second]
    assert await evidence(store, "bbbb") == []


async def test_words_take_the_place_of_evidence_whose_row_alone_was_known(store):
    row = Evidence(NOW, CHAT, 1, fact_id="aaaa")
    other = Evidence(NOW, CHAT, 2, fact_id="aaaa")
    await put(store, a_fact(), evidence=(row, other))
    words = replace(row, start=3, end=9)
    await put(store, evidence=(words,))
    assert await evidence(store) == [other, words]


async def test_changes_get_numbers_and_the_newest_come_first(store):
    before = (
        FormerState("aaaa", FactStatus.ACTIVE),
        FormerState("bbbb", FactStatus.ENDED, NOW, "cccc"),
    )
    first = FactChange(ChangeKind.ADD, NOW, CHAT, "aaaa")
    second = FactChange(ChangeKind.REPLACE, NOW, MAIN, "cccc", before)
    stored = [*await put(store, changes=(first,)), *await put(store, changes=(second,))]
    assert stored == [replace(first, id=1), replace(second, id=2)]
    assert await store.changes(10) == (stored[1], stored[0])
    assert await store.changes(1) == (stored[1],)
    await put(store, undone=(1,))
    assert [one.undone for one in await store.changes(10)] == [False, True]


async def test_what_is_removed_leaves_nothing_but_its_change(store):
    seen = Evidence(NOW, CHAT, 1, 0, 5, fact_id="aaaa")
    change = FactChange(ChangeKind.ADD, NOW, CHAT, "aaaa")
    await put(store, a_fact(), a_fact("bbbb", "Other."), evidence=(seen,), changes=(change,))
    await store.put_vectors("m", {"aaaa": b"1"})
    await put(store, removed=("aaaa",), undone=(1,))
    assert [fact.id for fact in await store.facts()] == ["bbbb"]
    assert await evidence(store) == []
    assert await store.vectors("m") == {}
    assert [one.undone for one in await store.changes(10)] == [True]


async def test_a_write_is_whole_or_nothing(store):
    bad = FactChange(ChangeKind.ADD, NOW, object())  # no database takes that
    with pytest.raises((StorageError, TypeError)):
        await put(store, a_fact(), marks={MAIN: 3}, parked=("x",), changes=(bad,))
    assert await store.facts() == ()
    assert (await store.marks(), await store.parked_ids()) == ({}, ())


async def test_a_buried_fact_is_an_id_and_hashes_with_their_time(store):
    seen = Evidence(NOW, CHAT, 1, 0, 5, fact_id="aaaa")
    await put(
        store, a_fact(triple=Triple("user", "dog", "Rex")), a_fact("bbbb", "B."), evidence=(seen,)
    )
    await store.put_vectors("m", {"aaaa": b"1234"})
    later = NOW + timedelta(hours=1)
    await store.bury(["aaaa"], [b"one", b"two"], later)
    facts = {fact.id: fact for fact in await store.facts()}
    assert facts["aaaa"] == Fact.tombstone("aaaa", later)
    assert facts["bbbb"].text == "B."
    assert await store.vectors("m") == {}
    assert await evidence(store) == []
    assert await store.tombstones() == {b"one": later, b"two": later}
    await store.put_vectors("m", {"aaaa": b"1234"})
    assert await store.vectors("m") == {}, "a job that still ran may not bring it back"
    await store.bury([], [b"one"], later + DAY)
    assert await store.tombstones() == {b"one": later + DAY, b"two": later}
    await put(store, unburied=(b"one",))
    assert await store.tombstones() == {b"two": later}


async def test_burying_nothing_known_keeps_only_hashes(store):
    await store.bury(["dddd"], [b"one"], NOW)
    assert await store.facts() == ()
    assert await store.tombstones() == {b"one": NOW}


async def test_parked_ids_are_exactly_the_last_ones(store):
    assert await store.parked_ids() == ()
    await put(store, parked=("b", "a"))
    assert await store.parked_ids() == ("b", "a")
    await put(store, a_fact())
    assert await store.parked_ids() == ("b", "a")
    await put(store, parked=("c",))
    assert await store.parked_ids() == ("c",)
    await put(store, parked=())
    assert await store.parked_ids() == ()


async def test_vectors_belong_to_a_model_and_to_the_words(store):
    await put(store, a_fact(), a_fact("bbbb", "Other."))
    await store.put_vectors("m", {"aaaa": b"1", "bbbb": b"2", "nobody": b"3"})
    await store.put_vectors("n", {"aaaa": b"4"})
    assert await store.vectors("m") == {"aaaa": b"1", "bbbb": b"2"}
    await put(store, a_fact(text="Something else."), a_fact("bbbb", "Other.", confidence=0.1))
    assert await store.vectors("m") == {"bbbb": b"2"}
    assert await store.vectors("n") == {}


async def test_rebuilding_leaves_these_facts_and_what_hangs_on_nothing(store):
    seen = Evidence(NOW, CHAT, 1, 0, 5, fact_id="aaaa")
    change = FactChange(ChangeKind.ADD, NOW, CHAT, "aaaa")
    await put(
        store,
        a_fact(),
        a_fact("bbbb", "Other."),
        marks={MAIN: 3},
        evidence=(seen,),
        changes=(change,),
    )
    await store.put_vectors("m", {"aaaa": b"1", "bbbb": b"2"})
    await store.bury([], [b"one"], NOW)
    await store.rebuild([a_fact(), a_fact("cccc", "New.")])
    assert {fact.id for fact in await store.facts()} == {"aaaa", "cccc"}
    assert await store.marks() == {MAIN: 3}
    assert await evidence(store) == [seen]
    assert await store.tombstones() == {b"one": NOW}
    assert await store.vectors("m") == {"aaaa": b"1"}
    assert len(await store.changes(10)) == 1


async def test_a_deleted_session_is_no_longer_where_facts_were_said(state_db, clock, store):
    sessions = SqliteSessions(state_db, clock)
    await sessions.add_rows(CHAT, [(NewRow(RowRole.USER, (Text("hello"),)), NOW)])
    fact = a_fact(origin=Provenance(CHAT, 1))
    seen = tuple(Evidence(NOW, CHAT, seq, 2, 9, fact_id=fact.id) for seq in (1, 2))
    other = a_fact("bbbb", "B.", origin=Provenance(MAIN, 5))
    await put(store, fact, other, evidence=seen, marks={CHAT: 1, MAIN: 5})
    await sessions.delete(CHAT)
    assert [f.origin for f in await store.facts()] == [Provenance(), Provenance(MAIN, 5)]
    assert await evidence(store) == [Evidence(NOW, fact_id="aaaa")]
    assert await store.marks() == {MAIN: 5}


async def test_the_last_answer_to_a_proposal_counts(store):
    assert await store.answers() == {}
    await store.answer("aaaa", NOW, accepted=False)
    await store.answer("bbbb", NOW, accepted=True)
    await store.answer("aaaa", NOW + DAY, accepted=True)
    await store.answer("bbbb", NOW + DAY, accepted=False)
    await store.rebuild([])
    assert await store.answers() == {"aaaa": True, "bbbb": False}


_STEP = next(step for step in STATE.steps if "CREATE TABLE fact_evidence" in step)
BEFORE = Schema("state", STATE.application_id, STATE.steps[: STATE.steps.index(_STEP)])
_AT = "2026-05-04T09:30:00.000000+00:00"


def _old_rows(conn):
    """Facts as earlier versions kept them."""
    facts = [
        ("aaaaaaaa", "The user lives in Rome.", "superseded", _AT, "bbbbbbbb"),
        ("bbbbbbbb", "The user lives in Oslo.", "active", None, ""),
        ("cccccccc", "The user plays the flute.", "superseded", _AT, ""),
        ("dddddddd", "", "forgotten", _AT, ""),
    ]
    for fact_id, text, status, until, by in facts:
        triple = '["user","home","Oslo"]' if by == "" and text else None
        conn.execute(
            (
                "INSERT INTO facts VALUES (?, ?, 'personal', 'extracted', 0.6, ?, ?, "
                "?, ?, ?, 'main', 7, ?)"
            ),
            (fact_id, text, _AT, _AT, status, until, by, triple),
        )
    for fact_id, session, seq in (
        ("aaaaaaaa", "main", 3),
        ("bbbbbbbb", "main", 7),
        ("bbbbbbbb", "chat:a", 1),
        ("bbbbbbbb", "", 0),
    ):
        conn.execute(
            "INSERT INTO fact_sightings (fact_id, at, session, seq) VALUES (?, ?, ?, ?)",
            (fact_id, _AT, session, seq),
        )
    conn.execute("INSERT INTO fact_marks VALUES ('main', 7)")
    conn.execute("INSERT INTO fact_tombstones VALUES (x'00ff', ?)", (_AT,))
    conn.execute("INSERT INTO fact_parked (fact_id) VALUES ('cccccccc')")
    conn.execute("INSERT INTO fact_answers VALUES ('bbbbbbbb', ?, 1)", (_AT,))
    conn.execute("INSERT INTO fact_vectors VALUES ('bbbbbbbb', 'm', x'01')")


async def test_every_fact_of_an_earlier_version_is_there_with_the_rows_that_say_it(tmp_path):
    async with Database.open(tmp_path / "state.db", BEFORE) as db:
        await db.write(_old_rows)
    async with Database.open(tmp_path / "state.db", STATE) as db:
        store = SqliteFacts(db)
        facts = await store.facts()
        assert [(f.id, f.status, f.superseded_by) for f in facts] == [
            ("aaaaaaaa", FactStatus.SUPERSEDED, "bbbbbbbb"),
            ("bbbbbbbb", FactStatus.ACTIVE, ""),
            ("cccccccc", FactStatus.ENDED, ""),
            ("dddddddd", FactStatus.FORGOTTEN, ""),
        ]
        oslo = facts[1]
        assert (oslo.text, oslo.triple) == (
            "The user lives in Oslo.",
            Triple("user", "home", "Oslo"),
        )
        at = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
        rows = {(one.session, one.seq, one.end, one.at) for one in await evidence(store, oslo.id)}
        assert rows == {(MAIN, 7, 0, at), (CHAT, 1, 0, at), ("", 0, 0, at)}
        assert len(await evidence(store, "aaaaaaaa")) == 1
        assert await store.marks() == {MAIN: 7}
        assert await store.tombstones() == {b"\x00\xff": at}
        assert await store.parked_ids() == ("cccccccc",)
        assert await store.answers() == {"bbbbbbbb": True}
        assert await store.vectors("m") == {"bbbbbbbb": b"\x01"}
        assert await store.changes(10) == ()


async def test_no_byte_of_a_buried_fact_is_left_once_its_erasure_has_ended(state_db, store):
    many = [a_fact(f"{n:08d}", f"Zitronenfalter {n} " + "x" * (n % 900)) for n in range(400)]
    await put(store, *many)
    await store.put_vectors("m", {fact.id: b"zitronenfalter" for fact in many})
    erasures = SqliteErasures(state_db)
    number = await erasures.begin(Erasure(sentences=("Zitronenfalter",)))
    await store.bury([fact.id for fact in many], [], NOW)
    await erasures.end([number])
    held = b"".join(file.read_bytes() for file in state_db.path.parent.iterdir())
    assert b"00000399" in held, "the test could not fail"
    assert b"itronenfalter" not in held


async def test_facts_are_as_they_stand_whoever_changed_them(store, state_db):
    await put(store, a_fact("aaaa"), a_fact("bbbb", noted_at=NOW - DAY))
    first = await store.facts()
    assert [fact.id for fact in first] == ["bbbb", "aaaa"]
    assert await store.facts() is first, "nothing has changed"
    await state_db.execute("UPDATE facts SET text = 'other' WHERE id = ?", ("aaaa",))
    assert [fact.text for fact in await store.facts()] == [first[0].text, "other"]
    assert (await store.facts())[0] is first[0], "it was not read again"
    await state_db.execute("UPDATE facts SET id = 'cccc' WHERE id = ?", ("aaaa",))
    await state_db.execute("DELETE FROM facts WHERE id = ?", ("bbbb",))
    await put(store, a_fact("dddd", noted_at=NOW + DAY))
    assert [fact.id for fact in await store.facts()] == ["cccc", "dddd"]
    assert await SqliteFacts(state_db).facts() == await store.facts()


async def test_a_change_that_fails_leaves_the_facts_as_they_were(store, state_db):
    await put(store, a_fact())
    before = await store.facts()

    def fail(conn):
        conn.execute("DELETE FROM facts")
        raise StorageError("no", cure="")

    with pytest.raises(StorageError):
        await state_db.write(fail)
    assert await store.facts() == before


def in_memory(text):
    """How many facts with these words there are."""
    gc.collect()
    return sum(isinstance(one, Fact) and one.text == text for one in gc.get_objects())


async def test_what_was_forgotten_is_not_in_memory_until_somebody_asks_again(store, state_db):
    words = "The user's cat is called Quastelbury."
    await put(store, a_fact(text=words))
    assert len(await store.facts()) == 1
    assert in_memory(words), "it is held until then"
    await store.bury(["aaaa"], [b"digest"], NOW)
    assert not in_memory(words)
