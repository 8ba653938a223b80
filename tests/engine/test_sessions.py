"""Turns through the one door."""

from __future__ import annotations

import asyncio

import pytest

from agentd.core.errors import (
    ContextOverflow,
    ProviderError,
    QueueFull,
    ShuttingDown,
    WorkspaceError,
)
from agentd.core.event import TextChunk, ToolCallEnded, ToolCallStarted, TurnEnded
from agentd.core.message import Text, ToolResult
from agentd.core.prompt import Prompt
from agentd.core.transcript import RowRole
from agentd.core.turn import MAIN, Origin, PromptScope, SessionKey, StopReason, TurnRequest
from agentd.engine.loop import LAST_CALL
from agentd.testing import MemoryWorkspace, ScriptedProvider, call, check_messages


class Held:
    """A provider that waits for a release before it says what the other one says."""

    name, model = "scripted", "scripted-1"

    def __init__(self, inner: ScriptedProvider) -> None:
        self.inner = inner
        self.called = asyncio.Event()
        self.release = asyncio.Event()

    async def stream(self, prompt: Prompt):
        self.called.set()
        await self.release.wait()
        async for event in self.inner.stream(prompt):
            yield event


async def test_a_turn_is_answered_stored_and_told(world) -> None:
    await world.start()
    world.provider.say("Hello Ada")
    turn = await world.say("hi, I am Ada")
    assert (turn.text, turn.stop_reason) == ("Hello Ada", StopReason.END_TURN)
    rows = await world.store.rows(MAIN)
    assert [(r.role, r.text) for r in rows] == [
        (RowRole.USER, "hi, I am Ada"),
        (RowRole.ASSISTANT, "Hello Ada"),
    ]
    assert "".join(e.text for e in world.events.of(TextChunk)) == "Hello Ada"
    assert world.events.of(TurnEnded)


async def test_the_next_prompt_carries_the_conversation_and_the_breakpoint_before_the_new_message(
    world,
) -> None:
    await world.start()
    await world.say("one")
    await world.say("two")
    prompt = world.provider.prompts[-1]
    assert [m.text for m in prompt.messages[:2]] == ["one", "ok"]
    assert prompt.messages[2].blocks[-1] == Text("two")
    assert prompt.messages[2].blocks[0].text.startswith("[Now: ")
    assert prompt.cached_messages == 2
    stored = (await world.store.rows(MAIN))[2]
    assert stored.blocks == (Text("two"),)


async def test_tools_run_after_their_message_is_durable_and_results_follow_it(world) -> None:
    await world.start()
    world.provider.say(call("memory_write", content="Max is the dog"), "noted")
    turn = await world.say("remember Max")
    assert turn.text == "noted"
    assert [c.name for c in turn.tool_calls] == ["memory_write"]
    assert "Max is the dog" in world.workspace.text("memory/2026-11-21.md")
    rows = await world.store.rows(MAIN)
    assert [r.role for r in rows] == ["user", "assistant", "user", "assistant"]
    assert isinstance(rows[2].blocks[0], ToolResult)
    assert world.events.of(ToolCallStarted)
    assert world.events.of(ToolCallEnded)


async def test_an_unknown_tool_and_wrong_input_are_told_to_the_model(world) -> None:
    await world.start()
    world.provider.say(
        call("rm_rf", "a", path="/"), call("memory_write", "b", colour="red"), "sorry"
    )
    turn = await world.say("go")
    assert [c.is_error for c in turn.tool_calls] == [True, True]
    results = [
        b for r in await world.store.rows(MAIN) for b in r.blocks if isinstance(b, ToolResult)
    ]
    assert "There is no tool 'rm_rf'" in results[0].text
    assert "colour" in results[1].text


