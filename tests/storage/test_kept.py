"""What stores keep of turns has no keys in it, over every implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.job import At, NewJob
from agentd.core.message import OpaqueBlock, Text, ToolResult, ToolUse
from agentd.core.tool import Intent, ToolCall, ToolOutput
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import (
    MAIN,
    Failure,
    FinishedCall,
    Origin,
    SessionKey,
    SessionKind,
    StopReason,
    Turn,
    TurnRequest,
)

KEY = "sk-ant-api03-" + "k" * 40
MARK = "[secret:anthropic]"


def told(rows):
    """All that rows say, as one text."""
    return repr(rows)


async def begun(store, text, **more):
    receipt = await store.receive(TurnRequest(MAIN, text, "m1", **more))
    return receipt, await store.begin(receipt.turn_id)


async def test_a_message_is_kept_without_its_keys_and_says_how_many_there_were(stores):
    receipt, (row,) = await begun(stores.sessions, f"use {KEY} or AKIAIOSFODNN7EXAMPLE, please")
    assert row.text == f"use {MARK} or [secret:aws], please"
    assert receipt.redacted == 2
    again = await stores.sessions.receive(TurnRequest(MAIN, "whatever", "m1"))
    assert (again.turn_id, again.redacted) == (receipt.turn_id, 2)
    (pending,) = await stores.sessions.pending()
    assert (pending.redacted, pending.receipt.redacted) == (2, 2)
    assert KEY not in told(pending)


@pytest.mark.parametrize(
    "text", ["", "no key here", "[secret:aws]", "sk-learn is a library", "é\x00"]
)
async def test_a_message_without_a_key_is_kept_byte_for_byte(stores, text):
    receipt, (row,) = await begun(stores.sessions, text)
    assert (row.text, receipt.redacted) == (text, 0)


async def test_what_was_quoted_is_still_what_was_quoted(stores):
    text = f"{KEY} he said: <quote {KEY} end> and so on"
    start, end = text.index("<"), text.index(">") + 1
    _, (row,) = await begun(stores.sessions, text, quoted=((start, end),))
    (words,) = row.blocks
    ((first, last),) = words.quoted
    assert words.text[first:last] == f"<quote {MARK} end>"


async def test_no_row_of_a_turn_keeps_a_key(stores):
    receipt, _ = await begun(stores.sessions, "hello")
    use = ToolUse("c1", "memory_write", {"content": [f"x {KEY}"], "append": True})
    blocks = (Text(f"it is {KEY}"), OpaqueBlock("anthropic", {"thinking": KEY}), use)
    row = await stores.sessions.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, blocks))
    assert row.blocks == (
        Text(f"it is {MARK}"),
        ToolUse("c1", "memory_write", {"content": [f"x {MARK}"], "append": True}),
    )
    result = NewRow(RowRole.USER, (ToolResult("c1", KEY, is_error=True),))
    await stores.sessions.append(receipt.turn_id, result)
    turn = Turn(
        MAIN,
        "m1",
        f"so {KEY}",
        StopReason.END_TURN,
        tool_calls=(FinishedCall("c1", "memory_write", {"content": KEY}, is_error=False),),
    )
    last = NewRow(RowRole.ASSISTANT, (Text(f"so {KEY}"),))
    await stores.sessions.finish(receipt.turn_id, turn, [last])
    again = await stores.sessions.receive(TurnRequest(MAIN, "hello", "m1"))
    assert again.ended.text == f"so {MARK}"
    assert KEY not in told(again.ended)
    assert KEY not in told(await stores.sessions.rows(MAIN))


async def test_failures_notices_summaries_and_imports_keep_none_either(stores):
    store = stores.sessions
    receipt, _ = await begun(store, "hello")
    failed = Turn(MAIN, "m1", failure=Failure("x", f"refused {KEY}"))
    await store.finish(receipt.turn_id, failed)
    await store.notice(MAIN, f"beware of {KEY}", "alert")
    await store.swap(MAIN, 0, 2, f"all about {KEY}")
    brought = NewRow(RowRole.USER, (Text(f"mine: {KEY}"),))
    chat = SessionKey("chat:old")
    await store.add_rows(chat, [(brought, datetime(2026, 1, 1, tzinfo=UTC))])
    assert (await store.load(MAIN)).summary == f"all about {MARK}"
    kept = (
        await store.rows(MAIN),
        await store.rows(chat),
        (await store.receive(TurnRequest(MAIN, "hello", "m1"))).ended,
    )
    assert KEY not in told(kept)


async def test_the_journal_keeps_neither_a_key_that_goes_in_nor_one_that_comes_out(stores):
    receipt, _ = await begun(stores.sessions, "hello")
    call = ToolCall("c1", "remember", {"text": KEY}, MAIN, SessionKind.OWNER, Origin.USER)
    await stores.journal.intend(receipt.turn_id, Intent(call))
    assert KEY not in told(await stores.journal.open_calls())
    await stores.journal.settle(receipt.turn_id, "c1", ToolOutput(f"read {KEY}", tainted=True))
    assert await stores.journal.outputs(receipt.turn_id) == {
        "c1": ToolOutput(f"read {MARK}", tainted=True)
    }


async def test_silent_turns_keep_none_while_they_run(stores):
    receipt, (row,) = await begun(stores.sessions, f"look at {KEY}", origin=Origin.HEARTBEAT)
    assert row.text == f"look at {MARK}"
    await stores.sessions.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, (Text(f"saw {KEY}"),)))
    assert KEY not in told(await stores.sessions.begin(receipt.turn_id))


async def test_neither_a_tools_name_nor_that_of_an_argument_keeps_one(stores):
    receipt, _ = await begun(stores.sessions, "hello")
    use = ToolUse("c1", KEY, {KEY: 1})
    row = await stores.sessions.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, (use,)))
    assert row.blocks == (ToolUse("c1", MARK, {MARK: 1}),)
    call = ToolCall("c1", KEY, {KEY: "x"}, MAIN, SessionKind.OWNER, Origin.USER)
    await stores.journal.intend(receipt.turn_id, Intent(call))
    assert KEY not in told(await stores.journal.open_calls())


async def test_a_job_keeps_none(stores, clock):
    due = clock.now() + timedelta(hours=1)
    job = await stores.jobs.add(NewJob(f"say {KEY}", At(due)), due, most=1)
    assert job.what.text == f"say {MARK}"
    assert KEY not in told(await stores.jobs.jobs())
