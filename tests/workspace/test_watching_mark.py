"""What a watch's mark promises: another one after every change, and none while changes may go
untold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentd.core.tool import FileAction
from agentd.testing import FakeClock
from agentd.workspace.watching import Watching


@asynccontextmanager
async def up(*roots, changed=lambda: None, **more) -> AsyncIterator[Watching]:
    watch = Watching(roots, changed, FakeClock(), step_ms=20, **more)
    assert watch.mark is None
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        assert await comes(lambda: watch.mark is not None)
        yield watch
        running.cancel()


async def comes(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    for _ in range(int(seconds / 0.01)):
        if true():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_it_stays_until_something_is_told(tmp_path):
    async with up(tmp_path) as watch:
        before = watch.mark
        (tmp_path / "photo.jpg").write_text("no note")
        assert not await comes(lambda: watch.mark != before, 0.3)
        (tmp_path / "a.md").write_text("one")
        assert await comes(lambda: watch.mark not in {before, None})


async def test_it_stays_where_a_file_is_as_agentd_has_left_and_counted_it(home, owner):
    files, told = home.files(), []

    async def write(path, text):
        await files.apply(await files.plan(path, FileAction.WRITE, text), owner)

    async def is_told_by(change):
        del told[:]
        await change
        assert await comes(lambda: bool(told)), "as a hint, every change is told"
        return watch.mark

    async def by_hand(path, text):
        (home.root / path).write_text(text)

    def more():
        told.append(watch.mark)

    async with up(home.root, changed=more, is_counted=files.is_as_left) as watch:
        before = watch.mark
        assert await is_told_by(write("own.md", b"one")) == before
        assert await is_told_by(write("own.md", b"two")) == before
        assert await is_told_by(by_hand("own.md", "abc")) != before, "by others, if as long"
        before = watch.mark
        assert await is_told_by(write("own.md", b"six")) == before
        (home.root / "other.md").write_text("by others")
        await write("own.md", b"ten")
        assert await comes(lambda: watch.mark != before), "among others, too"


async def test_a_folder_whose_name_has_a_dot_counts(tmp_path):
    (tmp_path / "outside/v1.2").mkdir(parents=True)
    (tmp_path / "outside/v1.2/a.md").write_text("one")
    root = tmp_path / "root"
    root.mkdir()
    async with up(root) as watch:
        before = watch.mark
        (tmp_path / "outside/v1.2").rename(root / "v1.2")
        assert await comes(lambda: watch.mark != before)
        before = watch.mark
        (root / "v1.2").rename(tmp_path / "outside/v1.2")
        assert await comes(lambda: watch.mark != before)


async def test_a_root_that_another_takes_the_place_of_is_watched_anew(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    async with up(root, tmp_path / "later") as watch:
        before = watch.mark
        root.rename(tmp_path / "old")
        root.mkdir()
        assert await comes(lambda: watch.mark not in {before, None})
        before = watch.mark
        (root / "a.md").write_text("one")
        assert await comes(lambda: watch.mark not in {before, None})


async def test_a_root_that_comes_to_be_is_watched(tmp_path):
    root, later = tmp_path / "root", tmp_path / "later"
    root.mkdir()
    async with up(root, later) as watch:
        before = watch.mark
        later.mkdir()
        assert await comes(lambda: watch.mark not in {before, None})
        before = watch.mark
        (later / "a.md").write_text("one")
        assert await comes(lambda: watch.mark not in {before, None})


async def test_a_root_that_is_away_for_a_while_is_watched_again(tmp_path):
    root, clock = tmp_path / "root", FakeClock()
    watch = Watching((root,), lambda: None, clock, step_ms=20)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        assert await comes(lambda: clock.sleeping == 1)
        assert watch.mark is None
        root.mkdir()
        await clock.advance(10.0)
        assert await comes(lambda: watch.mark is not None)
        running.cancel()


async def test_there_is_none_after_a_failure(tmp_path):
    class Refused(type(tmp_path)):
        def exists(self, **_) -> bool:
            raise OSError(28, "inotify watch limit reached")

    watch = Watching((Refused(tmp_path),), lambda: None, FakeClock(), step_ms=20)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        assert await comes(lambda: bool(watch.problems()))
        assert watch.mark is None
        running.cancel()
