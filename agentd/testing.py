"""Doubles of every port, for agentd's tests and for those of its extensions. Never used by the daemon."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import itertools
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agentd.domain.alert import Alert, Delivery, DeliveryState, NewAlert
from agentd.domain.beat import Beat, HeartbeatState, ItemState, Outcome, Reason
from agentd.domain.choices import Choices
from agentd.domain.event import TurnEvent
from agentd.domain.health import Problem
from agentd.domain.job import Ending, Job, JobOutcome, JobReason, JobRun, NewJob, Step
from agentd.domain.memory import Chunk, Found, Hit, IndexState, Source
from agentd.domain.message import Message, Text, ToolResult, ToolUse, assistant, encode_blocks
from agentd.domain.money import Cap, Charge
from agentd.domain.prompt import Answered, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.domain.tool import (
    Approval,
    Decision,
    FileAction,
    FileIntent,
    Intent,
    OpenCall,
    ToolOutput,
)
from agentd.domain.transcript import Coverage, History, NewRow, Row, RowRole, SessionInfo
from agentd.domain.turn import (
    DELETED,
    MAIN,
    Kind,
    Origin,
    PendingTurn,
    Receipt,
    SessionKey,
    Turn,
    TurnRequest,
    TurnState,
    Usage,
)
from agentd.domain.workspace import FileView, Reader, TreeEntry
from agentd.errors import (
    BudgetReached,
    Busy,
    EditConflict,
    FileMissing,
    FileUnreadable,
    InvalidRequest,
    NotFound,
    PathRefused,
)
from agentd.ports import Clock

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
    of the prompt that returns one of these. When the script is used up `default` answers. A prompt
    that the Messages API would refuse is an AssertionError.
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
        check_messages(prompt.messages)
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

    def __init__(self, *answers: Decision, default: Decision = Decision.ALWAYS) -> None:
        self._answers: Iterable[Decision] = iter(answers)
        self._default = default
        self.questions: list[Approval] = []

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
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

    def is_owner_only(self, path: str) -> bool:
        return not self._may_see(self.canonical(path), Reader(MAIN, Kind.GROUP))

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


def check_messages(messages: Iterable[Message]) -> None:
    """AssertionError if the Messages API would refuse these.

    Messages without blocks, and blocks of other providers, are left out as a provider does.
    """
    check_api_messages(
        [{"role": str(m.role), "content": encode_blocks(m.blocks)} for m in messages if m.blocks]
    )


def check_api_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """AssertionError if the Messages API would refuse this array, saying where and why.

    Neighbours of one role count as one message, as they do there.
    """
    turns = _api_turns(messages)
    assert turns, "no messages"
    assert turns[0][0] == "user", "the first message is not the user's"
    seen: set[str] = set()
    asked: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert not results or role == "user", f"message {number}: a tool result of the assistant"
        assert sorted(results) == sorted(asked), (
            f"message {number}: {asked} must be answered here, {results} are"
        )
        leading = [b["type"] == "tool_result" for b in blocks[: len(results)]]
        assert all(leading), f"message {number}: something stands before the tool results"
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not asked or role == "assistant", f"message {number}: a tool call of the user"
        twice = [i for i in asked if i in seen or asked.count(i) > 1]
        assert not twice, f"message {number}: the ids {twice} are used again"
        seen.update(asked)
    assert not asked, f"the last message asks for {asked} and nothing answers"


def _api_turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    turns: list[tuple[str, list[Mapping[str, Any]]]] = []
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        assert role in ("user", "assistant"), f"message {number}: {role!r} is no role"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        assert blocks, f"message {number} is empty"
        for block in blocks:
            blank = block["type"] == "text" and not block["text"].strip()
            assert not blank, f"message {number}: a text without a visible character"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    return turns


@dataclass
class _MemorySession:
    info: SessionInfo
    history: History  # everything but the rows
    rows: list[Row] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)


@dataclass
class _MemoryTurn:
    id: int
    request: TurnRequest
    at: datetime
    state: TurnState = TurnState.RECEIVED
    attempts: int = 0
    rows: list[Row] = field(default_factory=list)
    ended: Turn | None = None
    intents: dict[str, Intent] = field(default_factory=dict)
    outputs: dict[str, ToolOutput] = field(default_factory=dict)

    @property
    def is_silent(self) -> bool:
        return self.request.origin is not Origin.USER


class MemorySessions:
    """A SessionStore and Journal that forgets everything at the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[SessionKey, _MemorySession] = {}
        self._turns: list[_MemoryTurn] = []

    async def receive(self, request: TurnRequest) -> Receipt:
        try:
            f"{request.text}{request.message_id}{request.session}".encode()
        except UnicodeEncodeError:
            raise InvalidRequest("the message holds half of a surrogate pair") from None
        key, message_id = request.session, request.message_id
        for turn in self._turns:
            if (turn.request.session, turn.request.message_id) == (key, message_id):
                return Receipt(turn.id, key, message_id, turn.id, is_new=False, ended=turn.ended)
        self._make(key)
        turn = _MemoryTurn(len(self._turns) + 1, request, at=self._clock.now())
        self._turns.append(turn)
        return Receipt(turn.id, key, message_id, turn.id, is_new=True)

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        turn = self._open(turn_id)
        turn.attempts += 1
        if turn.state is TurnState.RECEIVED:
            turn.state = TurnState.RUNNING
            self._add(turn, NewRow(RowRole.USER, (Text(turn.request.text),)))
        return tuple(turn.rows)

    async def append(self, turn_id: int, row: NewRow) -> Row:
        return self._add(self._open(turn_id), row)

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        stored = self._open(turn_id)
        if stored.state is TurnState.RECEIVED:
            self._add(stored, NewRow(RowRole.USER, (Text(stored.request.text),)))
        added = tuple(self._add(stored, row) for row in rows)
        stored.ended = turn
        stored.state = TurnState.FAILED if turn.failure else TurnState.DONE
        stored.rows.clear()
        stored.intents.clear()
        stored.outputs.clear()
        return added

    async def park(self, turn_id: int) -> None:
        turn = self._turns[turn_id - 1]
        turn.attempts = max(0, turn.attempts - (turn.ended is None))

    async def pending(self) -> tuple[PendingTurn, ...]:
        return tuple(
            PendingTurn(t.id, t.request, t.id, t.state, t.attempts)
            for t in self._turns
            if t.ended is None
        )

    async def load(self, session: SessionKey) -> History:
        found = self._sessions.get(session)
        if found is None:
            return History(session)
        rows = [r for r in found.rows if r.seq >= found.history.context_from]
        return replace(found.history, rows=_without_summaries(rows))

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        return self._store(
            self._require(session), NewRow(RowRole.NOTICE, (Text(text),), tag=tag), None
        )

    async def swap(
        self, session: SessionKey, generation: int, keep_from: int, summary: str
    ) -> bool:
        found = self._require(session)
        if found.history.generation != generation:
            return False
        if summary:
            self._store(found, NewRow(RowRole.SUMMARY, (Text(summary),)), None)
        found.history = replace(
            found.history,
            generation=generation + 1,
            context_from=keep_from,
            summary=summary,
            swapped_at=found.info.rows,
        )
        found.info = replace(found.info, generation=generation + 1)
        return True

    async def cover(self, session: SessionKey, coverage: Coverage) -> None:
        found = self._require(session)
        found.coverages.append(coverage)
        covered_to = max(found.history.covered_to, coverage.last)
        found.history = replace(
            found.history, covered_to=covered_to, flush_failures=0, flush_due=False
        )
        found.info = replace(found.info, flush_due=False)

    async def flush_failed(self, session: SessionKey, reason: str) -> int:
        found = self._require(session)
        failures = found.history.flush_failures + 1
        found.history = replace(found.history, flush_failures=failures)
        return failures

    async def last_asked(self, session: SessionKey, start: str) -> str:
        requests = (t.request for t in reversed(self._turns))
        mine = (r for r in requests if (r.session, r.origin) == (session, Origin.FLUSH))
        return next((r.message_id for r in mine if r.message_id.startswith(start)), "")

    async def coverages(self, session: SessionKey) -> tuple[Coverage, ...]:
        found = self._sessions.get(session)
        return tuple(found.coverages) if found else ()

    async def set_flush_due(self, sessions: Sequence[SessionKey]) -> None:
        for found in (self._sessions[k] for k in sessions if k in self._sessions):
            found.history = replace(found.history, flush_due=True)
            found.info = replace(found.info, flush_due=True)

    async def create(self, session: SessionKey, cwd: str = "") -> bool:
        return self._make(session, cwd) and session != MAIN

    async def exists(self, session: SessionKey) -> bool:
        return session == MAIN or session in self._sessions

    async def sessions(self) -> tuple[SessionInfo, ...]:
        stored = reversed(self._sessions.values())
        newest = [s.info for s in stored if not s.info.key.startswith("heartbeat:")]
        newest.sort(key=lambda info: info.updated_at, reverse=True)
        if MAIN not in self._sessions:
            now = self._clock.now()
            newest.append(SessionInfo(MAIN, "", now, now, 0, 0, 0, 0))
        return tuple(newest)

    async def rows(
        self, session: SessionKey, first: int = 1, limit: int | None = None
    ) -> tuple[Row, ...]:
        if session not in self._sessions and session != MAIN:
            raise NotFound(f"there is no session {session!r}")
        stored = self._sessions[session].rows if session in self._sessions else []
        found = [r for r in stored if r.seq >= first]
        return tuple(found if limit is None else found[:limit])

    async def recent(self, session: SessionKey, turns: int) -> tuple[Row, ...]:
        if session not in self._sessions or turns < 1:
            return ()
        stored = self._sessions[session].rows
        opening = [r.seq for r in stored if _opens_turn(r)]
        start = opening[-turns] if len(opening) >= turns else 1
        return _without_summaries(stored[start - 1 :])

    async def add_rows(self, session: SessionKey, rows: Sequence[tuple[NewRow, datetime]]) -> int:
        self._make(session)
        found = self._sessions[session]
        if found.rows:
            raise Busy(f"session {session!r} has messages already")
        for row, at in rows:
            self._store(found, row, None, at)
        return len(rows)

    async def last_heard(self) -> tuple[datetime, str] | None:
        mine = (
            (t.at, t.request.client)
            for t in reversed(self._turns)
            if not t.is_silent and t.request.kind is Kind.MAIN
        )
        return next(mine, None)

    async def choices(self, session: SessionKey) -> Choices:
        found = self._sessions.get(session)
        return found.history.choices if found else Choices()

    async def choose(self, session: SessionKey, choices: Choices) -> None:
        found = self._require(session)
        found.history = replace(found.history, choices=choices)

    async def fork(self, session: SessionKey, copy: SessionKey, cwd: str = "") -> None:
        found = self._require(session)
        if copy in self._sessions:
            raise Busy(f"there is a session {copy!r} already")
        running = {t.id for t in self._turns if t.ended is None}
        last = next((r.seq - 1 for r in found.rows if r.turn_id in running), len(found.rows))
        self._make(copy, cwd or found.info.cwd)
        made = self._sessions[copy]
        made.rows = [replace(row, turn_id=None) for row in found.rows[:last]]
        made.coverages = [c for c in found.coverages if c.last <= last]
        made.history = replace(
            found.history,
            session=copy,
            covered_to=min(found.history.covered_to, last),
            flush_failures=0,
            flush_due=False,
        )
        made.info = replace(
            found.info,
            key=copy,
            cwd=made.info.cwd,
            created_at=made.info.created_at,
            updated_at=made.info.updated_at,
            rows=last,
            turns=sum(map(_opens_turn, made.rows)),
            flush_due=False,
        )

    async def delete(self, session: SessionKey) -> None:
        found = self._require(session)
        mine = [t for t in self._turns if t.request.session == session]
        if any(t.ended is None for t in mine):
            raise Busy(f"a turn of session {session!r} has not ended")
        for turn in mine:  # its number is never given out again
            turn.request = replace(turn.request, session=DELETED, text="", message_id="")
        del self._sessions[session]
        if session == MAIN:
            self._make(MAIN)
            generation = found.history.generation + 1
            main = self._sessions[MAIN]
            main.history = replace(main.history, generation=generation)
            main.info = replace(main.info, generation=generation)

    async def intend(self, turn_id: int, intent: Intent) -> None:
        self._turns[turn_id - 1].intents[intent.call.id] = intent

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        self._turns[turn_id - 1].outputs[call_id] = output

    async def outputs(self, turn_id: int) -> Mapping[str, ToolOutput]:
        return dict(self._turns[turn_id - 1].outputs)

    async def open_calls(self) -> tuple[OpenCall, ...]:
        return tuple(
            OpenCall(turn.id, call_id, intent)
            for turn in self._turns
            for call_id, intent in turn.intents.items()
            if call_id not in turn.outputs
        )

    def _make(self, key: SessionKey, cwd: str = "") -> bool:
        if key in self._sessions:
            return False
        now = self._clock.now()
        info = SessionInfo(key, "", now, now, 0, 0, 0, 0, cwd)
        self._sessions[key] = _MemorySession(info, History(key))
        return True

    def _require(self, key: SessionKey) -> _MemorySession:
        if key == MAIN:
            self._make(key)
        if key not in self._sessions:
            raise NotFound(f"there is no session {key!r}")
        return self._sessions[key]

    def _open(self, turn_id: int) -> _MemoryTurn:
        if not 1 <= turn_id <= len(self._turns):
            raise NotFound(f"there is no turn {turn_id}")
        turn = self._turns[turn_id - 1]
        if turn.ended is not None:
            raise InvalidRequest(f"turn {turn_id} has ended already")
        return turn

    def _add(self, turn: _MemoryTurn, new: NewRow) -> Row:
        if turn.is_silent:
            row = _row(new, len(turn.rows) + 1, self._clock.now(), turn.id)
        else:
            row = self._store(self._sessions[turn.request.session], new, turn.id)
        turn.rows.append(row)
        return row

    def _store(
        self, found: _MemorySession, new: NewRow, turn_id: int | None, at: datetime | None = None
    ) -> Row:
        row = _row(new, len(found.rows) + 1, at or self._clock.now(), turn_id)
        found.rows.append(row)
        opens = _opens_turn(row)
        title = row.text.strip().split("\n", 1)[0][:80] if opens else ""
        tokens = row.usage.context_tokens if row.usage else found.info.context_tokens
        found.info = replace(
            found.info,
            title=found.info.title or title,
            updated_at=row.at,
            rows=row.seq,
            turns=found.info.turns + opens,
            context_tokens=tokens,
        )
        return row


