"""Work that waits until something happens."""

from __future__ import annotations

import asyncio

from agentd.core.event import NoticeGiven, TextChunk, TurnStarted
from agentd.core.turn import MAIN
from agentd.engine.watchers import NoticeCallback, Watchers
from agentd.engine.workers import CoalescingWorker
from agentd.testing.models import RecordingSink


async def test_nudges_before_the_work_begins_are_one_and_a_failure_is_no_end() -> None:
    done: list[int] = []
    times = asyncio.Semaphore(0)

    async def work() -> None:
        done.append(len(done))
        times.release()
        if len(done) == 1:
            raise ValueError

    nudged = CoalescingWorker("it", work)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(nudged.run())
        nudged.nudge()
        nudged.nudge()
        await times.acquire()
        assert done == [0]
        nudged.nudge()
        await times.acquire()
        running.cancel()
    assert done == [0, 1]


def test_only_notices_of_the_tag_call_back() -> None:
    called: list[bool] = []
    sink = NoticeCallback("compaction", lambda: called.append(True))
    sink.emit(TurnStarted(MAIN, "m", "hi"))
    sink.emit(NoticeGiven(MAIN, "cut", "failure"))
    assert called == []
    sink.emit(NoticeGiven(MAIN, "shorter", "compaction"))
    assert called == [True]


def test_listeners_hear_notices_and_no_words_and_who_is_shown_turns_gets_all() -> None:
    shown, listener = RecordingSink(), RecordingSink()
    watchers = Watchers(shown, listener)
    words, notice = TextChunk(MAIN, "hel"), NoticeGiven(MAIN, "cut", "failure")
    watchers.emit(words)
    watchers.emit(notice)
    assert shown.events == [words, notice]
    assert listener.events == [notice]
