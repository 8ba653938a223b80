"""The contract of SessionStore, over every implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.alert import NewAlert
from agentd.core.beat import BeatFinding, Outcome, Reason
from agentd.core.errors import Busy, InvalidRequest, NotFound
from agentd.core.message import (
    BY_AGENT,
    BY_OTHERS,
    BY_OWNER,
    OpaqueBlock,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
)
from agentd.core.tool import Intent, ToolCall
from agentd.core.transcript import Coverage, NewRow, RowRole, SummaryTrouble
from agentd.core.turn import (
    DELETED,
    MAIN,
    Failure,
    FinishedCall,
    Origin,
    PromptScope,
    SessionKey,
    SessionKind,
    StopReason,
    Turn,
    TurnRequest,
    TurnState,
    Usage,
)
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.proofs import digest_of
from agentd.storage.session_store import SqliteSessions

CHAT = SessionKey("chat:one")


def request(text="hello", message_id="m1", session=MAIN, **more):
    return TurnRequest(session, text, message_id, **more)


def said(text, role=RowRole.ASSISTANT, **more):
    return NewRow(role, (Text(text),), **more)


def ended(receipt, text="done", **more):
    return Turn(
        receipt.session,
        receipt.message_id,
        text,
        **{"stop_reason": StopReason.END_TURN, **more},
    )


async def talk(store, text, answer, session=MAIN):
    receipt = await store.receive(request(text, f"id of {text}", session))
    await store.begin(receipt.turn_id)
    await store.finish(receipt.turn_id, ended(receipt, answer), [said(answer)])


async def test_a_repeated_message_id_gives_the_old_receipt(stores):
    first = await stores.sessions.receive(request())
    again = await stores.sessions.receive(request("something else"))
    assert (again.turn_id, again.ended) == (first.turn_id, None)
    assert len(await stores.sessions.pending()) == 1


async def test_the_same_message_id_in_another_session_is_another_message(stores):
    first = await stores.sessions.receive(request())
    other = await stores.sessions.receive(request(session=CHAT))
    assert other.turn_id > first.turn_id


async def test_a_repeat_of_an_ended_turn_returns_its_whole_outcome(stores):
    receipt = await stores.sessions.receive(request())
    await stores.sessions.begin(receipt.turn_id)
    outcome = ended(
        receipt,
        "gone wrong",
        stop_reason=None,
        usage=Usage(1, 2, 3, 4),
        tool_calls=(FinishedCall("c1", "memory_write", {"content": "x"}, is_error=True),),
        failure=Failure("provider_auth", "no key", "set one"),
    )
    await stores.sessions.finish(receipt.turn_id, outcome)
    assert (await stores.sessions.receive(request())).ended == outcome


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("  spaces\r\nand lines\t\n", id="white space"),
        pytest.param("e\u0301 é \u200b\ufeff", id="not normalised"),
        pytest.param("a\x00b\x1b[0m", id="control characters"),
        pytest.param("日本語 🎉 \U0010ffff", id="beyond ascii"),
        pytest.param("", id="empty"),
        pytest.param('{"type": "text"} \\u0041 \\', id="looks like json"),
    ],
)
async def test_a_user_row_is_stored_byte_for_byte(stores, text):
    receipt = await stores.sessions.receive(request(text))
    (row,) = await stores.sessions.begin(receipt.turn_id)
    assert row.text == text
    assert (await stores.sessions.rows(MAIN))[0].blocks == (Text(text),)


async def test_half_a_surrogate_pair_is_refused(stores):
    with pytest.raises(InvalidRequest):
        await stores.sessions.receive(request("bad \ud800 text"))
    assert await stores.sessions.pending() == ()


async def test_half_a_surrogate_pair_in_an_answer_is_kept(stores):
    receipt = await stores.sessions.receive(request())
    await stores.sessions.begin(receipt.turn_id)
    await stores.sessions.append(receipt.turn_id, said("odd \ud800"))
    assert (await stores.sessions.rows(MAIN))[1].text == "odd \ud800"


async def test_half_a_surrogate_pair_from_a_model_stops_nothing(stores, clock):
    odd = "odd \ud800 one"
    assert await stores.sessions.add_rows(CHAT, [(said(odd, RowRole.USER), clock.now())]) == 1
    assert await stores.sessions.swap(CHAT, 0, 2, odd)
    assert "odd" in (await stores.sessions.load(CHAT)).summary
    await stores.sessions.cover(CHAT, Coverage(1, 1, ok=False, reason=odd))
    beat_id = await stores.beats.begin_beat(None, None, "")
    alert = NewAlert(odd, "heartbeat", "d", ("main",))
    found = BeatFinding(Outcome.ALERT, Reason.ALERT, odd, alert=alert)
    beat, put = await stores.beats.end_beat(beat_id, [found])
    assert beat.outcome is Outcome.ALERT
    assert put[0].text.startswith("odd")


async def test_pending_turns_carry_the_whole_request_in_inbox_order(stores):
    asked = [
        request("a", "1", client="editor", model="big", tools=frozenset({"x", "y"})),
        request("b", "2", CHAT, context=PromptScope.LIGHT, tools=frozenset()),
        request("c", "3", origin=Origin.FLUSH),
    ]
    receipts = [await stores.sessions.receive(r) for r in asked]
    await stores.sessions.begin(receipts[1].turn_id)
    await stores.sessions.begin(receipts[1].turn_id)
    pending = await stores.sessions.pending()
    assert [p.request for p in pending] == asked
    assert [p.turn_id for p in pending] == [r.turn_id for r in receipts]
    assert [(p.state, p.attempts) for p in pending] == [
        (TurnState.RECEIVED, 0),
        (TurnState.RUNNING, 2),
        (TurnState.RECEIVED, 0),
    ]


async def test_a_parked_turn_has_used_no_attempt(stores):
    receipt = await stores.sessions.receive(request())
    await stores.sessions.begin(receipt.turn_id)
    await stores.sessions.park(receipt.turn_id)
    await stores.sessions.park(receipt.turn_id)
    (pending,) = await stores.sessions.pending()
    assert (pending.attempts, pending.state) == (0, TurnState.RUNNING)
    await stores.sessions.finish(receipt.turn_id, ended(receipt))
    await stores.sessions.park(receipt.turn_id)


async def test_a_second_begin_returns_the_rows_so_far_once(stores):
    receipt = await stores.sessions.receive(request())
    await stores.sessions.begin(receipt.turn_id)
    blocks = (OpaqueBlock("anthropic", {"type": "thinking"}), ToolUse("c1", "t", {"a": [1, None]}))
    usage = Usage(5, 6, 7, 8)
    await stores.sessions.append(
        receipt.turn_id, NewRow(RowRole.ASSISTANT, blocks, "anthropic", usage)
    )
    result = NewRow(RowRole.USER, (ToolResult("c1", "42", is_error=True),))
    await stores.sessions.append(receipt.turn_id, result)
    rows = await stores.sessions.begin(receipt.turn_id)
    assert [r.seq for r in rows] == [1, 2, 3]
    assert rows[1].blocks == blocks
    assert (rows[1].provider, rows[1].usage, rows[1].turn_id) == (
        "anthropic",
        usage,
        receipt.turn_id,
    )
    assert rows == await stores.sessions.rows(MAIN)


async def test_an_ended_turn_takes_nothing_more(stores):
    await talk(stores.sessions, "q", "a")
    for change in (
        stores.sessions.begin(1),
        stores.sessions.append(1, said("late")),
        stores.sessions.finish(1, Turn(MAIN, "m")),
    ):
        with pytest.raises(InvalidRequest):
            await change
    with pytest.raises(NotFound):
        await stores.sessions.begin(99)


async def test_a_turn_that_never_began_keeps_what_the_user_said(stores):
    receipt = await stores.sessions.receive(request("keep me"))
    notice = said("gave up", RowRole.NOTICE, tag="failure")
    added = await stores.sessions.finish(receipt.turn_id, ended(receipt), [notice])
    assert [r.text for r in added] == ["gave up"]
    assert [r.text for r in await stores.sessions.rows(MAIN)] == ["keep me", "gave up"]


async def test_silent_turns_leave_no_trace_in_the_transcript(stores):
    receipt = await stores.sessions.receive(request("flush", "f1", origin=Origin.FLUSH))
    await stores.sessions.begin(receipt.turn_id)
    await stores.sessions.append(receipt.turn_id, said("secret"))
    assert [r.text for r in await stores.sessions.begin(receipt.turn_id)] == ["flush", "secret"]
    await stores.sessions.finish(receipt.turn_id, ended(receipt, "NO_REPLY"), [said("NO_REPLY")])
    assert await stores.sessions.rows(MAIN) == ()
    assert (await stores.sessions.load(MAIN)).rows == ()
    again = await stores.sessions.receive(request("flush", "f1", origin=Origin.FLUSH))
    assert again.ended is not None
    assert again.ended.text == "NO_REPLY"


async def test_load_shows_the_context_and_swap_moves_it(stores):
    store = stores.sessions
    await talk(store, "old", "old answer")
    await talk(store, "new", "new answer")
    assert [row.seq for row in (await store.load(MAIN)).rows] == [1, 2, 3, 4]
    assert await store.swap(MAIN, 0, 3, "what was said")
    history = await store.load(MAIN)
    assert [r.text for r in history.rows] == ["new", "new answer"]
    assert (history.summary, history.context_from, history.generation) == ("what was said", 3, 1)
    assert history.swapped_at == 5
    assert [r.role for r in await store.rows(MAIN)][-1] is RowRole.SUMMARY
    await store.notice(MAIN, "told", "alert")
    assert [r.seq for r in (await store.load(MAIN)).rows] == [3, 4, 6]


async def test_a_stale_swap_changes_nothing(stores):
    await talk(stores.sessions, "q", "a")
    assert await stores.sessions.swap(MAIN, 0, 3, "")
    before = await stores.sessions.rows(MAIN)
    assert not await stores.sessions.swap(MAIN, 0, 1, "late summary")
    history = await stores.sessions.load(MAIN)
    assert (history.rows, history.summary, history.generation) == ((), "", 1)
    assert await stores.sessions.rows(MAIN) == before


async def test_a_cover_resets_what_failed_before_it(stores):
    store = stores.sessions
    await talk(store, "q", "a")
    assert await store.flush_failed(MAIN, "timeout") == 1
    assert await store.flush_failed(MAIN, "timeout") == 2
    await store.set_flush_due([MAIN, CHAT])
    history = await store.load(MAIN)
    assert (history.flush_failures, history.flush_due, history.covered_to) == (2, True, 0)
    assert (await store.sessions())[0].flush_due
    first, second = Coverage(1, 2, ok=True, reason="stored"), Coverage(1, 1, ok=False, reason="x")
    await store.cover(MAIN, first)
    await store.cover(MAIN, second)
    history = await store.load(MAIN)
    assert (history.flush_failures, history.flush_due, history.covered_to) == (0, False, 2)
    assert not (await store.sessions())[0].flush_due
    assert await store.coverages(MAIN) == (first, second)
    assert await store.coverages(CHAT) == ()


async def test_recent_counts_turns_and_keeps_notices_between_them(stores):
    store = stores.sessions
    await talk(store, "one", "1")
    receipt = await store.receive(request("two", "2"))
    await store.begin(receipt.turn_id)
    await store.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, (ToolUse("c", "t", {}),)))
    await store.append(receipt.turn_id, NewRow(RowRole.USER, (ToolResult("c", "r"),)))
    await store.finish(receipt.turn_id, ended(receipt), [said("2")])
    await store.notice(MAIN, "alert", "alert")
    await store.swap(MAIN, 0, 3, "summary")
    await talk(store, "three", "3")
    assert [r.text for r in await store.recent(MAIN, 2)] == [
        *("two", "", "", "2"),
        "alert",
        *("three", "3"),
    ]
    assert len(await store.recent(MAIN, 50)) == 9
    assert await store.recent(MAIN, 0) == ()
    assert await store.recent(CHAT, 5) == ()


async def test_rows_page_by_number(stores):
    await talk(stores.sessions, "q", "a")
    await talk(stores.sessions, "r", "b")
    assert [r.seq for r in await stores.sessions.rows(MAIN, 2, 2)] == [2, 3]
    assert await stores.sessions.rows(MAIN, 9) == ()
    with pytest.raises(NotFound):
        await stores.sessions.rows(CHAT)


async def test_main_always_exists(stores):
    store = stores.sessions
    assert await store.exists(MAIN)
    assert [s.key for s in await store.sessions()] == [MAIN]
    assert await store.rows(MAIN) == ()
    assert not await store.create(MAIN)
    assert (await store.notice(MAIN, "first", "alert")).seq == 1
    assert not await store.exists(CHAT)
    with pytest.raises(NotFound):
        await store.notice(CHAT, "lost", "alert")


async def test_sessions_are_listed_by_last_use(stores, clock):
    store = stores.sessions
    await talk(store, "first line\nsecond line", "a")
    clock.jump(timedelta(minutes=1))
    assert await store.create(CHAT, "/work")
    assert not await store.create(CHAT)
    clock.jump(timedelta(minutes=1))
    receipt = await store.receive(request("more", "m2"))
    await store.begin(receipt.turn_id)
    await store.finish(receipt.turn_id, ended(receipt), [said("b", usage=Usage(10, 5, 20, 0))])
    main, chat = await store.sessions()
    assert (main.key, main.title, main.rows, main.turns) == (MAIN, "first line", 4, 2)
    assert main.context_tokens == 35
    assert (chat.key, chat.cwd, chat.rows) == (CHAT, "/work", 0)


async def test_the_sessions_of_heartbeats_are_not_listed(stores):
    beat = request("look", "b1", SessionKey("heartbeat:main"), origin=Origin.HEARTBEAT)
    await stores.sessions.receive(beat)
    assert [s.key for s in await stores.sessions.sessions()] == [MAIN]
    assert await stores.sessions.row_counts() == {}


async def test_the_rows_of_stored_sessions_are_counted_in_the_order_of_last_use(stores, clock):
    store = stores.sessions
    assert await store.row_counts() == {}
    await store.create(CHAT)
    clock.jump(timedelta(minutes=1))
    await talk(store, "one", "a")
    clock.jump(timedelta(minutes=1))
    other = SessionKey("chat:other")
    await store.create(other)
    listed = [(info.key, info.rows) for info in await store.sessions()]
    assert list((await store.row_counts()).items()) == listed
    assert listed == [(other, 0), (MAIN, 2), (CHAT, 0)]


async def test_imported_rows_keep_their_dates_and_come_once(stores):
    at = datetime(2020, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)
    rows = [(said("q", RowRole.USER), at), (said("a"), at + timedelta(seconds=1))]
    assert await stores.sessions.add_rows(CHAT, rows) == 2
    stored = await stores.sessions.rows(CHAT)
    assert [(r.text, r.at) for r in stored] == [("q", at), ("a", at + timedelta(seconds=1))]
    assert [r.text for r in await stores.sessions.recent(CHAT, 1)] == ["q", "a"]
    with pytest.raises(Busy):
        await stores.sessions.add_rows(CHAT, rows)


async def test_the_newest_flush_turn_is_found_by_its_start(stores):
    for message_id, origin in (
        ("flush:main:1-4", Origin.FLUSH),
        ("flush:main:1-8", Origin.FLUSH),
        ("flush:main:11-12", Origin.FLUSH),
        ("flush:main:1-9", Origin.USER),
    ):
        await stores.sessions.receive(request("x", message_id, origin=origin))
    other = request("x", "flush:main:1-7", CHAT, origin=Origin.FLUSH)
    receipt = await stores.sessions.receive(other)
    await stores.sessions.finish(receipt.turn_id, ended(receipt))
    assert await stores.sessions.last_asked(MAIN, "flush:main:1-") == "flush:main:1-8"
    assert await stores.sessions.last_asked(CHAT, "flush:main:1-") == "flush:main:1-7"
    assert await stores.sessions.last_asked(MAIN, "flush:main:2-") == ""


async def test_the_last_client_heard_of_is_the_owners(stores, clock):
    assert await stores.sessions.last_heard() is None
    await stores.sessions.receive(request("a", "1", client="phone"))
    await stores.sessions.receive(request("b", "2", SessionKey("group:x"), client="stranger"))
    await stores.sessions.receive(request("c", "3", client="heartbeat", origin=Origin.HEARTBEAT))
    assert await stores.sessions.last_heard() == (clock.now(), "phone")


async def test_loading_costs_the_same_at_any_length_of_history(state_db, clock):
    store, steps = SqliteSessions(state_db, clock), Steps()
    await state_db.read(lambda conn: conn.set_progress_handler(steps.count, 10))

    async def cost():
        steps.taken = 0
        assert len((await store.load(CHAT)).rows) == 6
        assert len(await store.recent(CHAT, 3)) == 6
        assert await store.pending() == ()
        return steps.taken

    def history(count):
        return [
            (said(f"row {n}", RowRole.USER if n % 2 == 0 else RowRole.ASSISTANT), clock.now())
            for n in range(count)
        ]

    await store.add_rows(CHAT, history(6))
    short = await cost()
    other = SessionKey("chat:other")
    await store.add_rows(other, history(5_000))
    assert await cost() <= short + 5
    await state_db.execute("DELETE FROM rows WHERE session_id = 1", ())
    await state_db.execute("UPDATE sessions SET rows = 0 WHERE id = 1", ())
    await store.add_rows(CHAT, history(5_000))
    await store.swap(CHAT, 0, 4_995, "")
    assert await cost() <= short + 5


class Steps:
    """Counts what SQLite's machine does."""

    def __init__(self):
        self.taken = 0

    def count(self):
        self.taken += 1
        return 0