def _row(new: NewRow, seq: int, at: datetime, turn_id: int | None) -> Row:
    return Row(seq, new.role, new.blocks, at, turn_id, new.provider, new.usage, new.tag)


def _opens_turn(row: Row) -> bool:
    return row.role is RowRole.USER and not any(isinstance(b, ToolResult) for b in row.blocks)


def _without_summaries(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(r for r in rows if r.role is not RowRole.SUMMARY)


class MemoryLedger:
    """A Ledger in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.charges: list[tuple[datetime, SessionKey, Origin, str, Usage, float]] = []

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        for cap in caps:
            tokens, usd = await self.spent(cap.since, cap.origin)
            over_usd = cap.usd is not None and usd + cost_usd > cap.usd
            if over_usd or (cap.tokens is not None and tokens + usage.total_tokens > cap.tokens):
                msg = f"{cap.name} is reached"
                raise BudgetReached(msg)
        entry = (self._clock.now(), SessionKey(""), origin, model, usage, cost_usd)
        self.charges.append(entry)
        return len(self.charges)

    async def charge(
        self,
        session: SessionKey,
        origin: Origin,
        model: str,
        usage: Usage,
        cost_usd: float,
        *,
        reservation: int | None = None,
    ) -> None:
        if reservation is None:
            self.charges.append((self._clock.now(), session, origin, model, usage, cost_usd))
        else:
            at = self.charges[reservation - 1][0]
            self.charges[reservation - 1] = (at, session, origin, model, usage, cost_usd)

    async def spent(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        counted = [c for c in self.charges if c[0] >= since and origin in (None, c[2])]
        return sum(c[4].total_tokens for c in counted), sum(c[5] for c in counted)

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        sums: dict[tuple[SessionKey, Origin], tuple[int, float]] = {}
        for at, session, origin, _, usage, usd in self.charges:
            if at >= since:
                tokens, cost = sums.get((session, origin), (0, 0.0))
                sums[session, origin] = (tokens + usage.total_tokens, cost + usd)
        rows = ((*key, *value) for key, value in sums.items())
        return tuple(sorted(rows, key=lambda r: (-r[3], -r[2], r[0], r[1])))

    async def entries(self) -> tuple[Charge, ...]:
        return tuple(Charge(*c) for c in self.charges)

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        used = [c[4] for c in self.charges if c[0] >= since]
        return sum(u.cache_read_tokens for u in used), sum(u.context_tokens for u in used)


class MemoryOutbox:
    """An Outbox in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alerts: dict[int, Alert] = {}
        self._digests: dict[str, datetime] = {}
        self._pending: dict[tuple[int, str], tuple[datetime, int]] = {}

    async def put(self, alert: NewAlert) -> Alert | None:
        now = self._clock.now()
        before = self._digests.get(alert.digest)
        if before is not None and before > now - timedelta(hours=24):
            return None
        self._digests[alert.digest] = now
        delivered = dict.fromkeys(alert.sinks, DeliveryState.PENDING)
        new_id = len(self._alerts) + 1
        stored = Alert(new_id, now, alert.text, alert.origin, alert.to, delivered=delivered)
        self._alerts[new_id] = stored
        self._pending.update({(new_id, sink): (now, 0) for sink in delivered})
        return stored

    async def due(self) -> tuple[Delivery, ...]:
        now = self._clock.now()
        return tuple(
            Delivery(self._alerts[alert_id], sink, attempts)
            for (alert_id, sink), (at, attempts) in sorted(
                self._pending.items(), key=lambda p: (p[0][0], p[1][0], p[0][1])
            )
            if at <= now
        )

    async def next_due(self) -> datetime | None:
        return min((at for at, _ in self._pending.values()), default=None)

    async def sent(self, alert_id: int, sink: str) -> None:
        self._pending.pop((alert_id, sink), None)
        self._mark(alert_id, sink, DeliveryState.SENT)

    async def retry(self, alert_id: int, sink: str, after: timedelta | None) -> None:
        _, attempts = self._pending.pop((alert_id, sink))
        if after is None:
            self._mark(alert_id, sink, DeliveryState.FAILED)
        else:
            self._pending[alert_id, sink] = (self._clock.now() + after, attempts + 1)

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        newest = [a for a in reversed(self._alerts.values()) if not (unacked and a.acked)]
        return tuple(newest[:limit])

    async def ack(self, alert_id: int) -> Alert:
        if alert_id not in self._alerts:
            raise NotFound(f"there is no alert {alert_id}")
        self._alerts[alert_id] = replace(self._alerts[alert_id], acked=True)
        return self._alerts[alert_id]

    def _mark(self, alert_id: int, sink: str, state: DeliveryState) -> None:
        alert = self._alerts[alert_id]
        self._alerts[alert_id] = replace(alert, delivered={**alert.delivered, sink: state})


class MemoryJobs:
    """A JobStore in memory, which puts its alerts into `outbox`."""

    def __init__(self, clock: Clock, outbox: MemoryOutbox | None = None) -> None:
        self._clock = clock
        self._outbox = outbox or MemoryOutbox(clock)
        self._state = HeartbeatState()
        self._running: dict[int, Beat] = {}
        self._finished: dict[int, Beat] = {}
        self._items: dict[str, ItemState] = {}
        self._ids = itertools.count(1)

    async def heartbeat(self) -> HeartbeatState:
        return self._state

    async def schedule(self, next_due: datetime | None) -> None:
        self._state = replace(self._state, next_due=next_due)

    async def pause(self, until: datetime | None) -> None:
        self._state = replace(self._state, paused_until=until)

    async def begin_beat(
        self, due: datetime | None, next_due: datetime | None, file_hash: str
    ) -> int:
        await self.schedule(next_due)
        beat = self._beat(due, Outcome.FAILED, Reason.INTERRUPTED, file_hash)
        self._running[beat.id] = beat
        return beat.id

    async def end_beat(
        self,
        beat_id: int,
        outcome: Outcome,
        reason: Reason,
        *,
        text: str = "",
        tokens: int = 0,
        cost_usd: float = 0.0,
        done_items: Sequence[str] = (),
        alert: NewAlert | None = None,
    ) -> tuple[Beat, Alert | None]:
        if beat_id not in self._running:
            raise NotFound(f"there is no running beat {beat_id}")
        put = await self._outbox.put(alert) if alert else None
        if alert is not None and put is None:
            outcome, reason = Outcome.QUIET, Reason.DUPLICATE
        beat = replace(
            self._running.pop(beat_id),
            outcome=outcome,
            reason=reason,
            text=text,
            tokens=tokens,
            cost_usd=cost_usd,
        )
        self._finished[beat_id] = beat
        now = self._clock.now()
        for item in done_items:
            known = self._items.get(item, ItemState(item, now))
            self._items[item] = replace(known, last_done=now)
        return beat, put

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        await self.schedule(next_due)
        beat = self._beat(due, Outcome.SKIPPED, reason, file_hash)
        self._finished[beat.id] = beat
        return beat

    async def interrupt_beats(self) -> int:
        cut = len(self._running)
        self._finished.update(self._running)
        self._running.clear()
        return cut

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        newest = sorted(self._finished.values(), key=lambda b: -b.id)
        return tuple(newest[:limit])

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        now = self._clock.now()
        self._items = {h: self._items.get(h, ItemState(h, now)) for h in hashes}
        return dict(self._items)

    def _beat(self, due: datetime | None, outcome: Outcome, reason: Reason, file_hash: str) -> Beat:
        return Beat(next(self._ids), self._clock.now(), due, outcome, reason, file_hash=file_hash)


class MemoryJobBook:
    """A JobBook in memory, which puts its alerts into `outbox`."""

    def __init__(self, clock: Clock, outbox: MemoryOutbox | None = None) -> None:
        self._clock = clock
        self._outbox = outbox or MemoryOutbox(clock)
        self._jobs: dict[int, Job] = {}
        self._keys: dict[str, int] = {}
        self._runs: dict[int, JobRun] = {}
        self._running: set[int] = set()
        self._job_ids, self._run_ids = itertools.count(1), itertools.count(1)

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        if (known := await self.by_key(key)) is not None:
            return known
        if len(await self.jobs()) >= most:
            raise Busy(f"there are {most} jobs already")
        stored = Job(next(self._job_ids), job, self._clock.now(), next_due)
        self._jobs[stored.id] = stored
        if key:
            self._keys[key] = stored.id
        return stored

    async def by_key(self, key: str) -> Job | None:
        return self._jobs.get(self._keys.get(key, 0))

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        return tuple(job for job in self._jobs.values() if past or job.next_due is not None)

    async def get(self, job_id: int) -> Job:
        if job_id not in self._jobs:
            raise NotFound(f"there is no job {job_id}")
        return self._jobs[job_id]

    async def remove(self, job_id: int) -> Job:
        job = await self.get(job_id)
        del self._jobs[job_id]
        self._runs = {n: run for n, run in self._runs.items() if run.job_id != job_id}
        return job

    async def pass_over(self, step: Step) -> None:
        if step.job_id not in self._jobs:
            return
        if (missed := step.missed) is not None:
            late = Ending(JobOutcome.MISSED, JobReason.LATE)
            self._add_run(step.job_id, missed.first, missed.last, late)
        job = self._jobs[step.job_id]
        self._jobs[step.job_id] = replace(job, next_due=step.next_due)

    async def begin(self, step: Step) -> int | None:
        if step.job_id not in self._jobs:
            return None
        if step.due is not None:
            await self.pass_over(step)
            if any(r.job_id == step.job_id and r.due == step.due for r in self._used_runs()):
                return None
        job = self._jobs[step.job_id]
        self._jobs[step.job_id] = replace(job, runs=job.runs + 1)
        cut = Ending(JobOutcome.FAILED, JobReason.INTERRUPTED)
        run_id = self._add_run(step.job_id, step.due, None, cut)
        self._running.add(run_id)
        return run_id

    async def record(
        self, step: Step, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        run_id = await self.begin(step)
        return None if run_id is None else await self.end(run_id, ending, alert)

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        if run_id not in self._runs:
            return None
        if run_id not in self._running:
            raise NotFound(f"run {run_id} has ended already")
        if alert is not None and await self._outbox.put(alert) is None:
            ending = replace(ending, outcome=JobOutcome.QUIET, reason=JobReason.DUPLICATE)
        self._running.discard(run_id)
        self._runs[run_id] = replace(self._runs[run_id], ending=ending)
        return self._runs[run_id]

    async def interrupt(self) -> int:
        cut = len(self._running & self._runs.keys())
        self._running.clear()
        return cut

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        newest = [
            run
            for run in sorted(self._runs.values(), key=lambda r: -r.id)
            if run.id not in self._running and job_id in (None, run.job_id)
        ]
        return tuple(newest[:limit])

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        runs = (run for run in self._used_runs() if run.job_id == job_id)
        return frozenset(run.due for run in runs if run.due is not None and run.due > since)

    def _used_runs(self) -> list[JobRun]:
        return [run for run in self._runs.values() if run.until is None]

    def _add_run(
        self, job_id: int, due: datetime | None, until: datetime | None, ending: Ending
    ) -> int:
        run_id = next(self._run_ids)
        self._runs[run_id] = JobRun(run_id, job_id, self._clock.now(), due, until, ending)
        return run_id


class MemoryIndexDouble:
    """A MemoryIndex that looks at every chunk and counts the query's words in it."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Source, str, tuple[Chunk, ...]]] = {}

    async def digests(self, source: Source) -> Mapping[str, str]:
        return {path: f[1] for path, f in self._files.items() if f[0] is source}

    async def replace(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        by_path = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
        self._files[path] = (chunks[0].source if chunks else by_path, digest, tuple(chunks))

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        held = self._files[path][2] if path in self._files else ()
        await self.replace(path, digest, (*held, *chunks))

    async def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._files.pop(path, None)

    async def erase(self, paths: Sequence[str]) -> None:
        await self.remove(paths)

    async def clear(self) -> None:
        self._files.clear()

    async def search(
        self, query: str, *, owner: bool, limit: int, sources: frozenset[Source] | None = None
    ) -> Found:
        words = set(re.findall(r"[^\W_]+", query.casefold()))
        if not words:
            return Found((), "empty_query")
        seen = [c for f in self._files.values() for c in f[2] if owner or not c.owner_only]
        if not seen:
            return Found((), "nothing_indexed")
        hits = [
            Hit(chunk, score, {"keyword": score})
            for chunk in seen
            if (sources is None or chunk.source in sources)
            and (score := 0.9 * _share(words, chunk.text.casefold())) > 0
        ]
        hits.sort(key=lambda h: (-h.score, h.chunk.path, h.chunk.start_line))
        return Found(tuple(hits[:limit]), "" if hits else "no_match")

    async def state(self) -> IndexState:
        return IndexState(
            len(self._files), sum(len(f[2]) for f in self._files.values()), 0, "ready"
        )


def _share(words: set[str], text: str) -> float:
    held = set(re.findall(r"[^\W_]+", text))
    return sum(w in held or (not w.isascii() and w in text) for w in words) / len(words)
