"""A key in a message is read by the turn that it was sent to, and by nobody afterwards."""

from __future__ import annotations

from agentd.core.event import NoticeGiven
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolOutput
from agentd.core.turn import Origin, TurnRequest
from agentd.testing.models import call

KEY = "sk-ant-api03-" + "k" * 40
MARK = "[secret:anthropic]"


class Reader:
    """A tool that gives back a file of the user's, key and all, and keeps what it was asked."""

    spec = ToolSpec("peek", "Read.", {"type": "object"}, Effect.READ_ONLY, "read")

    def __init__(self):
        self.asked = []

    async def run(self, call, gate):
        self.asked.append(call.input)
        return ToolOutput(f"the key: {KEY}")


def words(prompt):
    return repr(prompt.messages)


async def test_the_running_turn_reads_the_key_and_the_next_one_a_mark(world):
    await world.start()
    await world.say(f"check {KEY} for me")
    await world.say("and now?")
    first, second = map(words, world.provider.prompts)
    assert KEY in first
    assert KEY not in second
    assert MARK in second


async def test_the_user_is_told_in_the_turn(world):
    await world.start()
    ticket = await world.submit(f"check {KEY} for me")
    await ticket.wait()
    assert ticket.receipt.redacted == 1
    (told,) = [event for event in world.events.events if isinstance(event, NoticeGiven)]
    assert told.tag == "redacted"
    assert "holds a key" in told.text
    await world.say("no key")
    assert len([event for event in world.events.events if isinstance(event, NoticeGiven)]) == 1


async def test_what_a_tool_found_is_read_in_the_same_turn_and_kept_without_the_key(world):
    world.tools = (tool := Reader(),)
    await world.start()
    world.provider.say(call("peek", where=f"behind {KEY}"), f"It is {KEY}.")
    turn = await world.say("which key is in my notes?")
    assert turn.text == f"It is {KEY}."
    assert KEY in words(world.provider.prompts[1])
    assert tool.asked == [{"where": f"behind {MARK}"}]
    assert KEY not in repr(await world.store.rows("main"))
    await world.say("again?")
    assert KEY not in words(world.provider.prompts[2])


async def test_a_note_that_the_model_writes_has_a_mark_for_the_key(world):
    await world.start()
    world.provider.say(call("memory_write", content=f"his key is {KEY}"), "noted")
    await world.say("remember my key")
    (note,) = world.workspace.files.values()
    assert KEY not in note.decode()
    assert f"his key is {MARK}" in note.decode()


async def test_what_a_silent_turn_says_is_handed_on_without_the_key(world):
    await world.start()
    world.provider.say(f"look at {KEY}")
    request = TurnRequest("main", "beat", "beat:1", origin=Origin.HEARTBEAT)
    turn = await (await world.sessions.submit(request)).wait()
    assert turn.text == f"look at {MARK}"


async def test_a_message_cut_by_a_crash_ends_with_a_notice_when_its_key_was_not_kept(world):
    await world.start(begin=False)
    await world.submit(f"check {KEY}", "m1")
    await world.submit("and this without one", "m2")
    await world.stop()
    await world.start()
    turn = await (await world.submit("", "m2")).wait()
    assert turn.failure is None
    ended = (await world.submit("", "m1")).receipt.ended
    assert ended.failure.code == "key_not_kept"
    assert "Send the message again" in ended.failure.cure
    asked = [row.text for row in await world.store.rows("main") if row.role == "user"]
    assert f"check {MARK}" in asked
    assert len(world.provider.prompts) == 1
