"""Choices and copies of sessions, over every implementation of the store."""

from __future__ import annotations

import pytest

from agentd.core.errors import Busy, NotFound
from agentd.core.message import Text
from agentd.core.transcript import ApprovalMode, Choices, Coverage, NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey, StopReason, Turn, TurnRequest

CHAT = SessionKey("chat:one")
COPY = SessionKey("chat:two")
CHOSEN = Choices(ApprovalMode.ASK, "a-model", "low")


async def turn(sessions, text, *, ends=True, session=CHAT):
    receipt = await sessions.receive(TurnRequest(session, text, text))
    await sessions.begin(receipt.turn_id)
    row = NewRow(RowRole.ASSISTANT, (Text(f"{text}!"),))
    if ends:
        ended = Turn(session, text, f"{text}!", StopReason.END_TURN)
        await sessions.finish(receipt.turn_id, ended, (row,))


async def test_choices_are_kept_and_part_of_the_history(stores) -> None:
    await stores.sessions.create(CHAT)
    assert await stores.sessions.choices(CHAT) == Choices()
    await stores.sessions.choose(CHAT, CHOSEN)
    assert await stores.sessions.choices(CHAT) == CHOSEN
    assert (await stores.sessions.load(CHAT)).choices == CHOSEN
    assert await stores.sessions.choices(MAIN) == Choices()


async def test_choices_go_with_their_session(stores) -> None:
    await stores.sessions.choose(MAIN, CHOSEN)
    await stores.sessions.delete(MAIN)
    assert await stores.sessions.choices(MAIN) == Choices()
    with pytest.raises(NotFound):
        await stores.sessions.choose(CHAT, CHOSEN)


async def test_a_copy_has_transcript_context_and_choices_and_goes_its_own_way(stores) -> None:
    for text in ("one", "two"):
        await turn(stores.sessions, text)
    await stores.sessions.cover(CHAT, Coverage(1, 2, True, ""))
    await stores.sessions.swap(CHAT, 0, 3, "they said one")
    await stores.sessions.choose(CHAT, CHOSEN)
    await stores.sessions.fork(CHAT, COPY, "/there")
    first, second = await stores.sessions.load(CHAT), await stores.sessions.load(COPY)
    assert [row.text for row in second.rows] == ["two", "two!"]
    for name in ("summary", "context_from", "covered_to", "generation", "choices"):
        assert getattr(first, name) == getattr(second, name)
    told = [[row.text for row in await stores.sessions.rows(key)] for key in (CHAT, COPY)]
    assert told[0] == told[1]
    assert await stores.sessions.coverages(COPY) == await stores.sessions.coverages(CHAT)
    infos = {info.key: info for info in await stores.sessions.sessions()}
    assert (infos[COPY].turns, infos[COPY].rows, infos[COPY].title) == (2, 5, "one")
    assert infos[COPY].cwd == "/there"
    await turn(stores.sessions, "three", session=COPY)
    assert len(await stores.sessions.rows(CHAT)) == 5
    assert [row.seq for row in await stores.sessions.rows(COPY)] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_turn_that_runs_is_not_copied(stores) -> None:
    await turn(stores.sessions, "one")
    await turn(stores.sessions, "two", ends=False)
    await stores.sessions.fork(CHAT, COPY)
    assert [row.text for row in await stores.sessions.rows(COPY)] == ["one", "one!"]
    assert [p.request.session for p in await stores.sessions.pending()] == [CHAT]


async def test_a_copy_needs_a_session_and_a_free_key(stores) -> None:
    with pytest.raises(NotFound):
        await stores.sessions.fork(CHAT, COPY)
    await stores.sessions.create(COPY)
    with pytest.raises(Busy):
        await stores.sessions.fork(MAIN, COPY)