async def test_a_deleted_session_is_gone_and_can_begin_again(stores, clock):
    store = stores.sessions
    await talk(store, "secret", "answer", CHAT)
    await talk(store, "other", "answer")
    await store.cover(CHAT, Coverage(1, 2, ok=True, reason="saved"))
    await store.delete(CHAT)
    assert not await store.exists(CHAT)
    assert await store.coverages(CHAT) == ()
    with pytest.raises(NotFound):
        await store.rows(CHAT)
    with pytest.raises(NotFound):
        await store.delete(CHAT)
    assert len(await store.rows(MAIN)) == 2
    receipt = await store.receive(request("secret", "id of secret", CHAT))
    assert [r.seq for r in await store.begin(receipt.turn_id)] == [1]


async def test_a_deletion_is_remembered_until_it_is_done_everywhere(stores):
    store = stores.sessions
    assert await store.unerased() == {}
    await talk(store, "secret", "answer", CHAT)
    for session in (CHAT, MAIN, MAIN):
        if session == MAIN:
            await talk(store, "other", "answer")
        await store.delete(session)
    with pytest.raises(NotFound):
        await store.delete(CHAT)
    assert list((await store.unerased()).values()) == [CHAT, MAIN, MAIN]
    first, second, third = await store.unerased()
    await store.mark_erased(second)
    await store.mark_erased(second)
    assert await store.unerased() == {first: CHAT, third: MAIN}
    await store.mark_erased(third)
    await talk(store, "another", "answer")
    await store.delete(MAIN)
    assert third not in await store.unerased(), "whoever ends the old one would end it"


