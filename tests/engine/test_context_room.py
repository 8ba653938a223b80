"""Room is made around turns: never of what still runs, once, and with a way out."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.app.doctor.work_checks import FlushesCheck
from agentd.core.compaction import Trigger
from agentd.core.errors import ContextOverflow, NotFound, ProviderError, ShuttingDown
from agentd.core.message import Text
from agentd.core.prompt import Prompt
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, Origin, SessionKey, Usage
from agentd.engine import tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.testing import ScriptedProvider, call, check_messages
from tests.locks import locks

SUMMARY = "They talked about many things that need no repeating here. " * 4


def plainly(prompt: Prompt):
    match prompt.origin:
        case Origin.FLUSH:
            return "NO_REPLY"
        case Origin.SUMMARY:
            return SUMMARY
        case _:
            return "ok"


class Gated(ScriptedProvider):
    """Holds calls of one origin until they are let go."""

    def __init__(self, origin: Origin, **settings) -> None:
        super().__init__(default=plainly, **settings)
        self.origin = origin
        self.reached = asyncio.Event()
        self.go = asyncio.Event()
        self.turns = asyncio.Event()  # lets user turns go
        self.turns.set()

    async def stream(self, prompt: Prompt):
        if prompt.origin is Origin.USER:
            await self.turns.wait()
        if prompt.origin is self.origin:
            self.reached.set()
            await self.go.wait()
        async for event in super().stream(prompt):
            yield event


def calls(world, origin: Origin) -> int:
    return sum(p.origin is origin for p in world.provider.prompts)


async def quiet(world) -> None:
    """Until nothing runs in the background."""
    while not world.sessions._tasks.is_idle:
        await asyncio.sleep(0.001)


async def test_a_flush_in_the_background_sees_nothing_of_a_turn_that_runs(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Gated(Origin.USER)
    world.provider.go.set()
    await world.start()
    await world.say("first")
    await world.store.set_flush_due((MAIN,))
    world.provider.go.clear()
    world.provider.reached.clear()
    running = await world.submit("second, still running")
    await world.provider.reached.wait()
    await world.sessions._context_room.ahead(MAIN, Trigger.RESTART)
    assert (await world.store.load(MAIN)).covered_to == 2
    (flush,) = [p for p in world.provider.prompts if p.origin is Origin.FLUSH]
    assert "second" not in str(flush.messages)
    world.provider.go.set()
    await running.wait()


class Interrupted:
    """A store of which one reading of the context takes long: `meanwhile` happens while it does."""

    def __init__(self, store) -> None:
        self._store = store
        self.left = 0  # readings until then; never again when it is used up
        self.before = self.behind = nothing

    async def load(self, session: SessionKey, most: int | None = None):
        self.left -= 1
        if self.left == 0:
            await self.before()
        history = await self._store.load(session, most)
        if self.left == 0:
            await self.behind()
        return history

    def __getattr__(self, name: str):
        return getattr(self._store, name)


async def nothing() -> None:
    pass


@pytest.mark.parametrize("trigger", [Trigger.RESTART, Trigger.NEW])
@pytest.mark.parametrize("moment", ["waiting", "begins", "ends"])
async def test_a_turn_that_comes_or_goes_while_room_is_made_is_left_alone(
    world, trigger, moment
) -> None:
    """It begins while the work waits for its lock, begins while it reads, or ends while it
    reads.
    """
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Gated(Origin.FLUSH)
    world.provider.go.set()
    world.wrap = lambda part: Interrupted(part) if hasattr(part, "load") else part
    await world.start()
    await world.say("first")
    tickets = []

    async def begin() -> None:
        world.provider.turns.clear()
        tickets.append(await world.submit("second"))
        while len(await world.store.rows(MAIN)) < 3:
            await asyncio.sleep(0.001)

    async def end() -> None:
        world.provider.turns.set()
        await tickets[0].wait()

    if moment == "ends":
        await begin()
        world.store.behind = end
    if moment == "begins":
        world.store.before = begin
    await world.store.set_flush_due((MAIN,))
    world.store.left = 2  # the first reading judges, the second is under the lock
    async with asyncio.TaskGroup() as group, world.compaction.alone(MAIN):
        group.create_task(world.sessions._context_room.ahead(MAIN, trigger))
        if moment == "waiting":
            await begin()
    (flush,) = [p for p in world.provider.prompts if p.origin is Origin.FLUSH]
    assert "second" not in str(flush.messages)
    history = await world.store.load(MAIN)
    assert history.covered_to == 2
    assert history.context_from <= 3
    assert "second" in str(history.rows)
    await end()


async def test_sessions_in_which_room_was_made_leave_no_locks(world) -> None:
    world.provider = ScriptedProvider(default=plainly)
    await world.start()
    await world.say("first")
    before = locks()
    for number in range(20):
        session = SessionKey(f"chat:{number}")
        await world.say("hello", f"m{number}", session)
        assert (await world.requests.compact(session)).flushed
    assert locks() <= before


async def test_room_made_at_a_start_leaves_the_turn_alone_that_a_stop_cut(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Gated(Origin.USER)
    world.provider.go.set()
    await world.start()
    await world.say("first")
    world.provider.script = [call("memory_write", content="x")]
    world.provider.go.clear()
    world.provider.reached.clear()
    ticket = await world.submit("second", "cut")
    await world.provider.reached.wait()
    world.provider.go.set()
    world.provider.go.clear()  # the first call goes on, the second does not
    while not world.workspace.files:
        await asyncio.sleep(0.001)
    await world.sessions.drain(0)
    with pytest.raises(ShuttingDown):
        await ticket.wait()
    world.provider.go.set()
    await world.store.set_flush_due((MAIN,))
    await world.stop()
    await world.start()
    await quiet(world)
    flushes = [p for p in world.provider.prompts if p.origin is Origin.FLUSH]
    assert "second" not in str(flushes[0].messages)
    for prompt in world.provider.prompts:
        check_messages(prompt.messages)


async def test_what_a_turn_used_on_the_old_context_does_not_shrink_the_new_one_again(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.window = 20_000
    world.provider = Gated(Origin.SUMMARY)
    await world.start()
    for n in range(3):
        await world.say(f"message {n}")
    world.provider._usage = Usage(15_200, 10)
    await world.say("the one that fills it")
    await world.provider.reached.wait()
    world.provider.turns.clear()
    meanwhile = await world.submit("goes ahead meanwhile")
    world.provider.go.set()
    while not (await world.store.load(MAIN)).generation:
        await asyncio.sleep(0.001)
    world.provider.turns.set()
    await meanwhile.wait()
    await quiet(world)
    world.provider._usage = Usage(500, 10)
    await world.say("after")
    await quiet(world)
    assert (await world.store.load(MAIN)).generation == 1


async def test_between_the_thresholds_one_flush_is_enough(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.window = 20_000
    world.provider = ScriptedProvider(default=plainly, usage=Usage(12_000, 10))
    await world.start()
    for n in range(5):
        await world.say(f"message {n}")
        await quiet(world)
    assert calls(world, Origin.FLUSH) == 1
    assert calls(world, Origin.SUMMARY) == 0


async def test_enough_new_words_between_the_thresholds_are_flushed_again(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.window = 20_000
    world.provider = ScriptedProvider(default=plainly, usage=Usage(12_000, 10))
    await world.start()
    await world.say("message")
    await quiet(world)
    await world.say("long " * 3000)
    await quiet(world)
    assert calls(world, Origin.FLUSH) == 2


@pytest.mark.parametrize("background", [False, True])
async def test_the_first_turn_of_an_imported_conversation_larger_than_the_window_works(
    world, background
) -> None:
    world.compaction_settings = CompactionSettings(background=background)
    world.window = 8000

    def limited(prompt: Prompt):
        read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
        return ContextOverflow("too long") if read > 8000 else plainly(prompt)

    world.provider = ScriptedProvider(default=limited)
    await world.start()
    key = SessionKey("chat:old")
    at = world.clock.now()
    rows = []
    for n in range(60):
        rows.append((NewRow(RowRole.ASSISTANT, (Text(f"answer {n} " + "blah " * 150),)), at))
        rows.append((NewRow(RowRole.USER, (Text(f"question {n} " + "blah " * 150),)), at))
    await world.store.add_rows(key, rows)
    turn = await world.say("what did we say?", session=key)
    assert turn.failure is None, turn.failure
    await quiet(world)
    history = await world.store.load(key)
    assert history.generation == 1
    flushed = [c for c in await world.store.coverages(key) if c.ok]
    assert flushed[0].first == 1
    assert flushed[-1].last >= history.context_from - 1
    assert calls(world, Origin.FLUSH) > 2


async def test_one_enormous_earlier_message_does_not_end_the_conversation(world) -> None:
    world.window = 8000

    def limited(prompt: Prompt):
        read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
        return ContextOverflow("too long") if read > 8000 else plainly(prompt)

    world.provider = ScriptedProvider(default="noted", usage=Usage())
    await world.start()
    await world.say("paste " + "blah " * 8000)
    world.provider.default = limited
    turn = await world.say("and now?")
    assert turn.failure is None, turn.failure
    check_messages(world.provider.prompts[-1].messages)


@pytest.mark.parametrize("background", [False, True])
async def test_a_service_that_finds_every_prompt_too_long_leaves_the_context_as_it_was(
    world, background
) -> None:
    world.compaction_settings = CompactionSettings(background=background)
    await world.start()
    for n in range(4):
        await world.say(f"message {n}")
    before = await world.store.load(MAIN)
    world.provider.default = ContextOverflow("too long", cure="Start over with /new.")
    for _ in range(4):  # more often than a summary may fail
        turn = await world.say("one more")
        assert turn.failure.code == "provider_overflow"
        assert "/new" in turn.failure.cure
        await quiet(world)
    world.provider.default = plainly
    assert (await world.say("and now?")).text == "ok"
    sent = str(world.provider.prompts[-1].messages)
    assert all(f"message {n}" in sent for n in range(4))
    after = await world.store.load(MAIN)
    assert (after.generation, after.context_from, after.summary) == (0, before.context_from, "")
    assert not await world.store.coverages(MAIN)  # nothing was given up either


@pytest.mark.parametrize("background", [False, True])
async def test_a_context_is_cut_once_a_part_of_it_was_answered(world, background) -> None:
    """The service's window is much smaller than the configured one."""
    world.compaction_settings = CompactionSettings(background=background)
    await world.start()
    for n in range(30):
        await world.say(f"message {n} " + "blah " * 200)

    def limited(prompt: Prompt):
        read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
        is_over = prompt.origin is Origin.USER and read > 3000
        return ContextOverflow("too long") if is_over else plainly(prompt)

    world.provider.default = limited
    begun = len(world.provider.prompts)
    for n in range(3):
        turn = await world.say(f"short {n}")
        assert turn.failure is None, turn.failure
        await quiet(world)
    history = await world.store.load(MAIN)
    assert (history.generation, history.summary) == (1, SUMMARY.strip())
    assert history.covered_to >= history.context_from - 1
    asked = [p for p in world.provider.prompts[begun:] if p.origin is Origin.USER]
    assert len(asked) == 5  # the first turn three times: whole, a quarter, and nothing of it
    check_messages(world.provider.prompts[-1].messages)


