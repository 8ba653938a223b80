"""Doubles of the inbox, the transcripts and the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.errors import Busy, InvalidRequest, NotFound
from agentd.core.message import Text
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.tool import (
    Intent,
    OpenCall,
    ToolOutput,
)
from agentd.core.transcript import (
    NO_TROUBLE,
    Choices,
    Coverage,
    History,
    NewRow,
    Row,
    RowRole,
    SessionInfo,
    SummaryTrouble,
    opens_turn,
    summary_rows,
)
from agentd.core.turn import (
    DELETED,
    MAIN,
    Origin,
    PendingTurn,
    Receipt,
    SessionKey,
    SessionKind,
    Turn,
    TurnRequest,
    TurnState,
)
from agentd.storage.codec import dump_blocks
from agentd.storage.redacting import (
    redact_intent,
    redact_output,
    redact_request,
    redact_row,
    redact_turn,
)
from agentd.storage.transcript import MANY_ROWS


class StoredSession(Struct):
    """A session as the double stores it."""

    info: SessionInfo
    history: History  # everything but the rows
    rows: list[Row] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)


class StoredTurn(Struct):
    """A turn as the double stores it."""

    id: int
    request: TurnRequest
    at: datetime
    state: TurnState = TurnState.RECEIVED
    attempts: int = 0
    rows: list[Row] = field(default_factory=list)
    ended: Turn | None = None
    intents: dict[str, Intent] = field(default_factory=dict)
    outputs: dict[str, ToolOutput] = field(default_factory=dict)
    redacted: int = 0

    def receipt(self) -> Receipt:
        request = self.request
        return Receipt(
            self.id,
            request.session,
            request.message_id,
            self.ended,
            self.redacted,
            at=None if self.ended else self.at,
        )

    @property
    def is_silent(self) -> bool:
        return self.request.is_silent


class MemorySessions:
    """A SessionStore and Journal in memory."""

    def __init__(self, clock: Clock, redactor: Redactor | None = None) -> None:
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._sessions: dict[SessionKey, StoredSession] = {}
        self._turns: list[StoredTurn] = []
        self._deletions: dict[int, SessionKey] = {}
        self._deleted = 1

    async def receive(self, request: TurnRequest) -> Receipt:
        try:
            f"{request.text}{request.message_id}{request.session}".encode()
        except UnicodeEncodeError:
            raise InvalidRequest("the message holds half of a surrogate pair") from None
        key, message_id = request.session, request.message_id
        for turn in self._turns:
            if (turn.request.session, turn.request.message_id) == (key, message_id):
                return turn.receipt()
        self._make(key)
        kept, redacted = redact_request(request, self._redactor)
        turn = StoredTurn(len(self._turns) + 1, kept, at=self._clock.now(), redacted=redacted)
        self._turns.append(turn)
        return turn.receipt()

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        turn = self._open(turn_id)
        turn.attempts += 1
        is_first = turn.state is TurnState.RECEIVED
        turn.state = TurnState.RUNNING
        if is_first:
            self._add(turn, _user_row(turn.request))
        return tuple(turn.rows)

    async def append(self, turn_id: int, row: NewRow) -> Row:
        return self._add(self._open(turn_id), row)

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        stored = self._open(turn_id)
        if stored.state is TurnState.RECEIVED:
            self._add(stored, _user_row(stored.request))
        added = tuple(self._add(stored, row) for row in rows)
        stored.ended = redact_turn(turn, self._redactor)
        stored.state = TurnState.FAILED if turn.failure else TurnState.DONE
        stored.rows.clear()
        stored.intents.clear()
        stored.outputs.clear()
        return added

    async def park(self, turn_id: int, *, waits: bool = False) -> None:
        turn = self._turns[turn_id - 1]
        if turn.ended is not None:
            return
        turn.attempts = max(0, turn.attempts - 1)
        if waits and turn.state is TurnState.RUNNING:
            turn.state = TurnState.WAITING

    async def pending(self) -> tuple[PendingTurn, ...]:
        return tuple(
            PendingTurn(t.id, t.request, t.state, t.attempts, t.redacted, t.at)
            for t in self._turns
            if t.ended is None
        )

    async def load(self, session: SessionKey, most: int | None = None) -> History:
        found = self._sessions.get(session)
        if found is None:
            return History(session)
        rows = [r for r in found.rows if r.seq >= found.history.context_from]
        left_out = 0
        if most is not None and found.info.rows - found.history.context_from >= MANY_ROWS:
            sizes = [len(dump_blocks(row.blocks)) for row in rows]
            while len(rows) > 1 and sum(sizes) > most:
                left_out += sizes.pop(0)
                del rows[0]
        return replace(found.history, left_out=left_out, rows=_without_summaries(rows))

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        return self._store(
            self._require(session), NewRow(RowRole.NOTICE, (Text(text),), tag=tag), None
        )

    async def swap(
        self,
        session: SessionKey,
        generation: int,
        keep_from: int,
        summary: str,
        outside: str = "",
    ) -> bool:
        found = self._require(session)
        if found.history.generation != generation:
            return False
        summary = self._redactor.kept(summary).text
        for row in summary_rows(session, summary, outside):
            self._store(found, row, None)
        found.history = replace(
            found.history,
            generation=generation + 1,
            context_from=keep_from,
            summary=summary,
            swapped_at=found.info.rows,
            is_excerpted=False,
        )
        found.info = replace(found.info, generation=generation + 1)
        return True

    async def set_trouble(self, session: SessionKey, trouble: SummaryTrouble) -> None:
        found = self._require(session)
        found.history = replace(found.history, trouble=trouble)
        found.info = replace(found.info, trouble=trouble)

    async def mark_excerpted(self, session: SessionKey) -> None:
        if found := self._sessions.get(session):
            found.history = replace(found.history, is_excerpted=True)

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

    async def row_counts(self) -> Mapping[SessionKey, int]:
        stored = (info for info in await self.sessions() if info.key in self._sessions)
        return {info.key: info.rows for info in stored}

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
        opening = [r.seq for r in stored if opens_turn(r)]
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
            if not t.is_silent and t.request.kind is SessionKind.OWNER
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
            trouble=NO_TROUBLE,
        )
        made.info = replace(
            found.info,
            key=copy,
            cwd=made.info.cwd,
            created_at=made.info.created_at,
            updated_at=made.info.updated_at,
            rows=last,
            turns=sum(map(opens_turn, made.rows)),
            flush_due=False,
            trouble=NO_TROUBLE,
        )

    async def images(self) -> frozenset[str]:
        waiting = (i for t in self._turns if t.ended is None for i in t.request.images)
        stored = (i for s in self._sessions.values() for row in s.rows for i in row.images)
        return frozenset(image.sha256 for image in (*waiting, *stored))

    async def unerased(self) -> Mapping[int, SessionKey]:
        return dict(self._deletions)

    async def mark_erased(self, deletion: int) -> None:
        self._deletions.pop(deletion, None)

    async def delete(self, session: SessionKey) -> None:
        found = self._require(session)
        mine = [t for t in self._turns if t.request.session == session]
        if any(t.ended is None and t.request.origin is not Origin.FLUSH for t in mine):
            raise Busy(f"a turn of session {session!r} has not ended")
        for turn in mine:  # the turn stays, so that its number is never reused
            turn.request = replace(turn.request, session=DELETED, text="", message_id="")
        del self._sessions[session]
        self._deletions[self._deleted] = session
        self._deleted += 1
        if session == MAIN:
            self._make(MAIN)
            generation = found.history.generation + 1
            main = self._sessions[MAIN]
            main.history = replace(main.history, generation=generation)
            main.info = replace(main.info, generation=generation)

    async def intend(self, turn_id: int, intent: Intent) -> None:
        self._turns[turn_id - 1].intents[intent.call.id] = redact_intent(intent, self._redactor)

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        self._turns[turn_id - 1].outputs[call_id] = redact_output(output, self._redactor)

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
        self._sessions[key] = StoredSession(info, History(key))
        return True

    def _require(self, key: SessionKey) -> StoredSession:
        if key == MAIN:
            self._make(key)
        if key not in self._sessions:
            raise NotFound(f"there is no session {key!r}")
        return self._sessions[key]

    def _open(self, turn_id: int) -> StoredTurn:
        if not 1 <= turn_id <= len(self._turns):
            raise NotFound(f"there is no turn {turn_id}")
        turn = self._turns[turn_id - 1]
        if turn.ended is not None:
            raise InvalidRequest(f"turn {turn_id} has ended already")
        return turn

    def _add(self, turn: StoredTurn, new: NewRow) -> Row:
        if turn.is_silent:
            row = redact_row(new, self._redactor).stored(
                len(turn.rows) + 1, self._clock.now(), turn.id
            )
        else:
            row = self._store(self._sessions[turn.request.session], new, turn.id)
        turn.rows.append(row)
        return row

    def _store(
        self, found: StoredSession, new: NewRow, turn_id: int | None, at: datetime | None = None
    ) -> Row:
        row = redact_row(new, self._redactor).stored(
            len(found.rows) + 1, at or self._clock.now(), turn_id
        )
        found.rows.append(row)
        opens = opens_turn(row)
        title = row.text.strip().split("\n", 1)[0][:80] if opens else ""
        tokens = row.usage.total_tokens if row.usage else found.info.context_tokens
        found.info = replace(
            found.info,
            title=found.info.title or title,
            updated_at=row.at,
            rows=row.seq,
            turns=found.info.turns + opens,
            context_tokens=tokens,
        )
        return row


def _user_row(request: TurnRequest) -> NewRow:
    return NewRow(RowRole.USER, request.blocks, source=request.source)


def _without_summaries(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(r for r in rows if r.role is not RowRole.SUMMARY)