async def test_main_is_emptied_and_no_old_summary_can_come_back(stores):
    store = stores.sessions
    await talk(store, "secret", "answer")
    before = await store.load(MAIN)
    await store.delete(MAIN)
    assert await store.exists(MAIN)
    assert await store.rows(MAIN) == ()
    (info,) = await store.sessions()
    assert (info.key, info.rows, info.turns, info.title) == (MAIN, 0, 0, "")
    assert not await store.swap(MAIN, before.generation, 2, "what was said before")
    assert (await store.load(MAIN)).summary == ""


async def test_a_session_whose_turn_has_not_ended_is_not_deleted(stores):
    receipt = await stores.sessions.receive(request(session=CHAT))
    with pytest.raises(Busy):
        await stores.sessions.delete(CHAT)
    await stores.sessions.begin(receipt.turn_id)
    with pytest.raises(Busy):
        await stores.sessions.delete(CHAT)
    await stores.sessions.finish(receipt.turn_id, ended(receipt))
    await stores.sessions.delete(CHAT)


async def test_the_costs_of_a_deleted_session_stay_without_its_name(state_db, clock):
    store, ledger = SqliteSessions(state_db, clock), SqliteLedger(state_db, clock)
    await talk(store, "q", "a", CHAT)
    await ledger.charge(CHAT, Origin.USER, "m", Usage(10, 5), 0.25)
    await ledger.charge(MAIN, Origin.USER, "m", Usage(1, 1), 0.5)
    await store.delete(CHAT)
    spent = {row[0]: row[3] for row in await ledger.breakdown(clock.now() - timedelta(days=1))}
    assert spent == {DELETED: 0.25, MAIN: 0.5}