async def test_a_new_conversation_in_an_empty_session_and_in_an_unknown_one(world) -> None:
    await world.start()
    report = await world.requests.start_over(MAIN)
    assert (report.flushed, report.compacted) == (False, True)
    with pytest.raises(NotFound):
        await world.requests.start_over(SessionKey("chat:none"))
    assert (await world.say("hello")).text == "ok"
    assert world.provider.prompts[-1].messages[0].blocks[-1] == Text("hello")


@pytest.mark.parametrize("key", ["group:a", "isolated:b"])
async def test_nothing_said_among_others_is_flushed_and_their_context_still_shrinks(
    world, key
) -> None:
    world.provider = ScriptedProvider(default=plainly)
    await world.start()
    for n in range(4):
        await world.say(f"message {n}", session=key)
    report = await world.requests.compact(SessionKey(key))
    assert (report.flushed, report.compacted) == (False, True)
    assert calls(world, Origin.FLUSH) == 0
    (cover,) = await world.store.coverages(SessionKey(key))
    assert (cover.ok, cover.reason) == (False, "no_memory")


async def test_three_failed_tries_count_over_restarts_and_then_the_rows_are_let_go(world) -> None:
    def reply(prompt: Prompt):
        return ProviderError("down", kind="server") if prompt.origin is Origin.FLUSH else "ok"

    world.provider = ScriptedProvider(default=reply)
    await world.start()
    await world.say("keep this")
    for tries in (1, 2):
        report = await world.requests.flush(MAIN)
        assert not report.flushed
        assert (await world.store.load(MAIN)).flush_failures == tries
        await world.stop()
        await world.start()
    await world.requests.flush(MAIN)
    history = await world.store.load(MAIN)
    assert (history.covered_to, history.flush_failures) == (2, 0)
    assert [c.ok for c in await world.store.coverages(MAIN)] == [False]
    assert calls(world, Origin.FLUSH) == 3


