"""Reports changes of notes on disk quickly. Only a hint: a scan finds out what changed.

The kernel's events come from watchfiles, which runs in a thread. Where there are none (too many
watches, a file system without events), the periodic scan finds changes later, and a problem says
so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import structlog
from msgspec import Struct
from watchfiles import Change, watch
from watchfiles.main import FileChange

from agentd.core.health import Problem
from agentd.core.ports import Clock

log = structlog.get_logger()


STEP_MS = 400  # changes are reported after this time without another one
_DEBOUNCE_MS = 1_000  # but no later than this
_QUIET_STEPS = 10  # after so many steps without a change, the watch shows that it still runs
_AGAIN = 600.0  # seconds to wait after a failure
_SOON = 5.0  # seconds to wait after a path that cannot be decoded, or if there is nothing to watch


class _Report(Struct, frozen=True):
    """What a batch of the kernel's events tells."""

    matters: bool = False  # a note or a folder has changed
    is_news: bool = False  # not only by changes that agentd has counted


class Watching:
    """Calls `changed` after markdown files or folders below the roots have changed, while `run`
    runs. `is_counted` says, in a thread, whether a file is as a change left it that agentd made
    and has counted itself.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        changed: Callable[[], None],
        clock: Clock,
        step_ms: int = STEP_MS,
        is_counted: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        self._roots = tuple(roots)
        self._is_counted = is_counted
        self._changed = [changed]
        self._clock = clock
        self._step_ms = step_ms
        self._standing: list[tuple[int, int] | None] = []  # the thread's own
        self._is_up = False
        self._told = 0
        self._failure: Problem | None = None

    @property
    def mark(self) -> int | None:
        """A number that differs after each report of a change that is not counted elsewhere;
        reports follow a change within about a second. None while changes may go unreported.
        """
        return self._told if self._is_up else None

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this function too after changes."""
        self._changed.append(changed)

    async def run(self) -> None:
        """Watch until cancelled. A root that is created later is noticed within seconds."""
        while True:
            try:
                if not await self._watch():
                    await self._clock.sleep(_SOON)
                continue
            except (OSError, RuntimeError) as error:
                if "decode path" in str(error):  # a name is not UTF-8; other files still change
                    log.warning("change_not_told", error=str(error))
                    self._tell()
                    await self._clock.sleep(_SOON)
                    continue
                # Changed notes are still found, by the next periodic scan.
                log.warning("watching_failed", error=str(error))
                self._failure = Problem(
                    "watching_failed",
                    f"changes of notes are seen within half a minute only: {error}",
                    "Raise fs.inotify.max_user_watches and max_user_instances with sysctl, "
                    "or set watch = false in [memory_search].",
                )
            await self._clock.sleep(_AGAIN)

    def problems(self) -> tuple[Problem, ...]:
        """Return why changes are not noticed at once, if so."""
        return (self._failure,) if self._failure else ()

    async def _watch(self) -> bool:
        """Watch until the watch has to be set up anew; return False if there is nothing
        to watch.
        """
        loop, stop = asyncio.get_running_loop(), Event()
        pool = ThreadPoolExecutor(1, thread_name_prefix="watching")
        try:
            watched = await loop.run_in_executor(pool, self._open, stop)
            if watched is None:
                return False
            while (report := await loop.run_in_executor(pool, self._next, watched)) is not None:
                self._failure = None
                if not self._is_up:
                    self._is_up = True
                    self._told += 1  # changes before the watch began are unknown
                if report.matters:
                    self._tell(is_news=report.is_news)
        finally:
            self._is_up = False
            stop.set()
            pool.shutdown(wait=False)  # the thread notices `stop` within a step
        self._tell()
        return True

    def _tell(self, *, is_news: bool = True) -> None:
        self._told += is_news
        for changed in self._changed:
            changed()

    def _next(self, watched: Iterator[set[FileChange]]) -> _Report | None:
        """Return what the next changes tell; None if the watch is over, or a root is no longer the
        folder that is watched.
        """
        changes = next(watched, None)
        if changes is None or self._standing != list(map(_identity, self._roots)):
            return None
        matter = [path for change, path in changes if self._matters(change, path)]
        return _Report(bool(matter), not all(self._is_counted(Path(path)) for path in matter))

    def _open(self, stop: Event) -> Iterator[set[FileChange]] | None:
        self._standing = list(map(_identity, self._roots))
        roots = [root for root in self._roots if root.exists()]
        if not roots:
            return None
        return watch(
            *roots,
            watch_filter=None,  # irrelevant changes show that the watch works, too
            debounce=_DEBOUNCE_MS,
            step=self._step_ms,
            stop_event=stop,
            rust_timeout=_QUIET_STEPS * self._step_ms,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )

    def _matters(self, change: Change, path: str) -> bool:
        """Whether the change concerns a note, or something that may be a folder; hidden names never
        matter.
        """
        changed = Path(path)
        root = next((root for root in self._roots if changed.is_relative_to(root)), None)
        below = changed.relative_to(root).parts if root else changed.parts[-1:]
        if any(part.startswith(".") for part in below):
            return False
        suffix = changed.suffix.casefold()
        if suffix == ".md" or change is Change.modified:
            return suffix == ".md"
        return not suffix or change is Change.deleted or changed.is_dir()


def _identity(root: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another one in its place; None if it does not exist."""
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