async def test_of_a_silent_turn_that_has_ended_no_row_and_no_call_is_left(state_db, clock):
    sessions, journal = SqliteSessions(state_db, clock), SqliteJournal(state_db)

    async def left() -> list[int]:
        tables = ("silent_rows", "calls")
        count = "SELECT count(*) FROM {}"
        return await state_db.read(
            lambda conn: [conn.execute(count.format(name)).fetchone()[0] for name in tables]
        )

    receipt = await sessions.receive(request("look", "beat:1", origin=Origin.HEARTBEAT))
    await sessions.begin(receipt.turn_id)
    call = ToolCall("c1", "notify", {"text": "x"}, MAIN, SessionKind.OWNER, Origin.HEARTBEAT)
    await journal.intend(receipt.turn_id, Intent(call))
    assert await left() == [1, 1]
    await sessions.finish(receipt.turn_id, ended(receipt), [said("all is well")])
    assert await left() == [0, 0]


async def test_a_row_keeps_where_its_text_comes_from(stores):
    tainted = TextSource(Writer.AGENT, tainted=True)
    receipt = await stores.sessions.receive(request())
    await stores.sessions.begin(receipt.turn_id)
    added = await stores.sessions.append(receipt.turn_id, said("from outside", source=tainted))
    await stores.sessions.finish(receipt.turn_id, ended(receipt), [said("well")])
    rows = await stores.sessions.rows(MAIN)
    assert [row.source for row in rows] == [BY_OWNER, tainted, BY_AGENT]
    assert added == rows[1]
    await stores.sessions.fork(MAIN, CHAT)
    assert [row.source for row in await stores.sessions.rows(CHAT)] == [r.source for r in rows]