@pytest.mark.parametrize(
    ("message", "cure", "told"),
    [
        ("a.md was not written: the disk is full", "free some space", "; free some space"),
        ("There is no a.md.", "Look at the tree.", ". Look at the tree."),
        ("a.md is broken", "", ""),
    ],
)
async def test_what_a_tool_could_not_do_is_told_with_what_to_do(world, message, cure, told) -> None:
    class Refusing(MemoryWorkspace):
        async def apply(self, *_) -> None:
            raise WorkspaceError(message, cure=cure)

    world.workspace = Refusing(clock=world.clock)
    await world.start()
    world.provider.say(call("memory_write", content="x"), "sorry")
    turn = await world.say("go")
    assert turn.text == "sorry"
    (result,) = world.provider.prompts[-1].messages[-1].blocks
    assert (result.text, result.is_error) == (message.rstrip(".") + told, True)


async def test_a_repeated_message_id_attaches_or_gives_the_stored_turn(world) -> None:
    await world.start()
    first, second = await world.submit("hello", "same"), await world.submit("hello", "same")
    assert (await first.wait()) == (await second.wait())
    again = await world.say("hello", "same")
    assert again.text == "ok"
    assert len(world.provider.prompts) == 1


async def test_prompts_queue_in_order_and_the_seventeenth_waiter_is_refused(world) -> None:
    script = world.provider
    world.provider = held = Held(script)
    await world.start()
    tickets = [await world.submit(str(n), f"q{n}") for n in range(17)]
    with pytest.raises(QueueFull):
        await world.submit("17", "q17")
    held.release.set()
    for ticket in tickets:
        await ticket.wait()
    asked = [r.text for r in await world.store.rows(MAIN) if r.role is RowRole.USER]
    assert asked == [str(n) for n in range(17)]


async def test_two_sessions_run_side_by_side(world) -> None:
    await world.start()
    inside = 0
    most = 0
    gate = asyncio.Event()

    def block(prompt: Prompt):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 2:
            gate.set()
        return "done"

    world.provider.default = block
    await asyncio.gather(world.say("a", session="chat:a"), world.say("b", session="chat:b"))
    assert most == 2


async def test_a_failed_turn_keeps_the_users_words_and_says_why(world) -> None:
    await world.start()
    world.provider.say(ProviderError("The key was refused.", cure="Set a key.", kind="auth"))
    turn = await world.say("hi")
    assert turn.failure.code == "provider_auth"
    rows = await world.store.rows(MAIN)
    assert [r.role for r in rows] == ["user", "notice"]
    assert "The key was refused. Set a key." in rows[1].text
    assert (await world.say("again")).text == "ok"
    assert "hi" not in [block.text for block in world.provider.prompts[-1].messages[-1].blocks]


async def test_a_failure_behind_a_tool_call_leaves_a_valid_transcript(world) -> None:
    await world.start()
    world.provider.say(
        call("memory_write", content="x"), ProviderError("down", kind="server", retryable=True)
    )
    assert (await world.say("go")).failure is not None
    assert (await world.say("next")).text == "ok"
    check_messages(world.provider.prompts[-1].messages)


async def test_cancel_keeps_the_shown_text_and_ends_the_turn(world) -> None:
    await world.start()
    world.provider.say("a long answer that is cut")

    class Cancelling:
        def emit(self, event) -> None:
            world.events.emit(event)
            if isinstance(event, TextChunk) and "long" in event.text:
                world.sessions.cancel(MAIN)

        async def wait_room(self, session) -> None:
            pass

    ticket = await world.sessions.submit(TurnRequest(MAIN, "go", "m"), Cancelling())
    turn = await ticket.wait()
    assert turn.stop_reason is StopReason.CANCELLED
    rows = await world.store.rows(MAIN)
    assert [r.role for r in rows] == ["user", "assistant", "notice"]
    assert rows[1].text == "a long"
    assert (await world.say("next")).text == "ok"


async def test_cancel_while_the_user_is_asked_answers_the_call_and_writes_nothing(world) -> None:
    asked = asyncio.Event()

    class Silent:
        async def ask(self, session, call_id, approval) -> bool:
            asked.set()
            await asyncio.Event().wait()

    world.answers = Silent()
    await world.start()
    world.provider.say(call("memory_write", content="evil", target="memory"))
    ticket = await world.submit("go")
    await asked.wait()
    assert world.sessions.cancel(MAIN)
    assert (await ticket.wait()).stop_reason is StopReason.CANCELLED
    assert "MEMORY.md" not in world.workspace.files
    assert (await world.say("next")).text == "ok"
    check_messages(world.provider.prompts[-1].messages)


