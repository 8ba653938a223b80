"""Moves old daily notes to the archive: `memory/2025-03-01.md` to
`memory/archive/2025/2025-03-01.md`.

No text is deleted: a note is written durably to its new place before its old file is removed. A
move that a crash cut is finished by the next run. Search dates a note by its file name, so moved
notes are found as before.
"""

from __future__ import annotations

import asyncio
import re
from datetime import date, datetime
from functools import partial
from pathlib import Path

import structlog

from agentd.core.errors import WorkspaceError
from agentd.core.health import Problem
from agentd.core.offloading import to_the_end
from agentd.core.ports import Clock
from agentd.core.tool import FileAction
from agentd.core.workspace import Author
from agentd.engine.workers import DailyWorker
from agentd.workspace.authored import lines_of
from agentd.workspace.changes import MAX_READ_BYTES, FileChanges
from agentd.workspace.files import Files
from agentd.workspace.folder import Folder
from agentd.workspace.os_errors import translate_os_errors
from agentd.workspace.versions import Versions, digest_of
from agentd.workspace.workspace_settings import WorkspaceSettings

log = structlog.get_logger()


FOLDER = "archive"  # below the folder of daily notes
ARCHIVE = Author("archive")

_NOTE = re.compile(r"(\d{4}-\d{2}-\d{2})\.md", re.ASCII)
_RESTED = 3_600.0  # seconds that a note must have been unchanged
# What editors leave beside a file while it is open.
_OPEN = (".{}.swp", ".{}.swo", ".#{}", "#{}#", ".~lock.{}#", ".{}.kate-swp")


class Archiving:
    """Moves old daily notes once a day: in the background (`run`, until cancelled) or at once
    (`tidy`). Does nothing without `[workspace] archive_after_days`.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        versions_dir: Path,
        clock: Clock,
        settings: WorkspaceSettings,
    ) -> None:
        self._files = files
        self._root = root
        self._folder = Folder(root)
        self._versions = Versions(versions_dir)
        self._changes = FileChanges(self._folder, self._versions)
        self._clock = clock
        self._home = tuple(settings.daily_dir.split("/"))
        self._days = settings.archive_after_days
        self._least = settings.daily_lookback_days  # newer notes are injected into prompts
        self._daily = DailyWorker("archive", self.tidy, clock)
        self._stuck: tuple[Problem, ...] = ()

    async def run(self) -> None:
        """Call `tidy` every day, until cancelled. Returns at once if archiving is off."""
        if self._days:
            await self._daily.run()

    async def tidy(self) -> tuple[str, ...]:
        """Move the notes that are old enough; return their new paths. A note that cannot be moved
        becomes a problem and does not stop the others. Raises WorkspaceError if the folder cannot
        be read.
        """
        if not self._days:
            return ()
        with translate_os_errors("the daily notes"):
            old = await asyncio.to_thread(self._old)
        moved: list[str] = []
        stuck: list[Problem] = []
        for day in old:
            try:
                if path := await self._move(day):
                    moved.append(path)
            except WorkspaceError as error:
                # The other notes are moved; this one is reported until it can be moved.
                stuck.append(Problem("note_not_archived", error.message, error.cure))
        self._stuck = tuple(stuck)
        if moved:
            log.info("notes_archived", count=len(moved), last=moved[-1])
        return tuple(moved)

    def problems(self) -> tuple[Problem, ...]:
        """Return the notes that cannot be moved, each with the reason."""
        return (*self._daily.problems(), *self._stuck)

    def _old(self) -> list[date]:
        """Return the days of the notes to move: older than both limits, unchanged for an hour, and
        open in no known editor.
        """
        try:
            entries = self._folder.entries(self._home)
        except FileNotFoundError:
            return []
        today, now = self._files.today(), self._clock.now().timestamp()
        found = []
        for entry in entries:
            day = None if entry.is_dir or entry.is_odd else _day(entry.name)
            if day is None or (today - day).days <= max(self._days, self._least):
                continue
            rests = now - entry.mtime_ns / 1e9 >= _RESTED
            if rests and not self._is_open(entry.name):
                found.append(day)
        return found

    def _is_open(self, name: str) -> bool:
        folder = self._root.joinpath(*self._home)
        return any(
            (folder / sign.format(name)).is_symlink() or (folder / sign.format(name)).exists()
            for sign in _OPEN
        )

    async def _move(self, day: date) -> str:
        source = (*self._home, f"{day}.md")
        target = (*self._home, FOLDER, f"{day:%Y}", f"{day}.md")
        path = "/".join(target)
        async with self._files.lock("/".join(source)), self._files.lock(path):
            with translate_os_errors("/".join(source)):
                try:
                    done = await to_the_end(partial(self._carry, source, target, self._clock.now()))
                finally:
                    self._files.count_write(path)
        return path if done else ""

    def _carry(self, source: tuple[str, ...], target: tuple[str, ...], now: datetime) -> bool:
        """Write the note to `target`, then delete it at `source`. Return False if there was no note
        or it changed in the meantime. Blocking; the caller holds the locks of both paths. Raises
        WorkspaceError if `target` exists with other text.
        """
        data = self._folder.read_for_change(source, MAX_READ_BYTES)
        there = self._folder.read_for_change(target, MAX_READ_BYTES)
        if data is None:
            return False
        here, path = "/".join(source), "/".join(target)
        if there is not None and not data.startswith(there):
            raise WorkspaceError(
                f"{path} is there already and says something else than {here}",
                cure="put what you want to keep into one of them, and delete the other",
            )
        if there != data:
            self._versions.inherit(path, here, lines_of(data))
            intent = self._changes.plan(target, FileAction.WRITE, data, MAX_READ_BYTES)
            self._changes.apply(target, intent, now, ARCHIVE)
        gone = self._changes.plan(source, FileAction.DELETE, b"")
        if gone.before != digest_of(data):
            return False  # it was written to just now: the next run moves it
        self._changes.apply(source, gone, now, ARCHIVE)
        return True


def _day(name: str) -> date | None:
    match = _NOTE.fullmatch(name)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None
