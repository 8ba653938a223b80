"""Facts that are carried from one agentd to another, or back to the same."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from agentd.core.errors import InvalidRequest
from agentd.core.fact import FactStatus, Op
from agentd.memory.facts.exchange import take_in
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
    await here.book.put_aside({aside: ""})
    await here.learn(here.said("", Op.END, ended))
    await take_in(there.book, await export(here))
    assert await there.texts() == []
    assert sorted(await over(there)) == [COCOA, TEA]


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
