"""Contexts that shrink: flush first, once, in silence; nothing lost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import ConfigError, ContextOverflow, ProviderError
from agentd.core.message import Message, Text, ToolResult, ToolUse
from agentd.core.prompt import Prompt
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import MAIN, Origin, Usage
from agentd.engine import tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.extract import identifiers, wanted_identifiers
from agentd.engine.compaction.plan import cut_point, smallest_window, thresholds
from agentd.engine.compaction.summary import LONGEST, fault, parts
from agentd.testing import FakeClock, call, check_messages

CANARY = "canary-7f3a"


def sized(prompt: Prompt, reply: Message) -> Usage:
    """Usage as the estimate sees it, so that thresholds mean what they say."""
    read = sum(tokens.of_block(b) for m in prompt.messages for b in m.blocks)
    return Usage(read + tokens.of_fixed(prompt.system, prompt.tools), tokens.of_text(reply.text))


@pytest.mark.parametrize(
    ("window", "mode", "flush_at", "compact_at"),
    [
        (100_000, "reserve", 76_000, 80_000),
        (100_000, "ratio", 71_000, 75_000),
        (200_000, "reserve", 176_000, 180_000),
        (32_768, "reserve", 20_576, 24_576),
    ],
)
def test_thresholds_of_known_windows(window, mode, flush_at, compact_at) -> None:
    limits = thresholds(window, 4000, mode=mode)
    assert (limits.flush_at, limits.compact_at) == (flush_at, compact_at)


@given(
    st.integers(1000, 3_000_000),
    st.integers(0, 200_000),
    st.integers(1, 500_000),
    st.sampled_from(["reserve", "ratio"]),
)
def test_thresholds_are_ordered_for_every_window(window, soft, reserve, mode) -> None:
    limits = thresholds(window, soft, mode=mode, reserve=reserve)
    assert 0 < limits.flush_at < limits.compact_at < window


def test_a_tiny_window_is_refused_and_the_smallest_usable_one_is_known() -> None:
    with pytest.raises(ConfigError):
        thresholds(999, 4000)
    least = smallest_window(3000, 4000, 20_000)
    assert thresholds(least, 4000).flush_at >= 6000
    assert least < 20_000


def rows_of(shape: str) -> list[Row]:
    """u = user text, a = assistant text, t = assistant tool call, r = its results."""
    at = FakeClock().now()
    made = []
    for seq, kind in enumerate(shape, start=1):
        match kind:
            case "u":
                block, role = Text(f"user {seq} " * 20), RowRole.USER
            case "a":
                block, role = Text(f"answer {seq} " * 20), RowRole.ASSISTANT
            case "t":
                block, role = ToolUse(f"c{seq}", "x", {}), RowRole.ASSISTANT
            case _:
                block, role = ToolResult(f"c{seq - 1}", "res " * 30), RowRole.USER
        made.append(Row(seq, role, (block,), at, turn_id=seq))
    return made


@given(
    st.lists(st.sampled_from(["ua", "utra", "utrtra", "u"]), min_size=1, max_size=12),
    st.integers(0, 3000),
)
def test_a_cut_never_splits_a_pair_and_keeps_the_last_user_message(turns, tail) -> None:
    rows = rows_of("".join(turns))
    at = cut_point(rows, tail)
    kept = [r for r in rows if r.seq >= at]
    assert not any(isinstance(b, ToolResult) for b in kept[0].blocks)
    last_user = [r.seq for r in rows if r.role is RowRole.USER and r.text][-1]
    assert at <= last_user
    if at < last_user:
        assert tokens.of_rows(kept) <= tail


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /etc/nginx/nginx.conf", ("/etc/nginx/nginx.conf",)),
        ("open src/app.py or and/or", ("src/app.py",)),
        ("code 4711 and 12", ("4711",)),
        ("https://example.org/a?b=1.", ("https://example.org/a?b=1",)),
        ("id 550e8400-e29b-41d4-a716-446655440000", ("550e8400-e29b-41d4-a716-446655440000",)),
        ("commit d4f0bc5a29de", ("d4f0bc5a29de",)),
        ("nothing here", ()),
    ],
)
def test_identifiers_are_found(text, found) -> None:
    assert identifiers(text) == found


def why(summary: str, rows: list[Row]) -> str:
    found = fault(summary, rows, wanted_identifiers(rows, LONGEST), LONGEST)
    return found.text if found else ""


def test_a_summary_is_at_fault_when_short_or_forgetful() -> None:
    rows = rows_of("ua" * 60)
    assert "characters" in why("short", rows)
    asked = Row(99, RowRole.USER, (Text("deploy build 48213 from src/main.rs"),), FakeClock().now())
    assert "48213" in why("x" * 500, [*rows, asked])
    assert why("x" * 500 + " 48213 src/main.rs", [*rows, asked]) == ""


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=30), st.integers(50, 2000))
def test_parts_keep_every_row_in_order_and_fit(sizes, limit) -> None:
    at = FakeClock().now()
    rows = [Row(n, RowRole.USER, (Text("w" * size),), at) for n, size in enumerate(sizes, start=1)]
    split = parts(rows, limit)
    assert [r.seq for part in split for r in part] == [r.seq for r in rows]


def script(world, flushes: list[Prompt]):
    """A model that flushes with a canary, summarises with what it must keep, and chats."""

    def reply(prompt: Prompt):
        match prompt.origin:
            case Origin.FLUSH:
                flushes.append(prompt)
                last = prompt.messages[-1].blocks[0]
                if isinstance(last, ToolResult):
                    return f"{CANARY} done. NO_REPLY {CANARY}"
                return call("memory_write", f"f{len(flushes)}", content=f"kept {len(flushes)}")
            case Origin.SUMMARY:
                kept = " ".join(identifiers(prompt.messages[-1].text))
                return f"Summary of what was said so far. {kept} " + "and more " * 20
            case _:
                return "answer " + "word " * 40

    return reply


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.torture)])
@pytest.mark.parametrize("background", [False, True])
async def test_many_compactions_cover_every_cut_message_once_and_leak_nothing(
    world, background, count
) -> None:
    world.window = 6000
    world.compaction_settings = CompactionSettings(background=background)
    world.provider._usage = sized
    flushes: list[Prompt] = []
    world.provider.default = script(world, flushes)
    await world.start()
    said: list[str] = []
    overflows = random.Random(7)
    generation = 0
    number = 0
    while generation < count:
        number += 1
        text = f"message {number} " + "blah " * 150
        said.append(text)
        way = overflows.random()
        if way < 0.05:
            world.provider.say(ContextOverflow("too long"))
        turn = await world.say(text, f"id{number}")
        assert turn.failure is None, turn.failure
        if way > 0.95:
            await world.requests.compact(MAIN)
        history = await world.store.load(MAIN)
        generation = history.generation
        assert number < 2000
        assert history.covered_to >= history.context_from - 1 or generation == 0
    rows = await world.store.rows(MAIN)
    assert [r.text for r in rows if r.role is RowRole.USER] == said
    covered = await world.store.coverages(MAIN)
    spoken = {r.seq for r in rows if r.role in (RowRole.USER, RowRole.ASSISTANT)}
    cut = {seq for seq in spoken if seq < (await world.store.load(MAIN)).context_from}
    counts = dict.fromkeys(cut, 0)
    for cover in covered:
        assert cover.ok, cover
        for seq in range(cover.first, cover.last + 1):
            if seq in counts:
                counts[seq] += 1
    assert set(counts.values()) == {1}
    assert CANARY not in str([(r.role, r.blocks) for r in rows])
    assert CANARY not in str(world.events.events)
    assert "memory flush" not in str(world.events.events).lower()
    for prompt in world.provider.prompts:
        check_messages(prompt.messages)


async def test_a_refused_summary_keeps_the_history(world) -> None:
    await world.start()
    for n in range(8):
        await world.say(f"the build number is {48000 + n} " + "blah " * 400)
    world.provider.default = lambda p: "NO_REPLY" if p.origin is Origin.FLUSH else "too short"
    report = await world.requests.compact(MAIN)
    assert (report.compacted, report.reason) == (False, "provider_summary_refused")
    summaries = [p for p in world.provider.prompts if p.origin is Origin.SUMMARY]
    assert len(summaries) == 2
    assert (await world.store.load(MAIN)).generation == 0


async def test_a_flush_that_fails_three_times_is_recorded_and_compaction_goes_on(world) -> None:
    await world.start()
    for n in range(4):
        await world.say(f"message {n}")

    def reply(prompt: Prompt):
        if prompt.origin is Origin.FLUSH:
            return ProviderError("down", kind="server", retryable=True)
        return "S" * 200

    world.provider.default = reply
    report = await world.requests.compact(MAIN)
    assert (report.flushed, report.compacted) == (False, True)
    covered = await world.store.coverages(MAIN)
    assert [c.ok for c in covered] == [False]
    assert sum(p.origin is Origin.FLUSH for p in world.provider.prompts) == 3


async def test_a_new_conversation_is_flushed_first_and_starts_empty(world) -> None:
    await world.start()
    await world.say("the code is 4711")
    world.provider.say("NO_REPLY")
    report = await world.requests.start_over(MAIN)
    assert (report.flushed, report.compacted, report.reason) == (True, True, "new")
    await world.say("hello again")
    assert "4711" not in str(world.provider.prompts[-1].messages)
    assert "4711" in str(await world.store.rows(MAIN))


async def test_explain_changes_nothing_and_calls_nobody(world) -> None:
    await world.start()
    await world.say("hi")
    calls = len(world.provider.prompts)
    told = await world.requests.explain(MAIN)
    assert told["uncovered_rows"] == 2
    assert (told["would_flush"], told["would_compact"]) == (False, False)
    assert len(world.provider.prompts) == calls
    assert (await world.store.load(MAIN)).covered_to == 0


async def test_a_flush_that_a_stop_left_due_runs_after_the_next_start(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    await world.start()
    await world.say("something to keep")
    await world.store.set_flush_due((MAIN,))
    await world.stop()
    world.provider.default = "NO_REPLY"
    await world.start()
    await world.clock.settle(200)
    for _ in range(200):
        if (await world.store.load(MAIN)).covered_to:
            break
    history = await world.store.load(MAIN)
    assert history.covered_to == 2
    assert not history.flush_due
    assert history.generation == 0


async def test_usage_measured_before_a_swap_does_not_trigger_another(world) -> None:
    world.window = 8000
    await world.start()
    world.provider._usage = Usage(7500, 10)
    await world.say("one " * 50)
    world.provider._usage = Usage(100, 10)
    world.provider.default = lambda p: "NO_REPLY" if p.origin is Origin.FLUSH else "S" * 200
    await world.say("two " * 50)
    await world.say("three")
    assert (await world.store.load(MAIN)).generation <= 1
