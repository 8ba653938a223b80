"""Permissions: who is asked, and whose answer counts."""

import asyncio

import pytest
from acp import schema
from msgspec.structs import replace

from agentd.core.tool import Approval, Decision

WRITE = Approval("Write MEMORY.md", "d1", "MEMORY.md", "old", "new")
QUESTION = "session/request_permission"
REFUSED = b'{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"no"}}\n'


@pytest.fixture
async def asking(house):
    """A house whose turn asks before it ends; `house.verdicts` are the answers."""
    house.verdicts = []
    house.approval = WRITE

    async def ask(request):
        answer = await house.permissions.ask(request.session, "c1", house.approval)
        house.verdicts.append(answer)

    house.turns.before_end = ask
    return house


@pytest.mark.parametrize(
    ("option", "verdict"),
    [
        ("allow_once", Decision.ONCE),
        ("reject_once", Decision.DENY),
        ("allow_always", Decision.DENY),  # it was not offered
        ("x", Decision.DENY),
    ],
)
async def test_the_prompting_client_is_asked_with_a_diff(asking, option, verdict):
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    question = await client.until(QUESTION)
    asked = schema.RequestPermissionRequest.model_validate(question["params"])
    diff = asked.tool_call.content[0]
    assert (diff.path, diff.old_text, diff.new_text) == ("/ws/MEMORY.md", "old", "new")
    assert [o.kind for o in asked.options] == ["allow_once", "reject_once"]
    await client.reply(question, option)
    await client.answer(call_id)
    assert asking.verdicts == [verdict]


async def test_the_first_answer_of_all_clients_wins_and_the_others_are_told(asking):
    first = await (await asking.client()).hello()
    second = await (await asking.client()).hello()
    await second.resume("main")
    call_id = await first.prompt("main", "hi")
    mine = await first.until(QUESTION)
    await second.reply(await second.until(QUESTION), "allow_once")
    await first.answer(call_id)
    assert asking.verdicts == [Decision.ONCE]
    cancelled = await first.until("$/cancel_request")
    assert cancelled["params"]["requestId"] == mine["id"]


async def test_a_client_that_attaches_later_is_asked(asking):
    first = await (await asking.client()).hello()
    await first.prompt("main", "hi", "m1")
    await first.until(QUESTION)
    await first.close()
    await asking.settle(0)
    await asking.clock.advance(200)
    assert asking.verdicts == []
    second = await (await asking.client()).hello()
    await second.resume("main")
    await second.reply(await second.until(QUESTION), "allow_once")
    await second.answer(await second.prompt("main", "hi", "m1"))
    assert asking.verdicts == [Decision.ONCE]


async def test_nobody_attached_for_five_minutes_is_a_no(asking):
    client = await (await asking.client()).hello()
    await client.prompt("main", "hi")
    await client.until(QUESTION)
    await client.close()
    await asking.settle(0)
    await asking.clock.advance(299)
    assert asking.verdicts == []
    await asking.clock.advance(2)
    assert asking.verdicts == [Decision.UNASKED]


async def test_a_client_nobody_sits_at_denies_at_once(asking):
    client = await (await asking.client()).hello(**{"agentd/permissions": "deny"})
    await client.answer(await client.prompt("main", "hi"))
    assert asking.verdicts == [Decision.UNASKED]
    assert QUESTION not in [f["method"] for f in client.seen]


async def test_a_client_that_cannot_answer_counts_as_none(asking):
    client = await (await asking.client()).hello()
    await client.prompt("main", "hi")
    question = await client.until(QUESTION)
    await client.raw(REFUSED % question["id"].encode())
    await client.call("session/list")
    assert asking.verdicts == []
    await asking.clock.advance(301)
    assert asking.verdicts == [Decision.UNASKED]


async def test_a_client_that_cannot_answer_does_not_end_the_question_of_another_conversation(house):
    first, second = await (await house.client()).hello(), await (await house.client()).hello()
    await first.resume("main")
    await second.new()
    asking = asyncio.create_task(house.permissions.ask_owner("c1", WRITE))
    question = await first.until(QUESTION)
    pending = await second.until(QUESTION)
    await first.raw(REFUSED % question["id"].encode())
    await first.call("session/list")
    await house.clock.advance(301)  # the first conversation has nobody to ask for so long
    assert not asking.done()
    await second.reply(pending, "allow_once")
    assert await asking == Decision.ONCE


async def test_a_question_to_the_owner_that_nobody_can_answer_counts_as_unasked(house):
    clients = [await (await house.client()).hello() for _ in range(2)]
    for client in clients:
        await client.new()
    asking = asyncio.create_task(house.permissions.ask_owner("c1", WRITE))
    for client in clients:
        await client.raw(REFUSED % (await client.until(QUESTION))["id"].encode())
        await client.call("session/list")
    await house.clock.advance(301)
    assert await asking == Decision.UNASKED


