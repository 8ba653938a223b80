"""Tells soon when notes change on disk. A hint only: what is there is proven by looking.

The kernel's events come through watchfiles, in a thread of its own. Where there are none (too many
watches, a file system without events) the regular look finds changes later, and a problem says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import structlog
from watchfiles import Change, watch
from watchfiles.main import FileChange

from agentd.domain.health import Problem
from agentd.ports import Clock

STEP_MS = 400  # without a change for as long, what has changed is told
_DEBOUNCE_MS = 1_000  # no change waits longer than this
_AGAIN = 600.0  # seconds after a failure
_SOON = 5.0  # seconds after a change that cannot be told

log = structlog.get_logger()


class Watching:
    """`run` calls `changed` after markdown files or folders below the roots have changed."""

    def __init__(
        self,
        roots: Sequence[Path],
        changed: Callable[[], None],
        clock: Clock,
        step_ms: int = STEP_MS,
    ) -> None:
        self._roots = tuple(roots)
        self._changed = [changed]
        self._clock = clock
        self._step_ms = step_ms
        self._failure: Problem | None = None

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this, too."""
        self._changed.append(changed)

    async def run(self) -> None:
        """Watch until cancelled. Folders that come to be later are seen at the next try."""
        while True:
            try:
                await self._watch()
            except (OSError, RuntimeError) as error:
                if "decode path" in str(error):  # of a name that is not UTF-8; others still count
                    log.warning("change_not_told", error=str(error))
                    self._tell()
                    await self._clock.sleep(_SOON)
                    continue
                # Notes are still found, at the next regular look.
                log.warning("watching_failed", error=str(error))
                self._failure = Problem(
                    "watching_failed",
                    f"changes of notes are seen within half a minute only: {error}",
                    "Raise fs.inotify.max_user_watches and max_user_instances with sysctl, "
                    "or set watch = false in [memory_search].",
                )
            await self._clock.sleep(_AGAIN)

    def problems(self) -> tuple[Problem, ...]:
        """Why changes are not seen at once."""
        return (self._failure,) if self._failure else ()

    async def _watch(self) -> None:
        loop, stop = asyncio.get_running_loop(), Event()
        pool = ThreadPoolExecutor(1, thread_name_prefix="watching")
        try:
            told = await loop.run_in_executor(pool, self._open, stop)
            while told is not None:
                changes = loop.run_in_executor(pool, next, told, None)
                self._failure = None
                if await changes is None:
                    return
                self._tell()
        finally:
            stop.set()
            pool.shutdown(wait=False)  # it sees the stop within a step

    def _tell(self) -> None:
        for changed in self._changed:
            changed()

    def _open(self, stop: Event) -> Iterator[set[FileChange]] | None:
        roots = [root for root in self._roots if root.exists()]
        if not roots:
            return None
        return watch(
            *roots,
            watch_filter=self._matters,
            debounce=_DEBOUNCE_MS,
            step=self._step_ms,
            stop_event=stop,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )

    def _matters(self, change: Change, path: str) -> bool:
        """Whether a note changed, or something that may be a folder; nothing hidden does."""
        changed = Path(path)
        root = next((root for root in self._roots if changed.is_relative_to(root)), None)
        below = changed.relative_to(root).parts if root else changed.parts[-1:]
        if any(part.startswith(".") for part in below):
            return False
        suffix = changed.suffix.casefold()
        return suffix == ".md" or (not suffix and change is not Change.modified)