@pytest.mark.parametrize(
    ("session", "origin", "source"),
    [
        (CHAT, Origin.USER, BY_OWNER),
        (SessionKey("group:club"), Origin.USER, BY_OTHERS),
        (MAIN, Origin.FLUSH, BY_AGENT),
    ],
)
async def test_a_message_is_of_whoever_speaks_in_its_session(stores, session, origin, source):
    receipt = await stores.sessions.receive(request(session=session, origin=origin))
    assert [row.source for row in await stores.sessions.begin(receipt.turn_id)] == [source]
    assert [row.source for row in await stores.sessions.begin(receipt.turn_id)] == [source]


async def test_what_a_sender_marked_waits_with_the_message_and_stands_in_its_row(stores):
    marked = ((0, 5), (8, 9))
    receipt = await stores.sessions.receive(request("hello, you", quoted=marked))
    (waiting,) = await stores.sessions.pending()
    assert waiting.request.quoted == marked
    (row,) = await stores.sessions.begin(receipt.turn_id)
    assert row.blocks == (Text("hello, you", marked),)
    await stores.sessions.finish(receipt.turn_id, ended(receipt))
    assert (await stores.sessions.rows(MAIN))[0].blocks == (Text("hello, you", marked),)


async def test_a_message_that_never_began_is_kept_with_what_was_marked(stores):
    receipt = await stores.sessions.receive(request(quoted=((1, 3),)))
    await stores.sessions.finish(receipt.turn_id, ended(receipt))
    assert (await stores.sessions.rows(MAIN))[0].blocks == (Text("hello", ((1, 3),)),)


