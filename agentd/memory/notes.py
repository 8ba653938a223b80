"""The part of the index that holds the workspace's markdown files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agentd.domain.health import Problem
from agentd.domain.memory import Source
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import Reader, TreeEntry
from agentd.errors import FileMissing, FileUnreadable, PathRefused
from agentd.memory.chunks import chunks_of_note
from agentd.ports import Clock, MemoryIndex, Workspace

MAX_BYTES = 1024 * 1024
_DEPTH = 32
_FORMAT = "1"  # of the chunks: another one makes every file be indexed anew
_FRESH_NS = 2 * 10**9  # a time stamp this young may hide a second change
_OWNER = Reader(SessionKey("indexer"), Kind.MAIN)
_OTHERS = Reader(SessionKey("indexer"), Kind.GROUP)


class NoteIndexer:
    """Brings the index level with the files. A file whose size and time are as before is not read."""

    def __init__(self, index: MemoryIndex, workspace: Workspace, clock: Clock) -> None:
        self._index = index
        self._workspace = workspace
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: dict[str, str] | None = None
        self._stamps: dict[str, tuple[int, int]] = {}
        self._problems: dict[str, Problem] = {}

    async def sync(self) -> None:
        """Look at every file. Raises StorageError."""
        async with self._lock:
            if self._known is None:
                self._known = dict(await self._index.digests(Source.NOTES))
            entries = await self._entries()
            for entry in entries.values():
                await self._visit(entry, self._known)
            await self._forget(self._known.keys() - entries.keys(), self._known)
            self._problems = {p: why for p, why in self._problems.items() if p in entries}

    def reset(self) -> None:
        """The index was emptied: begin again."""
        self._known = None
        self._stamps.clear()

    def problems(self) -> tuple[Problem, ...]:
        """Files that are not in the index."""
        return tuple(self._problems.values())

    async def _entries(self) -> dict[str, TreeEntry]:
        found = list(await self._workspace.tree("", _DEPTH, _OWNER))
        listed = {entry.path for entry in found}
        for scope in [e.path for e in found if e.is_dir and _is_scope(e.path)]:
            if not any(path != scope and path.startswith(scope) for path in listed):
                found += await self._workspace.tree(scope.rstrip("/"), _DEPTH, _OWNER)
        return {e.path: e for e in found if not e.is_dir and e.path.casefold().endswith(".md")}

    async def _visit(self, entry: TreeEntry, known: dict[str, str]) -> None:
        path, stamp = entry.path, (entry.size, entry.mtime_ns)
        if self._stamps.get(path) == stamp:
            return
        now_ns = int(self._clock.now().timestamp()) * 10**9
        self._stamps.pop(path, None)
        self._problems.pop(path, None)
        if entry.size > MAX_BYTES:
            text = f"{path} has {entry.size} bytes; files over 1 MiB are not searched"
            self._problems[path] = Problem("note_too_large", text, "Split the file.")
            await self._forget([path], known)
            return
        try:
            view = await self._workspace.read(path, _OWNER)
            shared = await self._workspace.exists(path, _OTHERS)
        except FileMissing:
            await self._forget([path], known)
            return
        except (FileUnreadable, PathRefused) as error:
            self._problems[path] = Problem("note_unreadable", error.message, error.cure)
            await self._forget([path], known)
            return
        digest = f"{_FORMAT}{'s' if shared else 'o'}:{view.digest}"
        if known.get(path) != digest:
            chunks = chunks_of_note(path, view.text, owner_only=not shared)
            await self._index.replace(path, digest, chunks)
            known[path] = digest
        if 0 < entry.mtime_ns < now_ns - _FRESH_NS:
            self._stamps[path] = stamp

    async def _forget(self, paths: Iterable[str], known: dict[str, str]) -> None:
        gone = [path for path in paths if path in known]
        if gone:
            await self._index.remove(gone)
        for path in gone:
            del known[path]
            self._stamps.pop(path, None)


def _is_scope(path: str) -> bool:
    return path.startswith("@") and path.count("/") == 1
