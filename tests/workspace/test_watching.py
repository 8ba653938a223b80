from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agentd.core.clock import SystemClock
from agentd.testing import FakeClock
from agentd.workspace.watching import Watching


@asynccontextmanager
async def watching(*roots) -> AsyncIterator[asyncio.Event]:
    changed = asyncio.Event()
    watch = Watching(roots, changed.set, FakeClock(), step_ms=20)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        is_up = False
        while not is_up:  # until a change is told, it is not known to watch
            (roots[0] / "first.md").write_text("x")
            is_up = await _tells(changed, 0.2)
        await asyncio.sleep(0.1)  # what is still on its way
        changed.clear()
        yield changed
        assert watch.problems() == ()
        running.cancel()


async def _tells(changed: asyncio.Event, seconds: float = 5.0) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return False
    changed.clear()
    return True


async def test_what_editors_do_to_notes_is_told(tmp_path):
    note, copy = tmp_path / "a.md", tmp_path / "a.md~"
    async with watching(tmp_path, tmp_path / "missing") as changed:
        note.write_text("one")
        assert await _tells(changed)
        copy.write_text("two")
        copy.replace(note)
        assert await _tells(changed)
        note.rename(tmp_path / "b.md")
        assert await _tells(changed)
        (tmp_path / "b.md").unlink()
        assert await _tells(changed)
        (tmp_path / "more").mkdir()
        assert await _tells(changed)
        (tmp_path / "more/c.md").write_text("deep")
        assert await _tells(changed)
        (tmp_path / "more").rename(tmp_path / "less")
        assert await _tells(changed)


async def test_what_is_no_note_is_not_told(tmp_path):
    (tmp_path / ".git").mkdir()
    async with watching(tmp_path) as changed:
        (tmp_path / "photo.jpg").write_text("no text")
        (tmp_path / ".git/x.md").write_text("hidden")
        (tmp_path / ".agentd-1.tmp").write_text("half")
        assert not await _tells(changed, 0.3)


async def test_a_single_file_is_watched(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "other.md").write_text("one")
    async with watching(tmp_path / "own", tmp_path / "other.md") as changed:
        (tmp_path / "other.md").write_text("two")
        assert await _tells(changed)


async def test_a_name_that_is_no_text_does_not_end_the_watch(tmp_path):
    clock, changed = FakeClock(), asyncio.Event()
    watch = Watching((tmp_path,), changed.set, clock, step_ms=20)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        while not clock.sleeping:  # it waits for a moment, and does not give up
            Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md")).write_text("x")
            await asyncio.sleep(0.05)
        assert await _tells(changed)
        await clock.advance(10.0)
        told = False
        for n in range(50):
            (tmp_path / "first.md").write_text(str(n))
            if told := await _tells(changed, 0.2):
                break
        assert told
        assert watch.problems() == ()
        running.cancel()


async def test_where_nothing_can_be_watched_it_says_so_and_tries_again(tmp_path):
    class Refused(type(tmp_path)):
        def exists(self, **_) -> bool:
            raise OSError(28, "inotify watch limit reached")

    clock = FakeClock()
    watch = Watching((Refused(tmp_path),), lambda: None, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        for _ in range(200):
            if watch.problems():
                break
            await asyncio.sleep(0.01)
        assert [problem.code for problem in watch.problems()] == ["watching_failed"]
        running.cancel()


async def test_a_stop_does_not_wait_for_the_watch(tmp_path):
    clock, step = SystemClock(), 2.0
    watch = Watching((tmp_path,), lambda: None, clock, step_ms=int(step * 1000))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        await asyncio.sleep(0.1)  # it is within its first step now
        before = clock.monotonic()
        running.cancel()
    assert clock.monotonic() - before < step / 2
