"""Doubles of every port, for agentd's tests and for those of its extensions. Never used by the daemon."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import itertools
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agentd.domain.event import TurnEvent
from agentd.domain.health import Problem
from agentd.domain.message import Message, ToolUse, assistant
from agentd.domain.prompt import Answered, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.domain.tool import Approval, FileAction, FileIntent
from agentd.domain.turn import Kind, SessionKey, Usage
from agentd.domain.workspace import FileView, Reader, TreeEntry
from agentd.errors import EditConflict, FileMissing, FileUnreadable, PathRefused

Reply = str | Message | Exception | Callable[[Prompt], "Reply"]

_SMALL = Usage(input_tokens=10, output_tokens=5)


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(
        self, now: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC), zone: str = "UTC"
    ) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._zone = ZoneInfo(zone)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._ids = itertools.count()

    @property
    def zone(self) -> ZoneInfo:
        return self._zone

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._ids), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many wait."""
        return sum(not f.done() for _, _, f in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking sleepers in order at their own moments."""
        end = self._monotonic + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._move(max(0.0, at - self._monotonic))
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._move(end - self._monotonic)
        await self.settle()

    def jump(self, delta: timedelta) -> None:
        """Move the wall clock alone: a suspend, an NTP step, a user with a screwdriver."""
        self._now += delta

    @staticmethod
    async def settle(rounds: int = 50) -> None:
        """Let everything that can run do so."""
        for _ in range(rounds):
            await asyncio.sleep(0)

    def _move(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


class ScriptedProvider:
    """A provider that says what it was told to, in order, and remembers every prompt.

    A reply is text, a Message (tool calls stop with TOOL_USE), an exception to raise, or a function
    of the prompt that returns one of these. When the script is used up `default` answers.
    """

    def __init__(
        self,
        *replies: Reply,
        default: Reply = "ok",
        usage: Callable[[Prompt, Message], Usage] | Usage = _SMALL,
        name: str = "scripted",
        model: str = "scripted-1",
    ) -> None:
        self.script: list[Reply] = list(replies)
        self.default = default
        self.prompts: list[Prompt] = []
        self._usage = usage
        self._name = name
        self._model = model

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._model

    def say(self, *replies: Reply) -> None:
        """Add to the script."""
        self.script.extend(replies)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        self.prompts.append(prompt)
        reply = self.script.pop(0) if self.script else self.default
        while callable(reply):
            reply = reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        message = assistant(reply) if isinstance(reply, str) else reply
        for word in message.text.split(" ") if message.text else []:
            await asyncio.sleep(0)
            yield TextDelta(word if message.text.startswith(word) else f" {word}")
        usage = self._usage(prompt, message) if callable(self._usage) else self._usage
        stop = ModelStop.TOOL_USE if message.tool_uses else ModelStop.END_TURN
        yield Answered(message, stop, usage, self._model, self._name)


def call(name: str, call_id: str = "call_1", text: str = "", **arguments: object) -> Message:
    """An assistant message that calls one tool."""
    return assistant(text, ToolUse(call_id, name, arguments))


class RecordingSink:
    """An event sink that keeps what it was given."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    def emit(self, event: TurnEvent) -> None:
        self.events.append(event)

    def of(self, *types: type) -> list[TurnEvent]:
        """The events of these types."""
        return [e for e in self.events if isinstance(e, types)]


class Answers:
    """An approver that answers from a list, then with `default`, and keeps the questions."""

    def __init__(self, *answers: bool, default: bool = True) -> None:
        self._answers: Iterable[bool] = iter(answers)
        self._default = default
        self.questions: list[Approval] = []

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> bool:
        self.questions.append(approval)
        return next(iter(self._answers), self._default)


class MemoryWorkspace:
    """A workspace in a dictionary of bytes. Everything below `memory/`, USER.md and MEMORY.md is the
    owner's alone; a name that begins with `@` belongs to another scope and cannot be written.
    """

    _PROTECTED = frozenset(
        f"{name}.md"
        for name in (
            *("soul", "agents", "user", "identity", "tools"),
            *("heartbeat", "bootstrap", "memory", "readme"),
        )
    )

    def __init__(
        self, files: Mapping[str, str] | None = None, clock: FakeClock | None = None
    ) -> None:
        self.files = {path: text.encode() for path, text in (files or {}).items()}
        self.reads: list[str] = []
        self._clock = clock or FakeClock()
        self._seen: set[tuple[str, str, str]] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    def text(self, path: str) -> str:
        """A file as it stands."""
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

    def daily_note(self) -> str:
        return f"memory/{self._clock.now().astimezone(self._clock.zone):%Y-%m-%d}.md"

    async def read(self, path: str, reader: Reader) -> FileView:
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
        self._seen.add((reader.session, path, _digest(data)))
        return FileView(path, text, _digest(data))

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
                found[entry] = TreeEntry(entry, 0 if is_dir else len(self.files[name]), is_dir)
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
        offset = len(old or b"")
        return FileIntent(path, action, before, _digest((old or b"") + data), data, offset)

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        return not digest or (reader.session, path, digest) in self._seen

    async def apply(self, intent: FileIntent, reader: Reader) -> None:
        assert self._locks[intent.path].locked(), "apply needs the path's lock"
        old = self.files.get(intent.path)
        append = intent.action is FileAction.APPEND
        same = len(old or b"") >= intent.offset if append else _state(old) == intent.before
        if not same:
            msg = f"{intent.path} has changed"
            raise EditConflict(msg)
        if intent.action is FileAction.DELETE:
            del self.files[intent.path]
            return
        new = (old or b"") + intent.data if append else intent.data
        self.files[intent.path] = new
        self._seen.add((reader.session, intent.path, _digest(new)))

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
        private = path.startswith("memory/") or path.casefold() in {"user.md", "memory.md"}
        return reader.kind is Kind.MAIN or not private


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _state(data: bytes | None) -> str:
    return "" if data is None else _digest(data)