async def test_a_flush_that_the_user_asks_for_tries_again_what_was_given_up(world) -> None:
    answers = [ProviderError("down", kind="server")] * 3 + ["NO_REPLY"]
    answers += [ProviderError("down", kind="server")] * 3
    world.provider = ScriptedProvider(
        default=lambda prompt: (
            (answers.pop(0) if answers else "NO_REPLY") if prompt.origin is Origin.FLUSH else "ok"
        )
    )
    await world.start()
    await world.say("the first")
    for _ in range(3):
        await world.requests.flush(MAIN)
    await world.say("the second")
    check = FlushesCheck(world.store, enabled=True)
    assert (await check.look()).level == "warn"
    report = await world.requests.flush(MAIN)
    assert (report.flushed, report.reason) == (True, "flush"), "the second was saved"
    assert (report.unsaved, report.unsaved_reason) == (2, "provider_server"), (
        "the first failed again"
    )
    assert (await check.look()).level == "warn"
    report = await world.requests.flush(MAIN)
    assert (report.flushed, report.reason) == (True, "flush")
    assert (await check.look()).level == "ok"
    shown = [str(p.messages) for p in world.provider.prompts if p.origin is Origin.FLUSH]
    assert ["the first" in words for words in shown] == [True] * 3 + [False] + [True] * 4
    before = calls(world, Origin.FLUSH)
    report = await world.requests.flush(MAIN)
    assert (report.flushed, report.reason) == (False, "below_threshold")
    assert calls(world, Origin.FLUSH) == before


