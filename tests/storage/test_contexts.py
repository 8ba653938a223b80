"""Rows that are kept in memory are those that stand in the database."""

from __future__ import annotations

import pytest

from agentd.core.message import Text
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import SessionKey
from agentd.storage import transcript
from agentd.storage.codec import dump_blocks
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.storage.transcript import MIN_CACHED_ROWS, ContextCache
from agentd.testing import FakeClock

CHAT = SessionKey("chat:a")
SECRET = "the words that are to go"


def said(number: int) -> NewRow:
    role = (RowRole.USER, RowRole.ASSISTANT)[number % 2]
    return NewRow(role, (Text(f"Words of row {number}."),))


@pytest.fixture
async def db(tmp_path):
    async with Database.open(tmp_path / "state.db", STATE) as db:
        yield db


@pytest.fixture
async def contexts(db):
    """A session of more than few rows, as they are held."""
    await add(db, CHAT, MIN_CACHED_ROWS + 10)
    contexts = ContextCache()
    await loaded(db, contexts)
    return contexts


async def add(db, session, count, text=None):
    now = FakeClock().now()

    def change(conn):
        transcript.make_session(conn, session, now)
        found = transcript.find_session(conn, session)
        for number in range(count):
            row = said(number) if text is None else NewRow(RowRole.USER, (Text(text),))
            transcript.add_row(conn, found["id"], row, now)

    await db.write(change)


async def loaded(db, contexts, session=CHAT):
    return (await db.read(lambda c: transcript.load_history(c, session, contexts))).rows


async def stored(db, session=CHAT):
    return await loaded(db, ContextCache(), session)


async def change(db, statement, *values):
    await db.write(lambda conn: conn.execute(statement, values))


async def test_rows_are_decoded_once_and_what_is_new_is_added(db, contexts):
    before = await loaded(db, contexts)
    await add(db, CHAT, 1)
    after = await loaded(db, contexts)
    assert after == await stored(db)
    assert len(after) == len(before) + 1
    assert all(one is other for one, other in zip(before, after, strict=False))


async def test_a_row_that_is_changed_is_dropped_at_once_with_all_others(db, contexts):
    assert contexts.size > 0
    blocks = dump_blocks([Text("[masked]")])
    await change(db, "UPDATE rows SET blocks = ? WHERE seq = 3", blocks)
    assert contexts.size == 0
    assert await loaded(db, contexts) == await stored(db)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM rows WHERE seq < 5", "DELETE FROM sessions WHERE key = 'chat:a'"]
)
async def test_rows_that_are_deleted_are_dropped_at_once(db, contexts, statement):
    await change(db, statement)
    assert contexts.size == 0
    assert await loaded(db, contexts) == await stored(db)


async def test_a_context_that_begins_elsewhere_is_read_from_there(db, contexts):
    await change(db, "UPDATE sessions SET context_from = 9")
    rows = await loaded(db, contexts)
    assert rows[0].seq == 9
    assert rows == await stored(db)


async def test_rows_of_a_transaction_that_failed_are_not_kept(db, contexts):
    now = FakeClock().now()

    def fails(conn):
        found = transcript.find_session(conn, CHAT)
        transcript.add_row(conn, found["id"], NewRow(RowRole.USER, (Text("never said"),)), now)
        transcript.load_history(conn, CHAT, contexts)
        raise KeyError

    with pytest.raises(KeyError):
        await db.write(fails)
    await add(db, CHAT, 1, "said instead")
    rows = await loaded(db, contexts)
    assert rows[-1].text == "said instead"
    assert rows == await stored(db)


async def test_what_is_held_of_all_sessions_is_bounded(db):
    contexts = ContextCache(most=200_000)
    for number in range(8):
        session = SessionKey(f"chat:{number}")
        await add(db, session, MIN_CACHED_ROWS + 10)
        await loaded(db, contexts, session)
        assert contexts.size <= 200_000
    assert contexts.size > 100_000


async def test_a_context_of_few_rows_is_not_held(db):
    contexts = ContextCache()
    await add(db, CHAT, MIN_CACHED_ROWS - 1)
    await loaded(db, contexts)
    assert contexts.size == 0


async def test_a_connection_that_takes_the_place_of_another_is_heard(db, contexts):
    before = await loaded(db, contexts)
    await db.verify()
    await change(db, "UPDATE rows SET tag = 'x' WHERE seq = 2")
    assert await loaded(db, contexts) == await stored(db) != before
