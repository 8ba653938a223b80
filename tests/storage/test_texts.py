"""All text of the state database is looked through, with its place and who wrote it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from agentd.core.alert import NewAlert
from agentd.core.message import Text, ToolResult, ToolUse
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey, StopReason, Turn, TurnRequest
from agentd.storage.masking import PAGE, Masking
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.session_store import SqliteSessions

CHAT = SessionKey("chat:one")


@asynccontextmanager
async def nobody(_):
    yield


@pytest.fixture
def sessions(state_db, clock):
    return SqliteSessions(state_db, clock)


async def talk(sessions, session, *rows):
    receipt = await sessions.receive(TurnRequest(session, "hello", "m1"))
    await sessions.begin(receipt.turn_id)
    for row in rows:
        await sessions.append(receipt.turn_id, row)
    ended = Turn(session, "m1", "bye", StopReason.END_TURN)
    await sessions.finish(receipt.turn_id, ended, [NewRow(RowRole.ASSISTANT, (Text("bye"),))])


async def test_every_text_is_there_with_its_place_and_its_writer(state_db, sessions, clock):
    use = ToolUse("t1", "memory_search", {"query": "tea", "queries": ["green tea"], "limit": 3})
    await talk(
        sessions,
        MAIN,
        NewRow(RowRole.ASSISTANT, (Text("I look."), use)),
        NewRow(RowRole.USER, (ToolResult("t1", "found tea"),)),
    )
    await talk(sessions, CHAT)
    history = await sessions.load(CHAT)
    await sessions.swap(CHAT, history.generation, 2, "what was said")
    await SqliteOutbox(state_db, clock).put(NewAlert("tea!", "heartbeat", "x", ("main",)))
    found = [one async for texts in Masking(state_db, nobody).texts() for one in texts]
    assert [(one.where, one.text, one.by_user) for one in found] == [
        ("sessions/main.jsonl:1", "hello", True),
        ("sessions/main.jsonl:2", "I look.\nmemory_search\ntea\ngreen tea", False),
        ("sessions/main.jsonl:3", "found tea", False),
        ("sessions/main.jsonl:4", "bye", False),
        ("sessions/chat:one.jsonl:1", "hello", True),
        ("sessions/chat:one.jsonl:2", "bye", False),
        ("sessions/chat:one.jsonl:3", "what was said", False),
        ("sessions/chat:one.jsonl:summary", "what was said", False),
        ("alerts:1", "tea!", False),
    ]
    assert found[0].at == clock.now()


async def test_one_row_is_found_by_its_number(state_db, sessions):
    await talk(sessions, CHAT)
    texts = Masking(state_db, nobody)
    row = await texts.said(CHAT, 1)
    assert row is not None
    assert (row.where, row.text, row.by_user) == ("sessions/chat:one.jsonl:1", "hello", True)
    assert await texts.said(CHAT, 3) is None
    assert await texts.said(SessionKey("chat:none"), 1) is None


async def test_many_rows_come_in_portions(state_db, sessions):
    for n in range(300):
        receipt = await sessions.receive(TurnRequest(MAIN, f"text {n}", f"m{n}"))
        await sessions.begin(receipt.turn_id)
        ended = Turn(MAIN, f"m{n}", "bye", StopReason.END_TURN)
        await sessions.finish(receipt.turn_id, ended, [NewRow(RowRole.ASSISTANT, (Text("bye"),))])
    portions = [len(texts) async for texts in Masking(state_db, nobody).texts()]
    assert sum(portions) == 600
    assert len(portions) > 1


class Looking:
    """Wants texts with a word, and counts the others."""

    def __init__(self, word):
        self.word, self.others = word, 0

    places = ("sessions/chat:9.jsonl:1", "memory/a.md:3", "sessions/chat:9.jsonl:summary")

    def may_be(self, text, where):
        assert where
        return self.word in text

    def among(self, texts):
        return [n for n, text in enumerate(texts) if self.word in text]

    def looked_for(self):
        return lambda text: self.word in text

    def expect(self, count):
        self.expected = count

    def pass_over(self, count):
        self.others += count


async def test_of_many_rows_only_those_that_are_wanted_are_read(state_db, sessions):
    for n in range(30):
        session = SessionKey(f"chat:{n}")
        await talk(sessions, session, NewRow(RowRole.ASSISTANT, (Text(f"text {n}."),)))
    looking = Looking("text 7.")
    found = [one async for texts in Masking(state_db, nobody).texts(looking) for one in texts]
    assert [one.text for one in found] == ["text 7.", "hello"], "and what stands at its places"
    assert looking.others == 30 * 3 - 2
    assert looking.expected == 30 * 3


async def test_where_the_named_rows_are_is_asked_for_once(state_db, sessions):
    class Asked(Looking):
        asked = 0

        @property
        def places(self):
            self.asked += 1
            return {"sessions/main.jsonl:3", "memory/a.md:1"}

    said = (NewRow(RowRole.ASSISTANT, (Text(f"text {n}."),)) for n in range(2 * PAGE))
    await talk(sessions, MAIN, *said)
    looking = Asked("text 1999.")
    found = [one async for texts in Masking(state_db, nobody).texts(looking) for one in texts]
    assert [one.text for one in found] == ["text 1.", "text 1999."]
    assert looking.asked == 1, "not for each page of rows"


@pytest.mark.parametrize(
    "block",
    [
        Text("plain words"),
        Text('in "quotes"'),
        Text("a\\b\nc"),
        Text('"}]'),
        Text("茶室"),
        Text("said by others", ((0, 4),)),
        Text(""),
    ],
)
async def test_a_row_says_the_same_whether_it_is_read_as_json_or_not(state_db, sessions, block):
    await talk(sessions, MAIN, NewRow(RowRole.ASSISTANT, (block,)))
    found = [one async for texts in Masking(state_db, nobody).texts() for one in texts]
    assert found[1].text == block.text