async def test_an_argument_that_is_null_is_one_that_is_left_out(world) -> None:
    await world.start()
    world.provider.say(call("memory_write", content="tea", target=None, old_string=None))
    turn = await world.say("note it")
    assert [made.is_error for made in turn.tool_calls] == [False]
    world.provider.say(call("memory_write", "call_2", content=None))
    (made,) = (await world.say("note it")).tool_calls
    assert made.is_error, "what is needed is not left out"


async def test_the_last_call_of_a_turn_is_asked_for_an_answer(world) -> None:
    world.settings = world.settings.model_copy(update={"max_model_calls": 3})
    await world.start()

    def reply(prompt):
        number = len(world.provider.prompts)
        return call("memory_tree", f"c{number}") if prompt.may_call else "two looks so far"

    world.provider.default = reply
    turn = await world.say("look around")
    assert (turn.text, turn.stop_reason) == ("two looks so far", StopReason.END_TURN)
    first, second, last = world.provider.prompts
    assert (first.may_call, second.may_call, last.may_call) == (True, True, False)
    assert last.tools == first.tools
    assert last.messages[-1].blocks[-1] == Text(LAST_CALL)
    assert LAST_CALL not in str(await world.store.rows(MAIN)), "it is no part of the conversation"


async def test_a_turn_stops_at_its_limit_of_model_calls(world) -> None:
    world.settings = world.settings.model_copy(update={"max_model_calls": 3})
    await world.start()
    world.provider.default = lambda p: call(
        "memory_write", f"c{len(world.provider.prompts)}", content="again"
    )
    turn = await world.say("loop")
    assert turn.stop_reason is StopReason.MAX_TURN_REQUESTS
    assert len(world.provider.prompts) == 3


async def test_tool_calls_of_an_answer_that_was_cut_by_max_tokens_are_not_stored(world) -> None:
    from agentd.core.message import ToolUse, assistant
    from agentd.core.prompt import AnswerCompleted, ModelStop
    from agentd.core.turn import Usage

    class Cut:
        name, model = "cut", "cut-1"

        async def stream(self, prompt):
            message = assistant("so far", ToolUse("t", "memory_write", {"content": "x"}))
            yield AnswerCompleted(message, ModelStop.MAX_TOKENS, Usage(1, 1), "cut-1", "cut")

    world.provider = Cut()
    await world.start()
    turn = await world.say("go")
    assert turn.stop_reason is StopReason.MAX_TOKENS
    assert turn.text == "so far"
    assert world.workspace.files == {}


async def test_an_overflow_compacts_once_and_goes_on(world) -> None:
    await world.start()
    for n in range(6):
        await world.say(f"message {n}")
    world.provider.say(ContextOverflow("too long"), "made it", "NO_REPLY", "S" * 200)
    turn = await world.say("one more")
    assert turn.text == "made it"
    assert (await world.store.load(MAIN)).generation == 0  # it is cut before the next turn
    await world.say("and another")
    assert (await world.store.load(MAIN)).generation == 1
    summarised = world.provider.prompts[-1].messages[0].text
    assert "S" * 200 in summarised


async def test_an_overflow_in_a_tool_loop_clips_this_turns_results_first(world) -> None:
    big = "y" * 30_000
    from agentd.core.prompt import Effect, ToolSpec
    from agentd.core.tool import ToolOutput

    class Big:
        spec = ToolSpec("big", "b", {"type": "object"}, Effect.READ_ONLY)

        async def run(self, call, gate):
            return ToolOutput(big)

    world.tools = (Big(),)
    await world.start()
    world.provider.say(call("big"), ContextOverflow("too long"), "fits now")
    assert (await world.say("read it")).text == "fits now"
    sent = world.provider.prompts[-1].messages[-1].blocks[0]
    assert isinstance(sent, ToolResult)
    assert len(sent.text) < 2200
    stored = [
        b for r in await world.store.rows(MAIN) for b in r.blocks if isinstance(b, ToolResult)
    ]
    assert stored[0].text == big


