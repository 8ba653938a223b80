"""A summariser that fails costs little, whatever is said meanwhile, and no context grows for
ever.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from agentd.core.compaction import Trigger
from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.event import NoticeGiven
from agentd.core.message import Text
from agentd.core.prompt import Prompt
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, Origin, SessionKey, Usage
from agentd.engine import tokens
from agentd.engine.assembly import slice_tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.extract import HEAD
from agentd.engine.compaction.plan import thresholds
from agentd.engine.compaction.summary import longest_summary
from agentd.testing import ScriptedProvider, check_messages
from tests.engine.test_context_room import SUMMARY, Gated, calls, plainly, quiet

DAY = timedelta(days=1)
WORDS = "blah " * 400  # about 570 tokens
Reply = str | Exception


def size(prompt: Prompt) -> int:
    read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
    return read + tokens.of_fixed(prompt.system, prompt.tools)


def model(summary: Callable[[], Reply], window: int) -> ScriptedProvider:
    """One with a real window that summarises so, and tells what its calls use."""

    def reply(prompt: Prompt):
        if size(prompt) > window:
            return ContextOverflow("too long")
        return summary() if prompt.origin is Origin.SUMMARY else plainly(prompt)

    return ScriptedProvider(default=reply, usage=lambda prompt, _: Usage(size(prompt), 5))


async def a_day(world, turns: int) -> int:
    """How many summaries are asked for in a day of so many messages."""
    before = calls(world, Origin.SUMMARY)
    for n in range(turns):
        turn = await world.say(f"message {n} of the day, order {48_000 + n}: {WORDS}")
        assert turn.failure is None, turn.failure
        await quiet(world)
        world.clock.jump(DAY / turns)
    return calls(world, Origin.SUMMARY) - before


@pytest.mark.parametrize("background", [False, True])
async def test_refused_summaries_cost_no_more_calls_however_much_is_said(world, background) -> None:
    """With a window of 16,000 tokens and a summariser that always answers `ok fine`."""
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=background, retry_daily_tokens=0)
    world.provider = model(lambda: "ok fine", world.window)
    await world.start()
    few = await a_day(world, 48)
    many = await a_day(world, 192)
    later = await a_day(world, 96)
    assert 6 <= few <= 20
    assert many <= 10
    assert later <= 8
    history = await world.store.load(MAIN)
    assert history.generation > 3
    assert history.summary.startswith(HEAD)
    assert max(map(size, world.provider.prompts)) < world.window
    for prompt in world.provider.prompts:
        check_messages(prompt.messages)


async def test_it_is_the_pauses_that_bound_the_calls(world) -> None:
    """The control: where each message comes after the longest of them, the calls grow with what is
    said.
    """
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True, retry_daily_tokens=0)
    world.provider = model(lambda: "ok fine", world.window)
    await world.start()
    for n in range(96):
        await world.say(f"message {n} {WORDS}")
        await quiet(world)
        world.clock.jump(timedelta(hours=9))
    assert calls(world, Origin.SUMMARY) > 20


async def test_the_days_budget_ends_the_tries_before_the_pauses_do(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True, retry_daily_tokens=1_000)
    world.provider = model(lambda: "ok fine", world.window)
    await world.start()
    assert await a_day(world, 96) == 4  # from noon to noon: two of each day
    assert (await world.store.load(MAIN)).generation > 1


async def test_a_summariser_that_works_is_asked_for_each_compaction_alone(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    names = "".join(f" {48_000 + n}" for n in range(96))
    world.provider = model(lambda: SUMMARY + names, world.window)
    await world.start()
    made = await a_day(world, 96)
    generation = (await world.store.load(MAIN)).generation
    assert generation <= made <= 3 * generation
    assert HEAD not in (await world.store.load(MAIN)).summary
    assert world.compaction.problems() == ()


async def test_pauses_grow_between_failures_and_outlive_restarts(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = model(lambda: "ok fine", world.window)
    await world.start()
    waits = []
    for failure in range(1, 7):
        while (await world.store.load(MAIN)).trouble.failures < failure:
            await world.say(f"more {WORDS}")
            await quiet(world)
            world.clock.jump(timedelta(minutes=1))
        trouble = (await world.store.load(MAIN)).trouble
        waits.append(trouble.retry_at - world.clock.now() + timedelta(minutes=1))
        await world.stop()
        await world.start()
        (problem,) = world.compaction.problems()
        assert problem.code == "summary_failed"
        assert "too_short" in problem.text
    minutes = [wait / timedelta(minutes=1) for wait in waits]
    assert minutes == [10, 20, 40, 80, 160, 320]
    assert calls(world, Origin.SUMMARY) == 12


async def test_the_status_tells_until_a_summary_works_again(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    answers = ["ok fine"]
    world.provider = model(lambda: answers[0], world.window)
    await world.start()
    await a_day(world, 48)
    (problem,) = world.compaction.problems()
    assert "an extract by rule stands in" in problem.text
    assert "sessions compact main" in problem.cure
    assert any("excerpts" in e.text for e in world.events.of(NoticeGiven))
    answers[0] = SUMMARY + "".join(f" {48_000 + n}" for n in range(96))
    report = await world.requests.compact(MAIN)
    assert (report.compacted, report.reason) == (True, "manual")
    assert world.compaction.problems() == ()
    assert (await world.store.load(MAIN)).trouble.failures == 0


async def test_a_service_that_fails_at_summaries_alone_leads_to_an_extract_too(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = model(lambda: ProviderError("no", kind="not_found"), world.window)
    await world.start()
    assert await a_day(world, 96) <= 9
    history = await world.store.load(MAIN)
    assert history.summary.startswith(HEAD)
    assert history.trouble.reason == "not_found"


async def test_calls_that_the_budget_or_the_breaker_refuse_are_no_failures(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = model(lambda: ProviderError("no", kind="breaker_open"), world.window)
    await world.start()
    await a_day(world, 48)
    history = await world.store.load(MAIN)
    assert (history.generation, history.trouble.failures) == (0, 0)
    assert history.is_excerpted
    assert max(map(size, world.provider.prompts)) < world.window


async def test_a_turn_that_overflows_does_not_wait_for_the_third_refusal(world) -> None:
    await world.start()
    for n in range(4):
        await world.say(f"message {n} {WORDS * 4}")
    failing = ["too long"]

    def reply(prompt: Prompt):
        if prompt.origin is Origin.SUMMARY:
            return "ok fine"
        if prompt.origin is Origin.USER and failing:
            return ContextOverflow(failing.pop())
        return plainly(prompt)

    world.provider.default = reply
    turn = await world.say("one more")
    assert turn.failure is None, turn.failure
    assert HEAD in str(world.provider.prompts[-1].messages)
    await world.say("and another")
    history = await world.store.load(MAIN)
    assert (history.generation, history.trouble.failures) == (0, 1)  # as after any first refusal


async def imported(world, key: SessionKey, messages: int) -> int:
    """A long conversation brought in; its estimated tokens."""
    at = world.clock.now()
    roles = (RowRole.USER, RowRole.ASSISTANT)
    rows = [
        (
            NewRow(
                roles[n % 2],
                (Text(f"message no. {n % 997} of an old conversation {'blah ' * 24}"),),
            ),
            at,
        )
        for n in range(messages)
    ]
    await world.store.add_rows(key, rows)
    return sum(tokens.of_block(b) for row, _ in rows for b in row.blocks)


@pytest.mark.parametrize(
    ("messages", "window"),
    [(2_000, 8_000), pytest.param(50_000, 200_000, marks=pytest.mark.torture)],
)
async def test_a_long_imported_session_is_answered_at_once_and_summed_up_by_one_pass(
    world, messages, window
) -> None:
    """Meanwhile it goes on being answered; the pass makes no more calls than its length needs,
    whatever is said.
    """
    world.window = window
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Gated(Origin.FLUSH, usage=lambda prompt, _: Usage(size(prompt), 5))
    await world.start()
    key = SessionKey("chat:old")
    total = await imported(world, key, messages)
    for n in range(3):  # nothing but the answer is waited for: flushes are held back
        turn = await world.say(f"question {n}", session=key)
        assert turn.failure is None, turn.failure
        assert calls(world, Origin.SUMMARY) == 0
    assert max(map(size, world.provider.prompts)) < world.window
    last = f"message no. {(messages - 1) % 997} "
    assert last in world.provider.prompts[0].messages[-2].text
    world.provider.go.set()
    await quiet(world)
    await world.say("and now?", session=key)
    await quiet(world)
    history = await world.store.load(key)
    assert (history.generation, history.is_excerpted) == (1, False)
    needed = total / slice_tokens(thresholds(world.window, 4000))
    assert calls(world, Origin.SUMMARY) <= needed * 1.3 + 1
    assert calls(world, Origin.FLUSH) <= needed * 1.3 + 2
    assert all(c.ok for c in await world.store.coverages(key))


async def test_what_a_turn_used_on_an_excerpt_says_nothing_after_a_restart(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Gated(Origin.FLUSH, usage=lambda prompt, _: Usage(size(prompt), 5))
    await world.start()
    key = SessionKey("chat:old")
    await imported(world, key, 3_000)
    assert (await world.say("question", session=key)).failure is None
    await world.stop()
    world.provider.go.set()
    await world.start()
    assert (await world.say("another", session=key)).failure is None
    await quiet(world)
    assert max(map(size, world.provider.prompts)) < world.window
    assert (await world.store.load(key)).generation == 1


async def test_no_request_for_a_summary_asks_for_more_than_may_come_back(world) -> None:
    await world.start()
    for n in range(8):
        await world.say(f"message {n} {WORDS}")
    world.provider.default = plainly
    await world.requests.compact(MAIN)
    (prompt,) = [p for p in world.provider.prompts if p.origin is Origin.SUMMARY]
    assert prompt.max_tokens == 2 * longest_summary(world.window)
    assert "1200 words at most" in prompt.messages[-1].text


async def test_explaining_says_why_a_context_over_the_threshold_is_left(world) -> None:
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = model(lambda: "ok fine", world.window)
    await world.start()
    while not (await world.store.load(MAIN)).trouble.failures:
        await world.say(f"more {WORDS}")
        await quiet(world)
    told = await world.requests.explain(MAIN)
    assert (told["would_compact"], told["reason"]) == (False, "summary_failed")
    history = await world.store.load(MAIN)
    assert world.compaction.need(history, 15_000, Trigger.MANUAL).cut


async def test_a_failed_try_goes_on_behind_what_it_has_summed_up(world) -> None:
    """The third part fails: the next try asks for it alone, and for the first ones no more."""
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=False)
    failing = [""] * 2 + ["no"]
    world.provider = model(lambda: summary_or(failing), world.window)
    await world.start()
    key = SessionKey("chat:old")
    await imported(world, key, 600)
    first = await world.requests.compact(key)
    assert (first.compacted, calls(world, Origin.SUMMARY)) == (False, 3)
    second = await world.requests.compact(key)
    assert second.compacted
    parts = [p.messages[-1].text for p in world.provider.prompts if p.origin is Origin.SUMMARY]
    assert len(parts) > 4
    assert len(set(parts)) == len(parts) - 1
    assert parts[2] == parts[3]


async def test_a_part_that_changed_since_is_summed_up_again(world) -> None:
    """Words may have been forgotten meanwhile: nothing that says them is kept in memory."""
    world.window = 16_000
    world.compaction_settings = CompactionSettings(background=False)
    failing = [""] * 2 + ["no"]
    world.provider = model(lambda: summary_or(failing), world.window)
    await world.start()
    key = SessionKey("chat:old")
    await imported(world, key, 600)
    await world.requests.compact(key)
    await world.db.execute("UPDATE rows SET blocks = replace(blocks, 'no. 7 ', 'no. […] ')", ())
    assert (await world.requests.compact(key)).compacted
    parts = [p.messages[-1].text for p in world.provider.prompts if p.origin is Origin.SUMMARY]
    assert "no. 7 " in parts[0]
    assert "no. 7 " not in parts[3]
    assert "no. 8 " in parts[3]


def summary_or(failing: list[str]) -> Reply:
    """A good summary, or a failure where the next one is named."""
    found = failing.pop(0) if failing else ""
    return ProviderError(found, kind="server_error") if found else SUMMARY
