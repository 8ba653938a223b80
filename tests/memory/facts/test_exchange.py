"""Facts that are carried from one agentd to another, or back to the same."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from agentd.core.errors import InvalidRequest
from agentd.core.fact import FactStatus, OperationKind
from agentd.memory.facts.exchange import take_in
from agentd.memory.facts.import_order import successors_first
from tests.memory.facts.books import MAX, REX, BookHome, opened_book_home

TEA, COCOA = "The user drinks tea at night.", "The user drinks cocoa at night."


@pytest.fixture
async def homes(tmp_path):
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(opened_book_home(tmp_path / name))
            for name in ("here", "there")
        ]


async def export(home: BookHome) -> list[dict]:
    return [fact.as_json() for fact in await home.book.all()]


async def over(home: BookHome) -> list[str]:
    return [f.text for f in await home.book.all() if f.text and not f.is_active]


async def test_facts_that_are_taken_in_twice_are_there_once(homes):
    here, there = homes
    [graz] = await here.add("The user lives in Graz.")
    await here.replace("The user lives in Linz.", graz)
    rows = await export(here)
    there.clock.jump(timedelta(days=1))
    assert await take_in(there.book, rows) == {"added": 2, "known": 0, "refused": {}}
    facts = await export(there)
    assert await take_in(there.book, rows) == {"added": 0, "known": 2, "refused": {}}
    assert await export(there) == facts
    assert await there.texts() == ["The user lives in Linz."]
    await there.check()


async def test_what_a_fact_is_worth_and_when_it_holds_is_carried_along(homes):
    here, there = homes
    until = here.clock.now() + timedelta(days=30)
    await here.add(TEA, confidence=0.42, valid_to=until)
    [row] = await export(here)
    await take_in(there.book, [row])
    [taken] = await export(there)
    same = (
        "text",
        "status",
        "category",
        "confidence",
        "source",
        "valid_from",
        "valid_to",
        "noted_at",
    )
    assert {key: taken[key] for key in same} == {key: row[key] for key in same}


async def test_what_held_no_longer_when_it_was_written_out_holds_no_longer_where_it_is_taken_in(
    homes,
):
    here, there = homes
    await here.add(TEA)
    here.edit(TEA, COCOA)
    here.clock.jump(timedelta(days=1))
    await here.book.sync()
    await take_in(there.book, await export(here))
    assert (await there.texts(), await over(there)) == ([COCOA], [TEA])
    now = next(fact for fact in await there.book.all() if fact.is_active)
    assert [fact.text for fact in await there.book.history(now.id)] == [TEA, COCOA]


async def test_what_ended_for_nothing_is_not_taken_in_as_what_holds(homes):
    here, there = homes
    [aside, ended] = await here.add(TEA, COCOA)
    await here.book.end_facts({aside: ""})
    await here.learn(here.said("", OperationKind.END, ended))
    await take_in(there.book, await export(here))
    assert await there.texts() == []
    assert sorted(await over(there)) == [COCOA, TEA]


def story(facts: list[dict]) -> set[tuple]:
    """What an export says, without what is another at each place."""
    said = {row["id"]: row["text"] for row in facts}
    return {
        (row["text"], row["status"], row["valid_from"], row["valid_to"], said.get(by))
        for row in facts
        for by in [row["superseded_by"]]
    }


async def a_past(home: BookHome) -> list[dict]:
    """An export with facts that were replaced twice, ended, merged into an older one, and said
    again.
    """
    [tea, anna, rex, *same] = await home.add(TEA, "The user is married to Anna.", REX, MAX, "Max!")
    await home.replace(COCOA, tea)
    [cocoa] = [f.id for f in await home.book.all() if f.text == COCOA]
    await home.replace("The user drinks water at night.", cocoa)
    await home.learn(home.said("", OperationKind.END, anna))
    await home.book.merge(same[0], same[1:])
    await home.replace("The user has no dog.", rex)
    await home.add(REX)
    home.clock.jump(timedelta(days=9))
    return await export(home)


async def test_what_is_over_has_the_same_end_and_the_same_successor(homes):
    here, there = homes
    rows = await a_past(here)
    there.clock.jump(timedelta(days=300))
    done = await take_in(there.book, rows)
    assert done == {"added": len(rows), "known": 0, "refused": {}}
    assert story(await export(there)) == story(rows)
    there.opened()
    assert story(await export(there)) == story(rows), "the page says it, too"
    await there.check()


async def test_an_import_that_is_cut_anywhere_and_made_again_is_as_one_that_was_not(
    tmp_path, homes
):
    here, _ = homes
    rows = await a_past(here)
    holding = {row["text"] for row in rows if row["status"] == "active"}
    sent = [row for _, row in successors_first(rows)]
    for page, cut in ((1, 3), (2, 4), (3, 3), (3, 6), (4, 8)):
        async with opened_book_home(tmp_path / f"{page} {cut}") as there:
            there.clock.jump(timedelta(days=300))
            for at in range(0, cut, page):
                await take_in(there.book, sent[at : min(at + page, cut)])
                assert {*await there.texts()} <= holding
            for at in range(0, len(sent), page):
                await take_in(there.book, sent[at : at + page])
            assert story(await export(there)) == story(rows)


async def test_what_came_for_a_fact_and_is_not_taken_in_leaves_it_ended(homes):
    here, there = homes
    [tea] = await here.add(TEA)
    await here.replace(COCOA, tea)
    await there.book.forget(await there.add(COCOA))
    await take_in(there.book, await export(here))
    assert (await there.texts(), await there.texts(FactStatus.ENDED)) == ([], [TEA])


def test_rows_that_name_each_other_are_all_there_once():
    rows = [
        {"id": "a", "text": "A", "status": "superseded", "superseded_by": "b"},
        {"id": "b", "text": "B", "status": "superseded", "superseded_by": "a"},
        {"id": ["odd"], "text": "C", "status": "superseded", "superseded_by": {"x": 1}},
        {"id": "d", "text": "D", "valid_from": "2026-01-01"},
        {"id": "e", "text": "E", "status": "superseded", "superseded_by": "d"},
    ]
    ordered = list(successors_first(rows))
    assert sorted(place for place, _ in ordered) == [0, 1, 2, 3, 4]
    assert ordered[0] == (3, rows[3])
    assert dict(ordered)[4]["successor"] == {"text": "D", "valid_from": "2026-01-01"}


async def test_what_waits_for_a_yes_waits_where_it_is_taken_in(homes):
    here, there = homes
    await here.learn(here.said(TEA, is_proven=False))
    await take_in(there.book, await export(here))
    assert (await there.texts(), await there.texts(FactStatus.PROPOSED)) == ([], [TEA])


async def test_what_was_forgotten_since_the_export_stays_forgotten(homes):
    home, _ = homes
    [fact_id] = await home.add(TEA)
    rows = await export(home)
    await home.book.forget([fact_id])
    assert await take_in(home.book, rows) == {"added": 0, "known": 0, "refused": {"forgotten": 1}}
    assert await home.texts() == []
    await home.add(TEA)  # told again on purpose
    assert await home.texts() == [TEA]


async def test_forgotten_rows_and_secrets_are_left_out(homes):
    here, there = homes
    [rex, _] = await here.add(REX, MAX)
    await here.book.forget([rex])
    rows = await export(here)
    rows.append({**rows[1], "text": "The user's password is hunter2hunter2."})
    assert await take_in(there.book, rows) == {"added": 1, "known": 0, "refused": {"secret": 1}}
    assert await there.texts() == [MAX]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"text": COCOA}, "valid_from"),
        ({"valid_from": "2026-01-01"}, "text"),
        ({"text": 3, "valid_from": "2026-01-01"}, "text"),
        ({"text": COCOA, "valid_from": "2026-01-01", "category": "pets"}, "category"),
        ({"text": COCOA, "valid_from": "2026-01-01", "source": "gossip"}, "source"),
        ({"text": COCOA, "valid_from": "2026-01-01", "confidence": 2}, "confidence"),
        ({"text": COCOA, "valid_from": "2026-01-01", "confidence": True}, "confidence"),
        ({"text": COCOA, "valid_from": "2026-01-01", "triple": ["a", "b"]}, "triple"),
        ({"text": COCOA, "valid_from": "2026-01-01", "valid_to": "soon"}, "valid_to"),
        ({"text": COCOA, "valid_from": "0001-01-01"}, "valid_from"),
        (
            {"text": COCOA, "valid_from": "2026-01-01", "valid_to": "9999-12-31T23:59-05:00"},
            "valid_to",
        ),
        (
            {"text": COCOA, "valid_from": "2026-01-01", "status": "ended", "successor": "a"},
            "successor",
        ),
        ({"text": COCOA, "valid_from": "2026-01-01", "id": {"a": 1}}, "id"),
        ({"text": COCOA, "valid_from": "2026-01-01", "superseded_by": ["a"]}, "superseded_by"),
    ],
    ids=str,
)
async def test_one_row_that_is_no_fact_is_named_and_nothing_is_taken_in(homes, wrong, name):
    here, there = homes
    await here.add(TEA)
    with pytest.raises(InvalidRequest, match=rf"facts\[2\]\.{name}") as caught:
        await take_in(there.book, [*await export(here), wrong])
    assert caught.value.cure
    assert await there.book.all() == ()