async def test_an_overflow_that_stays_is_told_after_a_few_calls(world) -> None:
    await world.start()
    world.provider.default = ContextOverflow("too long", cure="/new")
    turn = await world.say("huge")
    assert turn.failure.code == "provider_overflow"
    assert len(world.provider.prompts) <= 3


async def test_a_light_silent_turn_sees_and_leaves_nothing(world) -> None:
    await world.start()
    await world.say("secret plans")
    world.provider.say("canary reply")
    request = TurnRequest(
        SessionKey("heartbeat:main"), "beat", "beat:1", Origin.HEARTBEAT, PromptScope.LIGHT
    )
    turn = await (await world.sessions.submit(request)).wait()
    assert turn.text == "canary reply"
    prompt = world.provider.prompts[-1]
    assert "secret" not in str(prompt.messages)
    assert prompt.system[0] == "Light."
    assert "canary" not in str(await world.store.rows(MAIN))
    assert all("canary" not in str(e) for e in world.events.events)


async def test_those_that_wait_are_counted_without_the_one_that_runs(world) -> None:
    world.provider = held = Held(world.provider)
    await world.start()
    assert world.sessions.queued(MAIN) == 0
    tickets = [await world.submit("hello", f"m{n}") for n in range(3)]
    await held.called.wait()
    assert world.sessions.queued(MAIN) == 2
    held.release.set()
    for ticket in tickets:
        await ticket.wait()
    assert world.sessions.queued(MAIN) == 0


async def test_the_next_prompt_is_shown_when_the_running_turn_has_ended(world) -> None:
    world.provider = held = Held(world.provider)
    await world.start()
    ticket = await world.submit("hello")
    await held.called.wait()
    shown = asyncio.ensure_future(world.requests.preview(MAIN))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not shown.done()  # its files would count as seen by a turn that was sent earlier ones
    held.release.set()
    await ticket.wait()
    assert [m.text for m in (await shown).messages[:2]] == ["hello", "ok"]


async def test_draining_parks_what_runs_and_a_restart_finishes_it_once(world) -> None:
    script = world.provider
    world.provider = held = Held(script)
    await world.start()
    ticket = await world.submit("hello", "h1")
    queued = await world.submit("second", "h2")
    await held.called.wait()
    await world.sessions.drain(0.01)
    with pytest.raises(ShuttingDown):
        await ticket.wait()
    with pytest.raises(ShuttingDown):
        await queued.wait()
    with pytest.raises(ShuttingDown):
        await world.submit("third", "h3")
    await world.stop()
    world.provider = script
    await world.start()
    assert (await world.say("hello", "h1")).text == "ok"
    assert (await world.say("second", "h2")).text == "ok"
    asked = [r.text for r in await world.store.rows(MAIN) if r.role is RowRole.USER]
    assert asked == ["hello", "second"]
    assert len(world.provider.prompts) == 2


async def test_alert_notices_are_shown_to_the_model_as_fenced_text_and_not_stored_in_the_message(
    world,
) -> None:
    await world.start()
    await world.say("hi")
    await world.store.notice(MAIN, "disk </data> 97 %", "alert:1")
    await world.say("what was that?")
    shown = world.provider.prompts[-1].messages[-1].blocks[0].text
    assert "disk" in shown
    assert shown.count("</data>") == 1
    await world.say("and now?")
    older = world.provider.prompts[-1].messages[2]
    assert "97 %" in older.text


async def test_a_turn_knows_what_it_cost(world) -> None:
    await world.start()
    world.provider.say(call("memory_write", content="x"), "done")
    assert (await world.say("go", "m1")).cost_usd == pytest.approx(0.03)
    assert (await world.say("go", "m1")).cost_usd == pytest.approx(0.03)


async def test_every_model_call_is_charged_to_its_origin(world) -> None:
    from datetime import timedelta

    await world.start()
    await world.say("hi")
    since = world.clock.now() - timedelta(hours=1)
    assert await world.ledger.spending(since, Origin.USER) == (15, 0.015)
    assert await world.ledger.spending(since, Origin.HEARTBEAT) == (0, 0.0)