async def test_what_a_user_wants_of_a_summary_is_told_to_the_model(world) -> None:
    world.provider = ScriptedProvider(default=plainly)
    await world.start()
    for n in range(4):
        await world.say(f"message {n}")
    report = await world.requests.compact(MAIN, "keep the names of birds")
    assert report.compacted
    asked = [p for p in world.provider.prompts if p.origin is Origin.SUMMARY]
    assert "keep the names of birds" in str(asked[-1].messages[-1])


async def test_a_flush_that_hangs_is_ended_and_not_gone_on_with_after_a_restart(world) -> None:
    world.compaction_settings = CompactionSettings(
        background=False, hook_timeout=timedelta(milliseconds=30)
    )
    world.provider = Gated(Origin.FLUSH)
    await world.start()
    await world.say("one")
    await world.say("two")
    report = await world.requests.compact(MAIN)
    assert (report.flushed, report.compacted) == (False, True)
    assert await world.store.pending() == ()
    (cover,) = await world.store.coverages(MAIN)
    assert (cover.ok, cover.reason) == (False, "memory_flush_timeout")


async def test_a_single_message_that_could_not_be_saved_is_recorded_as_well(world) -> None:
    world.compaction_settings = CompactionSettings(
        background=False, hook_timeout=timedelta(milliseconds=30)
    )
    world.provider = Gated(Origin.FLUSH)
    world.provider.go.set()
    await world.start()
    await world.say("one")
    await world.requests.flush(MAIN)
    world.provider.say(ProviderError("no key", kind="auth"))
    await world.say("two, which fails")
    world.provider.go.clear()
    await world.requests.compact(MAIN)
    covers = await world.store.coverages(MAIN)
    assert [(c.first, c.last, c.ok) for c in covers] == [(1, 2, True), (3, 3, False)]


