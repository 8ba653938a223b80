"""Every seam of agentd on one page: what the inner layers need from the outer ones.

Implementations do not inherit from these; `app.py` is where the type checker proves that they fit.
Store methods are whole transactions: when one returns, what it did is durable; when it raises,
nothing of it happened. Every store method may raise StorageError, StorageFull when the disk is full.
Doubles of all of them are in `agentd.testing`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from agentd.domain.alert import Alert, Delivery, NewAlert
from agentd.domain.beat import Beat, HeartbeatState, ItemState, Outcome, Reason
from agentd.domain.choices import Choices
from agentd.domain.compaction import Answer, CompactionPlan, Question
from agentd.domain.event import TurnEvent
from agentd.domain.health import Problem
from agentd.domain.job import Ending, Job, JobRun, NewJob, Schedule, Step
from agentd.domain.memory import Chunk, Found, IndexState, Source
from agentd.domain.money import Cap, Charge
from agentd.domain.prompt import Prompt, ProviderEvent, ToolSpec
from agentd.domain.tool import (
    Approval,
    Decision,
    FileAction,
    FileIntent,
    Intent,
    OpenCall,
    ToolCall,
    ToolOutput,
)
from agentd.domain.transcript import Coverage, History, NewRow, Row, SessionInfo
from agentd.domain.turn import (
    Kind,
    Origin,
    PendingTurn,
    Receipt,
    SessionKey,
    Turn,
    TurnRequest,
    Usage,
)
from agentd.domain.workspace import ContextBlock, FileView, Reader, TreeEntry


class Clock(Protocol):
    """The one source of time."""

    @property
    def zone(self) -> ZoneInfo:
        """The owner's time zone: what `today` means."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; they stand still while the machine sleeps."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""


