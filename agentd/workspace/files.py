"""Access to the user's files for the rest of agentd.

Reads show a session only what it may see (`places.Visibility`) and follow no links (`resolver`). An
absent file and a hidden one give the same error: a hidden path is replaced by one that cannot
exist, so both take the same code path. Changes are possible in the user's own workspace only, and
are atomic (`folder`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import date, datetime
from operator import attrgetter
from pathlib import Path, PurePosixPath

import structlog

from agentd.core.errors import (
    EditConflict,
    FileMissing,
    FileUnreadable,
    PathRefused,
    ScopeMissing,
    WorkspaceError,
)
from agentd.core.health import Problem
from agentd.core.offloading import to_the_end
from agentd.core.outside import is_marked
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.tool import FileAction, FileIntent
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import OWNER, RESTORE, Author, FileView, Reader, TreeEntry, Version
from agentd.workspace.changes import MAX_READ_BYTES, FileChanges, GrowingDigest
from agentd.workspace.file_identity import FileIdentities
from agentd.workspace.folder import Folder, Stamp, outside
from agentd.workspace.listing import SCOPE, UNREADABLE, LeftOut, Listing, ProblemList
from agentd.workspace.locks import Locks
from agentd.workspace.names import Name, is_injected, is_protected, parse, parse_file
from agentd.workspace.os_errors import missing, translate_os_errors
from agentd.workspace.places import NotePlaces, ResolvedPath, TextReader, Visibility
from agentd.workspace.versions import Versions
from agentd.workspace.workspace_settings import WorkspaceSettings

log = structlog.get_logger()

_MAX_SEEN = 1_024  # of about 350 bytes; a session whose entry was dropped must read again
_MAX_LEFT = 64  # files whose last change is remembered until the watch reports it
_MAX_DEPTH = 64
_OWNER = Reader(MAIN, SessionKind.OWNER)
_Find = Callable[[str, Reader], ResolvedPath]


class Files:
    """One workspace with its scopes, which are only read; each scope is a folder or a single `.md`
    file. Call `clear_strays` once before use.
    """

    def __init__(
        self,
        root: Path,
        settings: WorkspaceSettings,
        clock: Clock,
        scopes: Mapping[str, Path],
        versions_dir: Path | None,
        redactor: Redactor | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._primary = Folder(root)
        folders = {"": self._primary, **_others(scopes, settings)}
        self.scopes = tuple(scopes)  # the names of the other workspaces that the owner may read
        self._daily = (settings.daily_dir, *settings.daily_aliases)
        self._sight = Visibility(settings.group_paths)
        self._places = NotePlaces(folders, settings, self._sight)
        self._versions = Versions(versions_dir, redactor=redactor) if versions_dir else None
        digests = GrowingDigest()
        self._changes = FileChanges(self._primary, self._versions, digests)
        self._lives = FileIdentities(self._primary, MAX_READ_BYTES)
        self._locks = Locks(self._primary.beneath, clock)
        self._seen: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._reading = TextReader(digests)
        self._configured = _configured_folders(settings)
        self.writes = 0  # how many changes of notes agentd has made here
        self._left: dict[tuple[str, ...], Stamp] = {}  # how these left the files
        self.complaints = ProblemList()
        self._left_out = LeftOut(self.complaints)

    async def clear_strays(self) -> int:
        """Remove temporary files that a crash left behind; return how many."""
        with translate_os_errors("the workspace"):
            count = await asyncio.to_thread(self._primary.clear_strays)
            if self._versions is not None:
                count += await asyncio.to_thread(self._versions.clear_strays)
        if count:
            log.info("workspace_strays_removed", count=count)
        return count

    def canonical(self, path: str) -> str:
        """Return the one spelling of `path`, with `daily/…` spelled as the folder of daily notes (a
        file that exists only below the alias is found under this spelling too). Raises PathRefused.
        """
        return str(self._places.spelled(path))

    def is_protected(self, path: str) -> bool:
        """Whether a change by the model needs the owner's consent. Raises PathRefused."""
        return is_protected(self._places.spelled(path))

    def is_injected(self, path: str) -> bool:
        """Whether prompts may contain the file as the owner's own text. Raises PathRefused."""
        return is_injected(self._places.spelled(path), self._daily)

    def is_owner_only(self, path: str) -> bool:
        """Whether files with this path are visible in the owner's sessions only. Raises
        PathRefused.
        """
        return not self._sight.sees(self._places.spelled(path), SessionKind.GROUP)

    def today(self) -> date:
        """Return the current day in the owner's time zone."""
        return self._clock.now().astimezone(self._clock.zone).date()

    def daily_note(self) -> str:
        """Return the path of today's note."""
        return f"{self._settings.daily_dir}/{self.today()}.md"

    async def read(self, path: str, reader: Reader) -> FileView:
        """Return the whole file; from then on it counts as seen by the session. Raises PathRefused,
        FileMissing, FileUnreadable, ScopeMissing.
        """
        look = asyncio.to_thread(self._look, [path], reader, self._places.file)
        view = _view(self._judged(*(await look)[0]))
        self.mark_seen(view, reader)
        return view

    async def read_damaged(self, path: str, reader: Reader) -> FileView:
        """Return the file as `read` does; if it is not valid UTF-8, with the invalid bytes as
        surrogates. Raises as `read`, and FileUnreadable for UTF-16.
        """
        try:
            return await self.read(path, reader)
        except FileUnreadable:
            place = await asyncio.to_thread(self._places.file, path, reader)
            return await asyncio.to_thread(self._reading.damaged, place)

    async def look(
        self, paths: Sequence[str], reader: Reader
    ) -> Sequence[FileView | WorkspaceError]:
        """Return the whole file, or the error, for each path. The files do not count as seen, and
        files read for the first time are not cached.
        """
        found = await asyncio.to_thread(self._look, paths, reader, self._places.file, keep=False)
        return [self._judged(place, loaded) for place, loaded in found]

    async def snapshot(
        self, paths: Sequence[str], reader: Reader
    ) -> tuple[Mapping[str, FileView], frozenset[str]]:
        """Return the files that the reader's prompts may contain and that can be read, by path, and
        the set of paths at which there is no file. Unchanged files come from the cache; no file
        counts as seen.
        """
        found = await asyncio.to_thread(self._look, paths, reader, self._places.in_prompt)
        views, absent = {}, set()
        for path, (place, loaded) in zip(paths, found, strict=True):
            match self._judged(place, loaded):
                case FileView() as view:
                    views[path] = view
                case FileMissing():
                    absent.add(path)
                case WorkspaceError() as error:
                    log.debug("file_left_out", path=path, code=error.code)
        return views, frozenset(absent)

    async def tree(self, path: str, depth: int, reader: Reader) -> tuple[TreeEntry, ...]:
        """Return the files and folders below `path` ("" is the whole workspace) that the reader may
        see, `depth` levels deep, sorted by path. Raises PathRefused, FileMissing, ScopeMissing.
        """
        depth = max(1, min(depth, _MAX_DEPTH))
        try:
            place, listing = await asyncio.to_thread(self._list, path, depth, reader)
        except ScopeMissing as error:
            self._miss(parse(path).scope, error)
            raise
        self.complaints.clear(f"@{place.name.scope}/", SCOPE)
        if reader.kind is SessionKind.OWNER:  # the listings of other readers are incomplete
            self._left_out.note(place.name, depth, listing.odd)
            gone = listing.lacking(place.name, depth, self.complaints.paths(UNREADABLE))
            await self.look(gone, _OWNER)  # clears their problems: nobody else reads unlisted files
        return tuple(listing.entries)

    async def exists(self, path: str, reader: Reader) -> bool:
        """Whether the reader may see a file there, also one that cannot be read."""
        try:
            await asyncio.to_thread(self._stamp, path, reader)
        except FileUnreadable:
            return True
        except WorkspaceError:
            return False
        return True

    def lock(self, path: str) -> AbstractAsyncContextManager[None]:
        """Hold the path against agentd's other writers and against other processes that flock(2)
        the workspace directory. Raises PathRefused.
        """
        return self._locks.hold(self.canonical(path))

    async def plan(self, path: str, action: FileAction, data: bytes) -> FileIntent:
        """Return the exact change relative to what is on disk now; write nothing. Raises as
        `FileChanges.plan`.
        """
        name = await asyncio.to_thread(self._places.standing_own, path)
        return await asyncio.to_thread(self._changes.plan, name.parts, action, data)

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        """Whether the session has seen the file in the state `digest`; true for an absent file
        (""). Raises PathRefused for a path that this kind of session may not see, whether a file is
        there or not.
        """
        self._places.require_changeable(path, reader)
        if not digest:
            return True
        name = await asyncio.to_thread(self._places.standing_own, path)
        return self._seen.get((reader.session, str(name))) == digest

    async def apply(self, intent: FileIntent, reader: Reader, by: Author = OWNER) -> None:
        """Make the planned change durably, with `by` as its author in the file's history. After a
        write the session has seen the file; after an append only if it had seen the file before.
        Raises EditConflict, PathRefused.
        """
        self._places.require_changeable(intent.path, reader)
        # The planned path itself: an alias may lead to another file by now.
        parts = parse_file(intent.path).parts
        had_seen = await self.has_seen(intent.path, intent.before, reader)
        now = self._clock.now()
        try:
            as_planned = await to_the_end(lambda: self._apply(parts, intent, now, by))
        finally:
            self.count_write(intent.path)
        if as_planned and (had_seen or intent.action is not FileAction.APPEND):
            self.mark_seen(FileView(intent.path, "", intent.after), reader)

    def _apply(self, parts: Sequence[str], intent: FileIntent, now: datetime, by: Author) -> bool:
        with translate_os_errors(intent.path):
            goes_on = self._lives.is_going_on(parts)
        as_planned = self._changes.apply(parts, intent, now, by)
        self._note_left(tuple(parts))
        is_over = intent.action is not FileAction.APPEND and not intent.data.strip()
        with translate_os_errors(intent.path):
            if is_over:
                self._lives.end(parts)
            elif goes_on:
                self._lives.go_on(parts)
        return as_planned

    def _note_left(self, parts: tuple[str, ...]) -> None:
        """Remember the file as it is, before its change is counted in `writes`: whoever sees the
        new count then sees this state, whatever it is.
        """
        if len(self._left) >= _MAX_LEFT:
            self._left.clear()
        self._left.pop(parts, None)
        with suppress(OSError, PathRefused):
            self._left[parts] = self._primary.stamp(parts)

    def is_as_left(self, file: Path) -> bool:
        """Whether the file is as a change left it that `writes` counts. Blocking."""
        root = self._primary.root
        left = self._left.get(file.relative_to(root).parts) if file.is_relative_to(root) else None
        try:
            return left is not None and self._primary.stamp(file.relative_to(root).parts) == left
        except (OSError, WorkspaceError):
            return False

    async def life(self, path: str) -> str:
        """See NoteRules."""
        name = await asyncio.to_thread(self._places.standing_own, path)
        with translate_os_errors(path):
            return await asyncio.to_thread(self._lives.of, name.parts)

    def count_write(self, path: str) -> None:
        """Count a change that agentd itself may have made to a note."""
        self.writes += path.casefold().endswith(".md")

    async def outside(self, path: str, lines: Sequence[str]) -> Sequence[bool]:
        """See NoteReader."""
        name = await asyncio.to_thread(self._places.standing, path)
        if name.scope:
            return [True] * len(lines)
        marked = [is_marked(line) for line in lines]
        if self._versions is None:
            return marked
        whole = [line.encode(errors="surrogateescape") for line in lines]
        with translate_os_errors(path):
            brought = await asyncio.to_thread(self._versions.outside, str(name), whole)
        return [one or other for one, other in zip(marked, brought, strict=True)]

    async def has_outside_name(self, paths: Sequence[str]) -> bool:
        """See NoteReader."""
        if any(path.startswith("@") and path.rstrip("/").count("/") for path in paths):
            return True  # the name of a scope is the owner's choice; the names inside it are not
        if (versions := self._versions) is None:
            return False
        named = {path.rstrip("/") for path in paths}
        folders = {str(folder) for path in named for folder in PurePosixPath(path).parents}
        named |= folders - self._configured
        with translate_os_errors("the versions of files"):
            return await asyncio.to_thread(
                lambda: any(any(versions.outside(path, [b""])) for path in named)
            )

    async def record_outside_names(self, paths: Sequence[str]) -> None:
        """See NoteReader."""
        if (versions := self._versions) is not None:
            with translate_os_errors("the versions of files"):
                await asyncio.to_thread(versions.record_outside_names, paths)

    async def inspect(self, intent: FileIntent) -> str:
        """Tell, after a crash, the state of a planned change: "before", "after" or "other"."""
        parts = parse_file(intent.path).parts
        return await asyncio.to_thread(self._changes.inspect, parts, intent)

    async def history(self, path: str) -> tuple[str, tuple[Version, ...]]:
        """Return the digest of the current file ("" for none) and the kept versions, newest first.
        Raises PathRefused.
        """
        name = await asyncio.to_thread(self._places.standing_own, path)
        with translate_os_errors(path):
            now = await asyncio.to_thread(self._changes.digest, name.parts)
            if self._versions is None:
                return now, ()
            return now, await asyncio.to_thread(self._versions.of, str(name), now)

    async def version(self, path: str, number: int) -> bytes:
        """Return the content of a kept version. Raises NotFound, PathRefused, and FileMissing if no
        versions are kept at all.
        """
        name = await asyncio.to_thread(self._places.standing_own, path)
        if self._versions is None:
            raise missing(path)
        with translate_os_errors(path):
            return await asyncio.to_thread(self._versions.read, str(name), number)

    async def restore(self, path: str, number: int, expected: str | None) -> FileIntent:
        """Write the content of a version back to the file, as a new version; the current content is
        kept. Return the change. Raises NotFound, and EditConflict if `expected` is given and is not
        the digest of the current file.
        """
        name = await asyncio.to_thread(self._places.standing_own, path)
        async with self.lock(path):
            data = await self.version(path, number)
            intent = await asyncio.to_thread(
                self._changes.plan, name.parts, FileAction.WRITE, data, MAX_READ_BYTES
            )
            if expected is not None and intent.before != expected:
                raise EditConflict(
                    f"{name} has changed meanwhile; nothing was restored",
                    cure=f"look at it and at `agentd memory history {name}`, then decide again",
                )
            await self.apply(intent, _OWNER, RESTORE)
        return intent

    def mark_seen(self, view: FileView, reader: Reader) -> None:
        """Record that the session was shown the whole file in this state."""
        self._seen[reader.session, view.path] = view.digest
        self._seen.move_to_end((reader.session, view.path))
        if len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)

    def problems(self) -> tuple[Problem, ...]:
        """Return the current problems: files that cannot be read or listed, and files that were cut
        in prompts, and damaged lists of former versions.
        """
        versions = self._versions.problems() if self._versions else ()
        return (*self.complaints.all(), *versions)

    def _look(
        self, paths: Sequence[str], reader: Reader, find: _Find, *, keep: bool = True
    ) -> list[tuple[ResolvedPath, FileView | WorkspaceError]]:
        places = [find(path, reader) for path in paths]
        return list(zip(places, self._reading.load(places, keep=keep), strict=True))

    def _stamp(self, path: str, reader: Reader) -> None:
        place = self._places.file(path, reader)
        with translate_os_errors(place.asked):
            place.folder.stamp(place.parts, alone=place.alone)

    def _judged(
        self, place: ResolvedPath, loaded: FileView | WorkspaceError
    ) -> FileView | WorkspaceError:
        """Return the view or the error unchanged, and update the problems: a file that exists but
        cannot be read becomes one.
        """
        path = str(place.name)
        if isinstance(loaded, ScopeMissing):
            self._miss(place.name.scope, loaded)
            return loaded
        if place.name.scope and not place.is_hidden:
            self.complaints.clear(f"@{place.name.scope}/", SCOPE)
        if isinstance(loaded, FileView):
            self.complaints.clear(path, UNREADABLE)
            return loaded
        is_told = place.alone and path in self.complaints.paths(UNREADABLE)
        if place.name in self._left_out or (is_told and not isinstance(loaded, FileMissing)):
            pass  # already reported, to the owner in more detail
        elif not isinstance(loaded, FileMissing):
            self.complaints.add(path, Problem(UNREADABLE, loaded.message, loaded.cure))
        elif not place.is_hidden:
            self.complaints.forget(path)
        return loaded

    def _miss(self, scope: str, error: ScopeMissing) -> None:
        """Report one problem for a missing scope instead of one for each of its files."""
        self._left_out.note(Name(scope, ()), _MAX_DEPTH, {})
        text = f"@{scope}/ is not searched: {error.message}"
        self.complaints.add(f"@{scope}/", Problem(SCOPE, text, error.cure))

    def _list(self, path: str, depth: int, reader: Reader) -> tuple[ResolvedPath, Listing]:
        place = self._places.directory(path, reader)
        listing = Listing(place.folder, self._sight, reader.kind)
        with translate_os_errors(place.asked):
            listing.gather(place.name, place.parts, depth)
        if not place.name.parts and not place.name.scope and reader.kind is SessionKind.OWNER:
            listing.entries += [TreeEntry(f"@{name}/", 0, is_dir=True) for name in self.scopes]
        listing.entries.sort(key=attrgetter("path"))
        return place, listing


def _view(found: FileView | WorkspaceError) -> FileView:
    """Return the view, or raise the error."""
    try:
        if isinstance(found, WorkspaceError):
            raise found
        return found
    finally:
        del found  # else the error's traceback would hold the error


def _others(scopes: Mapping[str, Path], settings: WorkspaceSettings) -> dict[str, Folder]:
    own = settings.scopes()
    setting = {True: "read_scopes of [workspace]", False: "extra_paths of [memory_search]"}
    return {name: outside(at, setting[name in own]) for name, at in scopes.items()}


def _configured_folders(settings: WorkspaceSettings) -> frozenset[str]:
    """Return the folders whose names come from the configuration, with their parents: these names
    are the owner's choice, whoever creates the folders.
    """
    named = [PurePosixPath(path) for path in (settings.daily_dir, *settings.group_paths)]
    return frozenset(str(folder) for path in named for folder in (path, *path.parents))