async def test_a_stop_begins_no_model_call_and_leaves_due_only_what_is_due(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.window = 20_000
    world.provider = Gated(Origin.FLUSH, usage=Usage(16_000, 10))
    await world.start()
    await world.say("idle", session="chat:idle")
    world.provider.go.set()
    await quiet(world)
    world.provider.go.clear()
    world.provider.reached.clear()
    await world.say("one")
    await world.provider.reached.wait()
    before = len(world.provider.prompts)

    async def let_go() -> None:
        await asyncio.sleep(0)
        world.provider.go.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(let_go())
        await world.sessions.drain(1)
    assert len(world.provider.prompts) == before + 1  # the one that ran already
    assert calls(world, Origin.SUMMARY) == 0
    await world.stop()
    world.provider = ScriptedProvider(default=plainly)
    world.compaction_settings = CompactionSettings(background=False)
    await world.start()
    due = {s.key for s in await world.store.sessions() if s.flush_due}
    assert due <= {MAIN}


async def test_a_flush_that_a_stop_cuts_is_due_at_the_next_start_and_done_then(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.window = 20_000
    world.provider = Gated(Origin.FLUSH, usage=Usage(16_000, 10))
    await world.start()
    await world.say("one")
    await world.provider.reached.wait()
    await world.stop()
    world.provider = ScriptedProvider(default=plainly)
    await world.start(begin=False)
    assert [s.key for s in await world.store.sessions() if s.flush_due] == [MAIN]
    assert (await world.requests.explain(MAIN))["uncovered_rows"] == 2
    await world.sessions.start()
    await quiet(world)
    told = await world.requests.explain(MAIN)
    assert (told["flush_due"], told["covered_to"], told["uncovered_rows"]) == (False, 2, 0)


async def test_every_context_is_judged_from_recorded_figures(world) -> None:
    world.provider = ScriptedProvider(default=plainly)
    await world.start()
    for n in range(3):
        await world.say(f"message {n}")
    await world.requests.compact(MAIN)
    told = world.compaction.last
    limits = world.compaction.limits
    assert (told["flush_at"], told["compact_at"]) == (limits.flush_at, limits.compact_at)
    assert told["trigger"] == "manual"
    assert told["tokens_before"] > 0


async def test_a_handler_that_leaves_does_not_end_the_compaction_it_asked_for(world) -> None:
    world.provider = Gated(Origin.SUMMARY)
    await world.start()
    for n in range(3):
        await world.say(f"message {n}")
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(world.requests.compact(MAIN))
        await world.provider.reached.wait()
        asked.cancel()
    world.provider.go.set()
    await quiet(world)
    assert (await world.store.load(MAIN)).generation == 1
    assert not world.sessions.is_busy(MAIN)


async def test_work_that_a_stop_cuts_before_it_begins_is_told_so(world) -> None:
    await world.start()
    await world.say("hi")
    asked = asyncio.ensure_future(world.requests.compact(MAIN))
    await asyncio.sleep(0)
    await world.sessions.drain(0)
    with pytest.raises(ShuttingDown):
        await asked


async def test_nothing_is_given_up_for_a_compaction_that_does_not_happen(world) -> None:
    answers = {Origin.FLUSH: "I will keep it in mind.", Origin.SUMMARY: ""}
    world.provider = ScriptedProvider(default=lambda prompt: answers.get(prompt.origin, "ok"))
    await world.start()
    await world.say("the boat key is on page 77")
    await world.say("and the oars behind the door")
    report = await world.requests.compact(MAIN)
    assert (report.compacted, report.flushed, report.unsaved) == (False, False, 0)
    assert calls(world, Origin.FLUSH) == 1, "no last tries for what stays"
    assert await world.store.coverages(MAIN) == ()
    world.provider.default = plainly
    report = await world.requests.start_over(MAIN)
    assert (report.compacted, report.flushed, report.unsaved) == (True, True, 0)
    assert "page 77" in str(world.provider.prompts[-1].messages)


async def test_a_new_conversation_tries_again_to_save_what_was_given_up(world) -> None:
    answers = {Origin.FLUSH: "I will keep it in mind."}
    world.provider = ScriptedProvider(default=lambda prompt: answers.get(prompt.origin, "ok"))
    await world.start()
    await world.say("the boat key is on page 77")
    for _ in range(3):
        await world.requests.flush(MAIN)
    assert [c.ok for c in await world.store.coverages(MAIN)] == [False]
    world.provider.default = plainly
    report = await world.requests.start_over(MAIN)
    assert (report.compacted, report.flushed, report.unsaved) == (True, True, 0)


async def test_what_a_new_conversation_could_not_save_in_an_outage_is_saved_behind_it(
    world,
) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    is_away = False

    def answer(prompt: Prompt):
        if is_away:
            return ProviderError("down", kind="unreachable", away=True)
        return plainly(prompt)

    world.provider = ScriptedProvider(default=answer)
    await world.start()
    await world.say("the boat key is on page 77")
    is_away = True
    report = await world.requests.start_over(MAIN)
    assert (report.compacted, report.flushed) == (True, False)
    assert (report.unsaved, report.unsaved_reason) == (2, "service_away")
    notices = [row.text for row in await world.store.rows(MAIN, 1, 9) if row.tag == "compaction"]
    assert ["tried again when it is back" in text for text in notices] == [True]
    is_away = False
    await world.say("hello again")
    await quiet(world)
    asked = [p for p in world.provider.prompts if p.origin is Origin.FLUSH]
    assert "page 77" in str(asked[-1].messages)
    report = await world.requests.flush(MAIN)
    assert report.unsaved == 0