class Provider(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The kind: `anthropic`, `offline` … What `Answered.provider` carries."""

    @property
    def model(self) -> str:
        """The model used when a prompt names none."""

    def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        """Events of one answer, `Answered` last.

        Raises ProviderError, ContextOverflow; a stream without `Answered` has always raised.
        Closing the iterator ends the call.
        """


class Gate(Protocol):
    """What a running tool may ask of the engine."""

    async def approve(self, approval: Approval) -> bool:
        """Whether the user says yes to exactly this. Raises ToolFailed when nobody can be asked."""

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Make durable what is about to happen. No effect before this returns."""


class Tool(Protocol):
    """Something the model may call."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """Do it. The input has passed the schema. A tool whose effect is FILE calls `gate.intend`
        with the path's lock held; for EXTERNAL and IDEMPOTENT ones the engine has done so before.

        Raises ToolFailed, WorkspaceError: told to the model as an error result.
        """

    async def settle(self, intent: Intent) -> ToolOutput:
        """Finish a FILE call that a crash cut after its intent, or say that it conflicts."""


class Approver(Protocol):
    """Who asks the user."""

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """The user's answer. A no when nobody can be asked in time."""


class EventSink(Protocol):
    """Who watches a turn."""

    def emit(self, event: TurnEvent) -> None:
        """Take the event. Never blocks, never raises."""


class ContextSource(Protocol):
    """What adds text to a turn's prompt."""

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """The blocks for this turn; none is fine. Must not raise for a file that cannot be read."""


class SessionStore(Protocol):
    """Inbox, transcripts and contexts.

    Turns whose origin is not USER are silent: `append` keeps their rows apart from the transcript,
    and `finish` erases them.
    """

    async def receive(self, request: TurnRequest) -> Receipt:
        """Store the request, and the session if it is new. A known message id of the same session
        changes nothing: the old receipt comes back with `is_new=False`.
        """

    async def begin(self, turn_id: int) -> tuple[Row, ...]:
        """Count an attempt and return the turn's rows so far; the first time, that is its user row,
        stored byte for byte.
        """

    async def append(self, turn_id: int, row: NewRow) -> Row:
        """Add a row to the turn."""

    async def finish(
        self, turn_id: int, turn: Turn, rows: Sequence[NewRow] = ()
    ) -> tuple[Row, ...]:
        """Add the last rows and mark the turn ended, in one transaction. Returns the added rows."""

    async def park(self, turn_id: int) -> None:
        """Take back the attempt that `begin` counted: the turn was put aside on purpose, not by a crash."""

    async def pending(self) -> tuple[PendingTurn, ...]:
        """Turns that are not ended, oldest first."""

    async def load(self, session: SessionKey) -> History:
        """What the next prompt is made from; empty for an unknown session."""

    async def notice(self, session: SessionKey, text: str, tag: str) -> Row:
        """Add a notice row outside any turn."""

    async def swap(
        self, session: SessionKey, generation: int, keep_from: int, summary: str
    ) -> bool:
        """Let the context begin at row `keep_from` behind `summary` (stored as a summary row unless
        empty). False, with nothing changed, if the session's generation is another one by now.
        """

    async def cover(self, session: SessionKey, coverage: Coverage) -> None:
        """Record the end of a flush; `flush_failures` and `flush_due` go back to none."""

    async def flush_failed(self, session: SessionKey, reason: str) -> int:
        """Count one failed try for what is uncovered; returns how many there are now."""

    async def last_asked(self, session: SessionKey, start: str) -> str:
        """The message id of the session's newest flush turn whose id begins with `start`, ended or
        not; "" if there is none.
        """

    async def coverages(self, session: SessionKey) -> tuple[Coverage, ...]:
        """All flushes of the session, oldest first."""

    async def set_flush_due(self, sessions: Sequence[SessionKey]) -> None:
        """Remember that these sessions need a flush before their next compaction."""

    async def create(self, session: SessionKey, cwd: str = "") -> bool:
        """Make an empty session; False if it exists."""

    async def exists(self, session: SessionKey) -> bool:
        """Whether the session exists."""

    async def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the last used first; `main` is always among them."""

    async def rows(
        self, session: SessionKey, first: int = 1, limit: int | None = None
    ) -> tuple[Row, ...]:
        """Rows from number `first` on, as exported. Raises NotFound for an unknown session."""

    async def recent(self, session: SessionKey, turns: int) -> tuple[Row, ...]:
        """The rows of the last `turns` turns and the notices between them, oldest first."""

    async def add_rows(self, session: SessionKey, rows: Sequence[tuple[NewRow, datetime]]) -> int:
        """Import rows into a new session, dated. Raises Busy if the session has rows already."""

    async def last_heard(self) -> tuple[datetime, str] | None:
        """When the owner's newest message came, and from which client; None if there is none."""

    async def choices(self, session: SessionKey) -> Choices:
        """What the user has chosen for the session; nothing for an unknown one."""

    async def choose(self, session: SessionKey, choices: Choices) -> None:
        """Keep what the user has chosen. Raises NotFound."""

    async def fork(self, session: SessionKey, copy: SessionKey, cwd: str = "") -> None:
        """Make a session `copy` with the transcript, context and choices of another, up to its first
        turn that has not ended. Raises NotFound, Busy if `copy` exists.
        """

    async def delete(self, session: SessionKey) -> None:
        """Erase the session and all that was said in it; `main` is emptied and stays. When this
        returns, no file of the store holds a byte of it. What it cost stays in the ledger, under
        the name `DELETED`. Raises NotFound, Busy while one of its turns has not ended.
        """


class Journal(Protocol):
    """Intents and results of tool calls, of silent turns too."""

    async def intend(self, turn_id: int, intent: Intent) -> None:
        """Store what a call is about to do. A second intent of the same call replaces the first."""

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        """Store what a call answered."""

    async def outputs(self, turn_id: int) -> Mapping[str, ToolOutput]:
        """The stored answers of a turn, by call id."""

    async def open_calls(self) -> tuple[OpenCall, ...]:
        """Calls of unended turns that have an intent and no answer, oldest first."""


class Ledger(Protocol):
    """What model calls have cost."""

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        """Set aside the most that a call can use, before it is made; returns the reservation.

        What a crash leaves reserved stays spent. Raises BudgetReached, with nothing set aside, if a
        cap would be passed.
        """

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
        """Record one model call, in place of what was reserved for it."""

    async def spent(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """Total tokens and US dollars since then, of one origin or of all; reservations count."""

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        """Tokens and US dollars since then by session and origin, the dearest first."""

    async def entries(self) -> tuple[Charge, ...]:
        """Every call, the oldest first."""

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        """Tokens read from a cache since then, and all tokens read."""


class JobStore(Protocol):
    """The heartbeat's memory."""

    async def heartbeat(self) -> HeartbeatState:
        """What is persisted of the schedule."""

    async def schedule(self, next_due: datetime | None) -> None:
        """Set when the next beat is due."""

    async def pause(self, until: datetime | None) -> None:
        """Pause until then; None resumes."""

    async def begin_beat(
        self, due: datetime | None, next_due: datetime | None, file_hash: str
    ) -> int:
        """Store a running beat and the next due time in one transaction; returns its id."""

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
        """Finish a beat, mark its checklist items done and put its alert into the outbox, all or
        nothing. An alert whose text was put within 24 hours is not put again: the beat is then
        stored as QUIET with reason `duplicate`, and None comes back beside it.
        """

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        """Store a skipped beat and the next due time in one transaction."""

    async def interrupt_beats(self) -> int:
        """Mark beats that a crash left running as failed with reason `interrupted`."""

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        """The newest beats first, finished ones only."""

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        """The states of checklist items; those seen for the first time are stored as seen now, and
        items no longer listed are forgotten.
        """


class JobBook(Protocol):
    """The jobs and their history. A slot is used by at most one run, whatever happens."""

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        """Store a job. The job that was stored under the same key comes back instead, with nothing
        changed. Raises Busy when `most` jobs have slots to come.
        """

    async def by_key(self, key: str) -> Job | None:
        """The job that was stored under the key, if it is still there."""

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """The jobs that have slots to come, or all, the oldest first."""

    async def get(self, job_id: int) -> Job:
        """The job. Raises NotFound."""

    async def remove(self, job_id: int) -> Job:
        """Forget a job and its history. Raises NotFound."""

    async def pass_over(self, step: Step) -> None:
        """Store what was missed, and the next due time."""

    async def begin(self, step: Step) -> int | None:
        """Use the slot: store what was missed, a running run and the next due time in one
        transaction; returns the run's id. None if the job is gone or the slot was used before, which
        moves the due time all the same. A step without a slot leaves the due time alone.
        """

    async def record(
        self, step: Step, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """`begin` and `end` in one transaction."""

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """Finish a run and put its alert into the outbox, both or neither. If that alert was put
        within 24 hours the run is stored as QUIET with reason `duplicate`. None if the job is gone.
        """

    async def interrupt(self) -> int:
        """Mark runs that a crash left running as failed with reason `interrupted`."""

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """The newest runs first, finished ones only, of one job or of all."""

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        """The job's slots after `since` that have been used."""


class Triggers(Protocol):
    """What knows when schedules come round."""

    def check(self, schedule: Schedule) -> None:
        """Raise InvalidRequest, with a right example, for a schedule that makes no sense."""

    def after(self, schedule: Schedule, moment: datetime) -> datetime | None:
        """The first slot after the moment; None when there is none."""


class Outbox(Protocol):
    """Where alerts are put; at least once to each sink."""

    async def put(self, alert: NewAlert) -> Alert | None:
        """Store an alert with a pending delivery to each of its sinks; None if an alert with the
        same digest was put within 24 hours.
        """

    async def due(self) -> tuple[Delivery, ...]:
        """Deliveries whose time has come, oldest first."""

    async def next_due(self) -> datetime | None:
        """When the next delivery is to be tried; None if nothing is pending."""

    async def sent(self, alert_id: int, sink: str) -> None:
        """Record a delivery."""

    async def retry(self, alert_id: int, sink: str, after: timedelta | None) -> None:
        """Record a failed try; the next one comes `after` from now, None gives up."""

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        """The newest alerts first."""

    async def ack(self, alert_id: int) -> Alert:
        """Mark an alert as seen. Raises NotFound."""


class AlertSink(Protocol):
    """One way to reach the user."""

    @property
    def name(self) -> str:
        """The word in `[heartbeat] target` and in `delivered`."""

    async def send(self, alert: Alert) -> None:
        """Deliver it. Raises AgentdError when it did not arrive; it is then tried again."""


class MemoryIndex(Protocol):
    """The derived search index."""

    async def digests(self, source: Source) -> Mapping[str, str]:
        """What is indexed: path to the content's digest."""

    async def replace(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """Make `chunks` all that is indexed of `path`."""

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks to what is indexed of `path`."""

    async def remove(self, paths: Sequence[str]) -> None:
        """Forget paths."""

    async def erase(self, paths: Sequence[str]) -> None:
        """Forget paths, and leave no byte of what they said on the disk. Slow."""

    async def clear(self) -> None:
        """Forget everything: a rebuild begins."""

    async def search(
        self, query: str, *, owner: bool, limit: int, sources: frozenset[Source] | None = None
    ) -> Found:
        """The best chunks for any text at all; never raises on what the user typed. Chunks that are
        the owner's alone do not exist for others, in hits, counts or reasons.
        """

    async def state(self) -> IndexState:
        """Counts for `status`."""


class Workspace(Protocol):
    """The user's files, reached without ever leaving them."""

    def canonical(self, path: str) -> str:
        """The one spelling of `path` (`daily/…` alias, doubled slashes, NFC). Raises PathRefused."""

    def is_protected(self, path: str) -> bool:
        """Whether a model's change to it needs the user's yes. Compared casefolded."""

    def is_owner_only(self, path: str) -> bool:
        """Whether the file exists for the owner's sessions alone, told by its name and never by
        whether it is there. Raises PathRefused.
        """

    def daily_note(self) -> str:
        """The path of today's note, in the owner's zone."""

    async def read(self, path: str, reader: Reader) -> FileView:
        """The whole file; from then on the session has seen it.

        Raises FileMissing (absent and forbidden alike), FileUnreadable, PathRefused.
        """

    async def tree(self, path: str, depth: int, reader: Reader) -> tuple[TreeEntry, ...]:
        """What is below `path`, `depth` levels deep, sorted; other scopes as `@name/`."""

    async def exists(self, path: str, reader: Reader) -> bool:
        """Whether `read` would find it."""

    def lock(self, path: str) -> AbstractAsyncContextManager[None]:
        """Hold the path against our other writers and against other processes that flock it."""

    async def plan(self, path: str, action: FileAction, data: bytes) -> FileIntent:
        """The exact change, from what is on disk now; writes nothing. Raises PathRefused,
        FileUnreadable, FileMissing (DELETE).
        """

    async def has_seen(self, path: str, digest: str, reader: Reader) -> bool:
        """Whether the session has seen the file in this state; an absent file counts as seen."""

    async def apply(self, intent: FileIntent, reader: Reader) -> None:
        """Do it, durably; the session has then seen the result. Raises EditConflict when the file is
        no longer in the state `before` (for an append: shorter than `offset`).
        """

    async def inspect(self, intent: FileIntent) -> str:
        """After a crash: "before", "after" or "other". An append is "after" when its bytes stand at
        or behind `offset` as one piece, "before" when nothing of them does.
        """

    def problems(self) -> tuple[Problem, ...]:
        """Files that could not be read or were cut, since they last could."""


class CompactionHook(Protocol):
    """What wants to act before rows leave the context."""

    @property
    def name(self) -> str:
        """For the log."""

    async def before_compaction(
        self, plan: CompactionPlan, ask: Callable[[Question], Awaitable[Answer]]
    ) -> None:
        """Act. Raising loses only this hook's work; the manager limits its time."""


class Probe(Protocol):
    """A part's health, for `status` and the watchdog."""

    @property
    def name(self) -> str:
        """The part."""

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now; none is fine."""

    async def prove(self) -> None:
        """Do a little real work; returning is the proof. May hang: the caller has a deadline."""


class Recall(Protocol):
    """Search as the tools and commands use it."""

    async def search(
        self, query: str, kind: Kind, limit: int, sources: frozenset[Source] | None = None
    ) -> Found:
        """What this kind of session may find."""

    async def read(self, path: str, reader: Reader) -> FileView:
        """A workspace file or a transcript as the virtual file `sessions/KEY.jsonl`."""


class Breaker(Protocol):
    """The provider's circuit breaker, as others see it."""

    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""

    def status(self) -> dict[str, Any]:
        """For `agentd status`."""