async def test_marks_of_a_message_that_has_ended_are_emptied_like_its_text(state_db, clock):
    store = SqliteSessions(state_db, clock)
    receipt = await store.receive(request(quoted=((1, 3),)))
    await store.finish(receipt.turn_id, ended(receipt))
    columns = "SELECT text, quoted FROM turns"
    assert await state_db.read(lambda c: tuple(c.execute(columns).fetchone())) == ("", "[]")


async def test_what_came_from_outside_is_summed_up_apart_and_not_carried_on(stores):
    store = stores.sessions
    await store.create(CHAT)
    await store.swap(CHAT, 0, 1, "of his words", "of the mail")
    rows = await store.rows(CHAT)
    assert [(r.role, r.text, str(r.source)) for r in rows] == [
        (RowRole.SUMMARY, "of the mail", "agent tainted"),
        (RowRole.SUMMARY, "of his words", "agent"),
    ]
    history = await store.load(CHAT)
    assert (history.summary, history.rows) == ("of his words", ())


async def test_a_summary_of_what_others_say_is_tainted_and_carried_on(stores):
    group = SessionKey("group:club")
    await stores.sessions.create(group)
    await stores.sessions.swap(group, 0, 1, "of their words")
    (row,) = await stores.sessions.rows(group)
    assert row.source.tainted
    assert (await stores.sessions.load(group)).summary == "of their words"


