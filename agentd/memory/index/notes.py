"""Keeps the workspace's notes in the search index up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime

import structlog

from agentd.core.errors import ScopeMissing, WorkspaceError
from agentd.core.health import Problem
from agentd.core.offloading import offload
from agentd.core.ports import Clock, MemoryIndex, NoteReader
from agentd.core.search import OWNERS, SHARED, Chunk, LinePatch, Source
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import FACTS_PATH, LISTED_DEPTH, FileView, Reader, TreeEntry
from agentd.memory.index.chunks import (
    PARAGRAPHS,
    Chunker,
    chunker_for,
    without_boilerplate,
)
from agentd.memory.index.note_growth import CutPoints, NoteCutting, NoteTail
from agentd.memory.index.note_listing import (
    Freshness,
    groups,
    is_scope,
    split_listing,
    too_deep,
)

log = structlog.get_logger()

_FEW = 2_000  # entries that may be processed on the event loop
_SHORT = 10_000  # characters that may be cut on the event loop
_FRESH_NS = 2 * 10**9  # a time stamp this young may hide a second change
_Stamp = tuple[int, ...]  # TreeEntry.stamp
_OWNER = Reader(SessionKey("indexer"), SessionKind.OWNER)
_OTHERS = Reader(SessionKey("indexer"), SessionKind.GROUP)
_SHARED = ":shared:"  # part of the digest of a note that groups may find


class NoteIndexer:
    """Keeps the index up to date with the notes. A file with an unchanged stamp is not read, also
    after a restart: the index stores the stamp with the file's digest. A note that was cut by
    another chunker is cut again; until then it is found in its old chunks.
    """

    def __init__(
        self,
        index: MemoryIndex,
        workspace: NoteReader,
        clock: Clock,
        chunker: Chunker = PARAGRAPHS,
        shipped: Mapping[str, frozenset[str]] | None = None,
        aging: Iterable[str] = (),
    ) -> None:
        """`shipped` maps the paths of notes that are shipped with agentd to their lines as shipped.
        Files of the scopes `aging` without a date get the day of their last change.
        """
        self._index = index
        self._workspace = workspace
        self._clock = clock
        self._wanted = chunker
        self._shipped = shipped or {}
        self._aging = tuple(f"@{scope}/" for scope in aging)
        self._days: dict[str, date] = {}
        self._chunkers = self._by_path(chunker)
        self._lock = asyncio.Lock()
        self._known: dict[str, str] | None = None
        self._stamps: dict[str, _Stamp] = {}
        self._stale: set[str] = set()
        self._shared: set[str] = set()  # paths in the last listing that groups may see
        self._unread: set[str] = set()
        self._unlisted: Sequence[Problem] = ()
        self._faulty: set[str] = set()  # files that could not be cut
        self._left = 0
        self._growing = CutPoints()
        self.freshness = Freshness(clock)
        # Whether groups find no more than they may: the index may stem from other settings until
        # checked.
        self.is_sharing_checked = False

    @property
    def left(self) -> int:
        """How many files the running scan has still to read."""
        return self._left

    def adopt(self, chunker: Chunker) -> None:
        """Cut notes with this chunker from the next scan on."""
        self._wanted = chunker
        self.freshness.lose()

    async def sync(self, between: Callable[[], Awaitable[None]] | None = None) -> None:
        """Scan all files and index those that changed; await `between` before each group of them.
        Raises StorageError.
        """
        async with self._lock:
            await self._look(between)

    async def level(self, between: Callable[[], Awaitable[None]] | None = None) -> None:
        """Do `sync`, unless nothing can have changed as far as is known. Raises StorageError."""
        if self.freshness.is_sure:
            return
        async with self._lock:
            if not self.freshness.is_sure:  # another scan may have ended meanwhile
                await self._look(between)

    async def level_shared(self) -> None:
        """Index the changes of the notes that groups may see, without scanning anything else.
        Raises StorageError.
        """
        async with self._lock:
            entries, _ = split_listing(await self._workspace.tree("", LISTED_DEPTH, _OTHERS))
            known = self._known
            if known is None:  # no full scan yet
                known = dict(await self._index.digests(Source.NOTES))
            if not self.is_sharing_checked:
                self._shared = {path for path, digest in known.items() if _SHARED in digest}
            await self._forget(self._shared - entries.keys(), known)
            self.is_sharing_checked = True
            self._shared = set(entries)
            due = [e for e in entries.values() if self._stamps.get(e.path) != e.stamp]
            for group in groups(due):
                await self._visit(group, known)

    async def _look(self, between: Callable[[], Awaitable[None]] | None) -> None:
        if self._wanted.identity != self._chunkers[""].identity:
            self._chunkers = self._by_path(self._wanted)
            self.reset()
        look = self.freshness.begin()
        entries, unlisted = await self._entries()
        known = self._known
        if known is None:
            known = dict(await self._index.digests(Source.NOTES))
            self._stamps = await asyncio.to_thread(self._stamps_of, known, entries)
            self._stamps.pop(FACTS_PATH, None)  # read at each start: its lines are remembered
            self._known = known
            self._stale = {
                path
                for path, digest in known.items()
                if (entry := entries.get(path)) and not digest.startswith(self._way(entry))
            }
        due, gone = await offload(len(entries), lambda: self._changes(entries, known), light=_FEW)
        self._shared = {entry.path for entry in entries.values() if entry.is_shared}
        self.freshness.listed(look)
        if due or gone:
            self.freshness.lose()
        self._left = len(due)
        try:
            for group in groups(due):
                if between is not None:
                    await between()
                await self._visit(group, known)
                self._left -= len(group)
        finally:
            self._left = 0
        await self._forget(gone, known)
        if lost := sorted(self._unread - entries.keys()):
            await self._workspace.look(lost, _OWNER)  # to drop their problems
            self._unread.difference_update(lost)
        self._unlisted = unlisted
        self.freshness.settle(look)

    @property
    def is_stale(self) -> bool:
        """Whether some notes have still to be cut again."""
        return bool(self._stale)

    def reset(self) -> None:
        """Forget what is known of the index, because the index has changed or been lost."""
        self._known = None
        self.is_sharing_checked = False
        self._stamps.clear()
        self.freshness.lose()

    def problems(self) -> tuple[Problem, ...]:
        """Return the folders and files that are not in the index. Files that cannot be read are
        reported by the workspace.
        """
        faulty = [
            Problem(
                "note_not_indexed",
                f"{path} as it is now is not searched: it could not be cut into pieces",
                "see `agentd logs`; it is tried again by itself, and once the file is changed",
            )
            for path in sorted(self._faulty)
        ]
        return (*self._unlisted, *faulty)

    async def _entries(self) -> tuple[dict[str, TreeEntry], list[Problem]]:
        """Return all notes by path, and problems for folders that cannot be listed or are too
        deep.
        """
        found = list(await self._workspace.tree("", LISTED_DEPTH, _OWNER))
        unlisted: list[Problem] = []
        listed = {entry.path for entry in found}
        for scope in [e.path for e in found if e.is_dir and is_scope(e.path)]:
            if any(path != scope and path.startswith(scope) for path in listed):
                continue
            try:
                found += await self._workspace.tree(scope.rstrip("/"), LISTED_DEPTH, _OWNER)
            except ScopeMissing:
                continue  # reported by the workspace
            except WorkspaceError as error:  # a disk that fails: the rest still counts
                text = f"{scope} is not searched: {error.message}"
                unlisted.append(Problem("scope_unreadable", text, error.cure))
        notes, deep = await offload(len(found), lambda: split_listing(found), light=_FEW)
        return notes, [*unlisted, *too_deep(deep)]

    def _changes(
        self, entries: Mapping[str, TreeEntry], known: Mapping[str, str]
    ) -> tuple[list[TreeEntry], list[str]]:
        """Return the files to read, and the paths of deleted files."""
        due = [e for e in entries.values() if self._stamps.get(e.path) != e.stamp]
        return due, [path for path in known if path not in entries]

    async def _visit(self, group: Sequence[TreeEntry], known: dict[str, str]) -> None:
        now_ns = int(self._clock.now().timestamp()) * 10**9
        for entry in group:
            self._stamps.pop(entry.path, None)
        aging = [e for e in group if e.mtime_ns and e.path.startswith(self._aging)]
        days = {entry.path: self._changed_on(entry) for entry in aging}
        self._days = {path: day for path, day in days.items() if day is not None}
        views = await self._workspace.look([entry.path for entry in group], _OWNER)
        found: list[FileView] = []
        for entry, view in zip(group, views, strict=True):
            if isinstance(view, FileView):
                found.append(view)
                self._unread.discard(entry.path)
                continue
            self._unread.add(entry.path)
            await self._forget([entry.path], known)
        settled = [e for e in group if 0 < (e.ctime_ns or e.mtime_ns) < now_ns - _FRESH_NS]
        stamps = {entry.path: entry.stamp for entry in settled}
        await self._take(found, stamps, known)
        for view in found:
            if view.path in stamps and view.path not in self._faulty:
                self._stamps[view.path] = stamps[view.path]

    async def _take(
        self, views: Sequence[FileView], stamps: Mapping[str, _Stamp], known: dict[str, str]
    ) -> None:
        """Index the files that have changed, and store the stamps of all. A file that cannot be cut
        stays as it was. Of the others the lines are remembered where that is of use: a page of
        facts would otherwise be indexed as a whole when it changes next.
        """
        digests = {view.path: self._digest(view) for view in views}
        marks = {path: digest + _suffix(stamps.get(path)) for path, digest in digests.items()}
        changed = [v for v in views if known.get(v.path, "").partition("@")[0] != digests[v.path]]
        touched = marks.keys() - {v.path for v in changed}
        by_line = [v for v in views if v.path in touched and self._chunker(v.path).is_by_line]
        for view in by_line:
            way = self._note_way(view)
            await asyncio.to_thread(self._growing.remember, view, way, digests[view.path])
        parts = await self._parts(changed, known, digests)

        async def replace(path: str, part: NoteTail | Sequence[LinePatch[Chunk]]) -> None:
            if isinstance(part, NoteTail):
                await self._index.replace(path, marks[path], part.chunks, part.since)
            else:
                await self._index.patch(path, marks[path], part)
            known[path] = marks[path]
            self._stale.discard(path)

        async def note(path: str) -> None:
            await self._index.extend(path, marks[path], ())
            known[path] = marks[path]

        try:
            async with asyncio.TaskGroup() as tasks:  # concurrent: one commit for all
                for path, part in parts.items():
                    tasks.create_task(replace(path, part))
                for path in touched:
                    if path in stamps and known[path] != marks[path]:
                        tasks.create_task(note(path))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _parts(
        self, views: Sequence[FileView], known: Mapping[str, str], becomes: Mapping[str, str]
    ) -> dict[str, NoteTail | Sequence[LinePatch[Chunk]]]:
        """Return by path what has to be indexed anew, without the files that could not be cut."""
        held = {view.path: known.get(view.path, "").partition("@")[0] for view in views}

        def cut() -> dict[str, NoteTail | Sequence[LinePatch[Chunk]]]:
            found = {v.path: self._cut(v, held[v.path], becomes[v.path]) for v in views}
            return {path: part for path, part in found.items() if part is not None}

        if sum(len(view.text) for view in views) <= _SHORT:
            return cut()
        return await asyncio.to_thread(cut)

    def _digest(self, view: FileView) -> str:
        day = self._days.get(view.path)
        return f"{self._way(view)}{view.digest}{f'/{day}' if day else ''}"

    def _changed_on(self, entry: TreeEntry) -> date | None:
        """Return the day of the last change; None if the file system's time stamp is beyond the
        calendar.
        """
        try:
            return datetime.fromtimestamp(entry.mtime_ns / 1e9, self._clock.zone).date()
        except (OverflowError, ValueError, OSError):
            return None

    def _way(self, file: FileView | TreeEntry) -> str:
        """Return the prefix of a file's digest: its chunker, its audience, and whether it is dated
        by its last change.
        """
        scope = _SHARED if file.is_shared else ":owner:"
        ages = "aging:" if file.path.startswith(self._aging) else ""
        return f"{self._chunker(file.path).identity}{scope}{ages}"

    def _chunker(self, path: str) -> Chunker:
        return chunker_for(path, self._chunkers.get(path, self._chunkers[""]))

    def _by_path(self, chunker: Chunker) -> Mapping[str, Chunker]:
        """Return the chunkers of shipped files by path, and under "" the chunker of all other
        files.
        """
        own = {path: without_boilerplate(chunker, lines) for path, lines in self._shipped.items()}
        return {"": chunker, **own}

    def _stamps_of(
        self, known: Mapping[str, str], entries: Mapping[str, TreeEntry]
    ) -> dict[str, _Stamp]:
        """Return the stored stamps of the files that are indexed with the present chunkers."""
        noted = {}
        for path, entry in entries.items():
            digest, _, stamp = known.get(path, "").partition("@")
            if stamp and digest.startswith(self._way(entry)):
                noted[path] = tuple(map(int, stamp.split(",")))
        return noted

    def _cut(
        self, view: FileView, indexed: str, becomes: str
    ) -> NoteTail | Sequence[LinePatch[Chunk]] | None:
        """Return what has to be indexed anew of a file; None if it could not be cut."""
        try:
            part = self._growing.cut(view, self._note_way(view), indexed, becomes)
        except Exception:
            # One file must not keep the others out of the index; this one is tried again at the
            # next scan.
            log.exception("note_not_indexed", path=view.path)
            self._faulty.add(view.path)
            return None
        self._faulty.discard(view.path)
        return part

    def _note_way(self, view: FileView) -> NoteCutting:
        scope = SHARED if view.is_shared else OWNERS
        return NoteCutting(self._chunker(view.path), scope, self._days.get(view.path))

    async def _forget(self, paths: Iterable[str], known: dict[str, str]) -> None:
        paths = tuple(paths)
        self._faulty.difference_update(paths)
        gone = [path for path in paths if path in known]
        if gone:
            await self._index.remove(gone)
        for path in gone:
            del known[path]
            self._stamps.pop(path, None)
            self._stale.discard(path)


def _suffix(stamp: _Stamp | None) -> str:
    """Return the stamp as it is stored after a file's digest; "" without one."""
    return f"@{','.join(map(str, stamp))}" if stamp else ""