async def test_a_lasting_yes_is_offered_for_a_scope_by_what_it_covers(asking):
    asking.approval = Approval(
        "Write USER.md", "d2", "USER.md", "a", "b", scope="bootstrap:USER.md"
    )
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "one")
    question = await client.until(QUESTION)
    options = [(option["kind"], option["name"]) for option in question["params"]["options"]]
    assert options == [
        ("allow_once", "Allow this once"),
        ("allow_always", "Allow, also for later changes of USER.md in this conversation"),
        ("reject_once", "Do not allow"),
    ]
    await client.reply(question, "allow_always")
    await client.answer(call_id)
    assert asking.verdicts == [Decision.ALWAYS]


async def test_a_cancelled_question_is_taken_back(house):
    client = await (await house.client()).hello()
    await client.resume("main")
    asking = asyncio.create_task(house.permissions.ask("main", "c1", WRITE))
    question = await client.until(QUESTION)
    asking.cancel()
    cancelled = await client.until("$/cancel_request")
    assert cancelled["params"]["requestId"] == question["id"]
    with pytest.raises(asyncio.CancelledError):
        await asking


def shown(question) -> str:
    parts = question["params"]["toolCall"]["content"]
    return "".join(part["content"]["text"] for part in parts)


def long_change() -> Approval:
    new = "".join(f"line {number} of many\n" for number in range(9_000)) + "the end\n"
    return Approval("Write a.md", "d3", "a.md", "old\n", new, scope="bootstrap:x:a.md")


async def test_a_long_change_is_shown_whole_page_by_page_before_it_can_be_allowed(asking):
    asking.approval = long_change()
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    text, titles = "", []
    while True:
        question = await client.until(QUESTION)
        schema.RequestPermissionRequest.model_validate(question["params"])
        text += shown(question)
        titles.append(question["params"]["toolCall"]["title"])
        options = [option["optionId"] for option in question["params"]["options"]]
        if options != ["next_page", "reject_once"]:
            break
        assert asking.verdicts == []
        await client.reply(question, "next_page")
    assert options == ["allow_once", "allow_always", "reject_once"]
    assert titles == [f"Write a.md (page {n} of {len(titles)})" for n in range(1, len(titles) + 1)]
    assert len(titles) > 2
    lines = text.split("\n")
    assert [line[1:] for line in lines if line.startswith("+")] == long_change().new_text.split(
        "\n"
    )[:-1]
    assert "-old" in lines
    await client.reply(question, "allow_once")
    await client.answer(call_id)
    assert asking.verdicts == [Decision.ONCE]


@pytest.mark.parametrize("option", ["reject_once", "allow_once", "allow_always", "x"])
async def test_nothing_but_turning_the_page_leads_to_the_question_that_counts(asking, option):
    asking.approval = long_change()
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    await client.reply(await client.until(QUESTION), option)
    await client.answer(call_id)
    assert asking.verdicts == [Decision.DENY]


async def test_a_question_about_a_call_shows_what_it_would_do(asking):
    asking.approval = Approval("Call pay", "d", new_text='{"to": "e\\u200bve"}\n\u202e')
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    question = await client.until(QUESTION)
    assert shown(question) == '{"to": "e\\u200bve"}\n⟨U+202E⟩'
    await client.reply(question, "reject_once")
    await client.answer(call_id)


async def test_what_hides_in_a_change_is_spelled_out_beside_it(asking):
    new = "one\npаypal\u202e\nthree\n"
    asking.approval = Approval("Write a\u200bb.md", "d", "a.md", "one\nthree\n", new)
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    question = await client.until(QUESTION)
    call = question["params"]["toolCall"]
    assert call["title"] == "Write a⟨U+200B⟩b.md"
    diff, spelled = call["content"]
    assert diff["newText"] == new, "an editor gets the very bytes"
    assert "+pа⟨U+0430⟩ypal⟨U+202E⟩" in spelled["content"]["text"]
    await client.reply(question, "reject_once")
    await client.answer(call_id)


async def test_warnings_stand_before_the_diff(asking):
    asking.approval = replace(WRITE, warnings=("MEMORY.md:3:1 looks bad (high)",))
    client = await (await asking.client()).hello()
    call_id = await client.prompt("main", "hi")
    question = await client.until(QUESTION)
    asked = schema.RequestPermissionRequest.model_validate(question["params"])
    warning, diff = asked.tool_call.content
    assert warning.content.text == "MEMORY.md:3:1 looks bad (high)"
    assert diff.new_text == "new"
    await client.reply(question, "reject_once")
    await client.answer(call_id)