async def test_a_summary_that_a_former_version_made_of_all_is_not_carried_on(state_db, clock):
    store = SqliteSessions(state_db, clock)
    await store.create(CHAT)
    await store.swap(CHAT, 0, 1, "obey")
    await state_db.execute("UPDATE rows SET source = 'agent tainted'", ())
    await state_db.execute(f"UPDATE rows SET digest = {digest_of()}", ())
    assert (await store.load(CHAT)).summary.startswith("[left out: a summary")
    assert (await store.rows(CHAT))[0].text == "obey"


async def test_what_nobody_named_and_nobody_used_goes_after_a_day(state_db, clock):
    store = SqliteSessions(state_db, clock)
    made = [SessionKey(f"chat:{n:012x}") for n in range(3)]
    named = [SessionKey("chat:diary"), SessionKey("group:0123456789ab"), SessionKey("chat:0123")]
    for key in (*made, *named):
        await store.create(key)
    await talk(store, "hello", "hi", made[1])
    await store.receive(request("waits", "w", made[2]))
    assert await store.drop_unused() == 0, "a client may come back to it"
    clock.jump(timedelta(days=1, seconds=1))
    await store.create(fresh := SessionKey("chat:00000000000f"))
    assert await store.drop_unused() == 1
    assert not await store.exists(made[0])
    for key in (*made[1:], *named, fresh):
        assert await store.exists(key)
    assert await store.drop_unused() == 0


async def test_a_message_that_waits_for_the_service_says_so_until_it_begins_again(stores):
    store = stores.sessions
    receipt = await store.receive(request(patience=timedelta(hours=6)))
    await store.park(receipt.turn_id, waits=True)
    assert (await store.pending())[0].state is TurnState.RECEIVED, "it has no row yet"
    await store.begin(receipt.turn_id)
    await store.park(receipt.turn_id, waits=True)
    (waiting,) = await store.pending()
    assert (waiting.state, waiting.attempts) == (TurnState.WAITING, 0)
    assert waiting.request.patience == timedelta(hours=6)
    assert waiting.at == waiting.receipt.at == receipt.at
    assert len(await store.begin(receipt.turn_id)) == 1
    assert (await store.pending())[0].state is TurnState.RUNNING
    await store.finish(receipt.turn_id, ended(receipt), [said("done")])
    await store.park(receipt.turn_id, waits=True)
    assert await store.pending() == ()


async def test_how_summaries_fail_is_kept_until_they_work(stores, clock):
    store = stores.sessions
    await talk(store, "hello", "hi")
    trouble = SummaryTrouble(2, "too_short", clock.now() + timedelta(minutes=20))
    await store.set_trouble(MAIN, trouble)
    await store.mark_excerpted(MAIN)
    history = await store.load(MAIN)
    assert (history.trouble, history.is_excerpted) == (trouble, True)
    assert history.used_tokens == 0
    assert next(s for s in await store.sessions() if s.key == MAIN).trouble == trouble
    await store.swap(MAIN, 0, 3, "a summary")
    history = await store.load(MAIN)
    assert (history.trouble, history.is_excerpted) == (trouble, False)
    await store.set_trouble(MAIN, SummaryTrouble())
    assert (await store.load(MAIN)).trouble == SummaryTrouble()


async def test_a_session_with_an_unended_flush_alone_can_be_deleted(stores):
    store = stores.sessions
    await talk(store, "hello", "hi", CHAT)
    await store.receive(request("save", "flush:x", CHAT, origin=Origin.FLUSH))
    await store.delete(CHAT)
    assert not await store.exists(CHAT)


async def test_of_very_many_rows_only_the_newest_are_read_where_that_is_enough(stores, clock):
    store = stores.sessions
    roles = (RowRole.USER, RowRole.ASSISTANT)
    rows = [(said(f"row {n}", roles[n % 2]), clock.now()) for n in range(3_000)]
    await store.add_rows(CHAT, rows)
    await store.add_rows(MAIN, rows[:100])
    whole = await store.load(CHAT)
    assert (len(whole.rows), whole.left_out) == (3_000, 0)
    newest = await store.load(CHAT, 10_000)
    assert 200 < len(newest.rows) < 400
    assert newest.rows == whole.rows[-len(newest.rows) :]
    size = 10_000 / len(newest.rows)
    assert abs(newest.left_out / size - (3_000 - len(newest.rows))) < 200
    assert len((await store.load(CHAT, 1)).rows) == 1
    assert len((await store.load(MAIN, 1)).rows) == 100, "few are always read"
    await store.swap(CHAT, 0, 2_900, "a summary")
    assert len((await store.load(CHAT, 1)).rows) == 101
