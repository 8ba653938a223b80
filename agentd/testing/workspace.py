"""A double of the workspace."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from agentd.core.errors import (
    EditConflict,
    FileMissing,
    FileUnreadable,
    PathRefused,
    WorkspaceError,
)
from agentd.core.health import Problem
from agentd.core.outside import is_marked
from agentd.core.tool import (
    FileAction,
    FileIntent,
)
from agentd.core.turn import (
    MAIN,
    SessionKind,
)
from agentd.core.workspace import FACTS_PATH, OWNER, Author, FileView, Reader, TreeEntry
from agentd.testing.clock import FakeClock

_SHARED = "shared/"


class MemoryWorkspace:
    """A workspace in memory, with the contents of files as bytes. Only what is below `shared/` may
    be read by others than the owner. A path that begins with `@` belongs to another scope and
    cannot be written.
    """

    _PROTECTED = frozenset(
        f"{name}.md"
        for name in (
            "soul",
            "agents",
            "user",
            "identity",
            "tools",
            "heartbeat",
            "bootstrap",
            "memory",
            "readme",
        )
    )

    def __init__(
        self, files: Mapping[str, str] | None = None, clock: FakeClock | None = None
    ) -> None:
        self.files = {path: text.encode() for path, text in (files or {}).items()}
        self.reads: list[str] = []
        self.authors: list[Author] = []
        self._clock = clock or FakeClock()
        self._seen: set[tuple[str, str, str]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._outside: dict[str, frozenset[str]] = {}
        self._named: set[str] = set()
        self._lives: Counter[str] = Counter()

    def text(self, path: str) -> str:
        """Return the present text of a file."""
        return self.files[path].decode()

    def canonical(self, path: str) -> str:
        spelled = unicodedata.normalize("NFC", path)
        parts = [part for part in spelled.split("/") if part not in ("", ".")]
        if not parts or spelled.startswith("/") or ".." in parts or "\0" in spelled:
            msg = f"{path!r} is not a path inside the workspace"
            raise PathRefused(msg)
        return "/".join(["memory", *parts[1:]] if parts[0] == "daily" else parts)

    def is_protected(self, path: str) -> bool:
        return path.casefold() in self._PROTECTED

    def is_injected(self, path: str) -> bool:
        return self.is_protected(path) or self.canonical(path).startswith(("memory/2", FACTS_PATH))

    def is_owner_only(self, path: str) -> bool:
        return not self._may_see(self.canonical(path), Reader(MAIN, SessionKind.GROUP))

    def daily_note(self) -> str:
        return f"memory/{self._clock.now().astimezone(self._clock.zone):%Y-%m-%d}.md"

    async def read(self, path: str, reader: Reader) -> FileView:
        view = self._view(path, reader)
        self._seen.add((reader.session, view.path, view.digest))
        return view

    async def read_damaged(self, path: str, reader: Reader) -> FileView:
        try:
            return await self.read(path, reader)
        except FileUnreadable:
            data = self.files[self.canonical(path)]
            if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise
            return FileView(
                self.canonical(path), data.decode(errors="surrogateescape"), _digest(data)
            )

    async def look(
        self, paths: Sequence[str], reader: Reader
    ) -> Sequence[FileView | WorkspaceError]:
        found: list[FileView | WorkspaceError] = []
        for path in paths:
            try:
                found.append(self._view(path, reader))
            except WorkspaceError as error:
                found.append(error)
        return found

    def _view(self, path: str, reader: Reader) -> FileView:
        path = self.canonical(path)
        self.reads.append(path)
        data = self.files.get(path)
        if data is None or not self._may_see(path, reader):
            msg = f"there is no file {path}"
            raise FileMissing(msg)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            msg = f"{path} is not UTF-8"
            raise FileUnreadable(msg) from None
        return FileView(path, text, _digest(data), path.startswith(_SHARED))

    async def tree(self, path: str, depth: int, reader: Reader) -> tuple[TreeEntry, ...]:
        base = f"{self.canonical(path)}/" if path else ""
        found: dict[str, TreeEntry] = {}
        for name in sorted(self.files):
            if not name.startswith(base) or not self._may_see(name, reader):
                continue
            parts = name.removeprefix(base).split("/")
            for level in range(1, min(len(parts), depth) + 1):
                is_dir = level < len(parts)
                entry = base + "/".join(parts[:level]) + ("/" if is_dir else "")
                size, is_shared = 0 if is_dir else len(self.files[name]), entry.startswith(_SHARED)
                found[entry] = TreeEntry(entry, size, is_dir, is_shared=is_shared)
        return tuple(found[entry] for entry in sorted(found))

    async def exists(self, path: str, reader: Reader) -> bool:
        path = self.canonical(path)
        return path in self.files and self._may_see(path, reader)

    @asynccontextmanager
    async def lock(self, path: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(path, asyncio.Lock()):
            yield

    async def plan(self, path: str, action: FileAction, data: bytes) -> FileIntent:
        path = self.canonical(path)
        if path.startswith("@"):
            msg = f"{path} belongs to another scope"
            raise PathRefused(msg)
        old = self.files.get(path)
        before = "" if old is None else _digest(old)
        if action is FileAction.DELETE:
            if old is None:
                msg = f"there is no file {path}"
                raise FileMissing(msg)
            return FileIntent(path, action, before, "", b"")
        if action is FileAction.WRITE:
            return FileIntent(path, action, before, _digest(data), data)
        start = old or b""
        if start and data and not start.endswith(b"\n"):
            data = b"\n" + data
        return FileIntent(path, action, before, _digest(start + data), data, len(start))

    async def life(self, path: str) -> str:
        return f"life {self._lives[path]}" if self.files.get(path, b"").strip() else ""

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        return not digest or (reader.session, path, digest) in self._seen

    async def apply(self, intent: FileIntent, reader: Reader, by: Author = OWNER) -> None:
        assert self._locks[intent.path].locked(), "apply needs the path's lock"
        self.authors.append(by)
        old = self.files.get(intent.path)
        append = intent.action is FileAction.APPEND
        same = len(old or b"") >= intent.offset if append else _state(old) == intent.before
        if not same:
            msg = f"{intent.path} has changed"
            raise EditConflict(msg)
        if intent.action is FileAction.DELETE:
            del self.files[intent.path]
            self._lives[intent.path] += 1
            return
        new = (old or b"") + intent.data if append else intent.data
        self.files[intent.path] = new
        if by.tainted:
            brought = frozenset(filter(None, intent.data.decode().split("\n")))
            self._outside[intent.path] = self._outside.get(intent.path, frozenset()) | brought
        elif by.approved:
            self._outside.pop(intent.path, None)
        self._seen.add((reader.session, intent.path, _digest(new)))

    async def outside(self, path: str, lines: Sequence[str]) -> Sequence[bool]:
        brought = self._outside.get(self.canonical(path), frozenset())
        return [path.startswith("@") or is_marked(line) or line in brought for line in lines]

    async def has_outside_name(self, paths: Sequence[str]) -> bool:
        if not self._named.isdisjoint(paths):
            return True
        return any(path.startswith("@") and path.rstrip("/").count("/") for path in paths)

    async def record_outside_names(self, paths: Sequence[str]) -> None:
        self._named.update(paths)

    async def inspect(self, intent: FileIntent) -> str:
        old = self.files.get(intent.path)
        if intent.action is FileAction.APPEND:
            tail = (old or b"")[intent.offset :]
            if intent.data in tail:
                return "after"
            return "other" if len(old or b"") < intent.offset else "before"
        if _state(old) == intent.after:
            return "after"
        return "before" if _state(old) == intent.before else "other"

    def problems(self) -> tuple[Problem, ...]:
        return ()

    @staticmethod
    def _may_see(path: str, reader: Reader) -> bool:
        return reader.kind is SessionKind.OWNER or path.startswith(_SHARED)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _state(data: bytes | None) -> str:
    return "" if data is None else _digest(data)
