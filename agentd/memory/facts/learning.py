"""Decides when conversations are read for facts, handles failures, and reports changes.

A session is read when it has been idle for a while, before a compaction, and when it ends. No turn
waits for this except one that waits for a compaction, and no turn fails because of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from agentd.core.compaction import Answer, CompactionPlan, Question
from agentd.core.errors import AgentdError, ProviderError, ShuttingDown, StorageError
from agentd.core.event import FactsChanged
from agentd.core.fact import Fact, OperationResult
from agentd.core.health import Problem
from agentd.core.message import JsonObject
from agentd.core.ports import Clock, EventSink, Transcripts
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.reader import Passage, PassageReader

log = structlog.get_logger()


TAG = "facts"  # tag of the notices that report changes
TRIES = 3  # after so many failures a passage is skipped, and that is recorded

_LOOK = 3600.0  # seconds between checks of all sessions
_TICK = 30.0
_PAUSES = (300.0, 1800.0, 3600.0)  # seconds after the first, second, third failure in a row
# Failures that no passage can cause: reading waits until they are over, however long that takes.
_OUTAGES = frozenset(
    {
        "auth",
        "billing",
        "forbidden",
        "not_found",
        "no_api_key",
        "bad_api_key",
        "budget",
        "breaker_open",
    }
)


class Learning:
    """Reads conversations for facts: in the background (`run`, until cancelled) and, as a
    CompactionHook, before rows leave a context. Does nothing while facts are off.
    """

    name = "facts"

    def __init__(
        self,
        sessions: Transcripts,
        reader: PassageReader,
        sink: EventSink,
        clock: Clock,
        settings: FactsSettings,
    ) -> None:
        self._sessions = sessions
        self._reader = reader
        self._sink = sink
        self._clock = clock
        self._settings = settings
        self._idle = settings.idle.total_seconds()
        self._due: dict[SessionKey, float] = {}  # when each session is to be read, monotonic
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()
        self._wake = asyncio.Event()
        # First row of the failing passage, and the number of its failures.
        self._failures: dict[SessionKey, tuple[int, int]] = {}
        self._outages = 0
        self._rests_until = 0.0
        self._failure: Problem | None = None
        self._skipped: Problem | None = None

    @property
    def waiting(self) -> int:
        """How many sessions wait to be read."""
        return len(self._due)

    def touch(self, session: SessionKey) -> None:
        """Have the session read once it has been idle, because one of its turns has ended."""
        if self._reads(session):
            self._put(session, self._idle)

    def finish(self, session: SessionKey) -> None:
        """Have the session read now, because it has ended."""
        if self._reads(session):
            self._due.pop(session, None)
            self._put(session, 0)
            self._wake.set()

    def deleted(self, session: SessionKey) -> None:
        """Forget a session that was deleted."""
        self._due.pop(session, None)
        self._failures.pop(session, None)

    async def forked(self, source: SessionKey, copy: SessionKey) -> None:
        """Mark in the copy what was already read in the source. Raises StorageError."""
        if self._reads(copy):
            await self._reader.forked(source, copy)

    async def run(self) -> None:
        """Read the sessions that are due, until cancelled. Rows left unread by a shutdown are read
        when their session has been idle.
        """
        if not self._settings.enabled:
            return
        try:
            await self._reader.locate_evidence()
        except AgentdError as error:
            log.warning("evidence_not_located", reason=error.reason)  # the next start tries again
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._work())

    async def read(self, session: SessionKey) -> None:
        """Read everything that the user has said in the session since the mark.

        Raises what `PassageReader.read` raises, except for the third failure caused by a passage
        itself: that passage is skipped, and reading goes on after it.
        """
        if not self._reads(session):
            return
        async with self._locks.setdefault(session, asyncio.Lock()):
            due = self._due.get(session)
            most = self._settings.batch_messages
            while (passage := await self._reader.next(session, most)) is not None:
                try:
                    if (learned := await self._reader.read(passage)) is None:
                        most = passage.user_messages // 2
                        continue
                    await self._note(passage, learned)
                    most = min(2 * most, self._settings.batch_messages)
                except Exception as error:
                    if not self._is_its_own(error) or not await self._gave_up(passage, error):
                        raise
                else:
                    self._failures.pop(session, None)
                    self._outages, self._failure = 0, None
            if self._due.get(session) == due:  # unless a turn has ended meanwhile
                self._due.pop(session, None)

    async def catch_up(self) -> None:
        """Read now every session with unread rows. Raises what `read` raises."""
        for session in await self._reader.unread():
            if self._reads(session):
                await self.read(session)

    def tell(self, session: SessionKey, learned: Sequence[OperationResult]) -> None:
        """Report to those who watch the session, in one line, what its words have changed."""
        if changed := [one for one in learned if one.change is not None]:
            objects = tuple(map(_as_json, changed))
            self._sink.emit(FactsChanged(session, in_words(changed), objects))

    async def before_compaction(
        self, plan: CompactionPlan, ask: Callable[[Question], Awaitable[Answer]]
    ) -> None:
        """Read the session while its rows are all in the context. Raises ShuttingDown."""
        if not self._reads(plan.session):
            return
        try:
            async with asyncio.timeout(self._settings.extraction_timeout.total_seconds()):
                await self._attempt(plan.session)
        except TimeoutError:
            # Rows and mark are unchanged, so the passage is read later.
            log.warning("facts_left_for_later", session=plan.session, reason="timeout")
            self._put(plan.session, _PAUSES[0])

    async def _note(self, passage: Passage, learned: Sequence[OperationResult]) -> None:
        """Report the changes to those who watch, and as a notice row for later readers. Raises
        StorageError, WorkspaceError.
        """
        session = passage.session
        changed = [one for one in learned if one.change is not None]
        if changed and await self._sessions.exists(session):
            row = await self._sessions.notice(session, in_words(changed), TAG)
            if row.seq == passage.last + 1:  # the notice itself need not be read
                await self._reader.skip(replace(passage, last=row.seq))
            self.tell(session, changed)

    def problems(self) -> tuple[Problem, ...]:
        """Return why facts are not read at the moment, and which passage was skipped."""
        return tuple(problem for problem in (self._failure, self._skipped) if problem)

    def _reads(self, session: SessionKey) -> bool:
        return self._settings.enabled and kind_of(session) is SessionKind.OWNER

    def _put(self, session: SessionKey, seconds: float) -> None:
        """Make the session due in `seconds`; after a failure not before its pause is over."""
        due = self._clock.monotonic() + seconds
        if session in self._failures:
            due = max(due, self._due.get(session, 0.0))
        self._due[session] = due

    async def _tick(self) -> None:
        tick = max(1.0, min(_TICK, self._idle))
        looked = self._clock.monotonic()
        while True:
            await self._clock.sleep(tick)
            now = self._clock.monotonic()
            if now - looked >= _LOOK:
                looked = now
                await self._look()
            if any(due <= now for due in self._due.values()):
                self._wake.set()

    async def _work(self) -> None:
        await self._look()
        while True:
            self._wake.clear()  # cleared first, so that a wake-up during this round starts another
            now = self._clock.monotonic()
            due = sorted((at, session) for session, at in self._due.items() if at <= now)
            for _, session in due if now >= self._rests_until else ():
                try:
                    await self._attempt(session)
                except ShuttingDown:
                    return  # reading goes on at the next start
                if self._clock.monotonic() < self._rests_until:
                    break
            await self._wake.wait()

    async def _look(self) -> None:
        """Find sessions with unread rows: from an earlier run, or imported."""
        try:
            unread = await self._reader.unread()
            infos = await self._sessions.sessions()
        except StorageError as error:
            log.warning("facts_not_looked_for", reason=error.reason)
            return
        for info in infos:
            if self._reads(info.key) and info.key in unread:
                rested = (self._clock.now() - info.updated_at).total_seconds()
                if info.key not in self._due:
                    self._put(info.key, min(max(self._idle - rested, 0.0), self._idle))

    async def _attempt(self, session: SessionKey) -> None:
        """Read the session; on failure record when to try again. Raises ShuttingDown."""
        try:
            await self.read(session)
        except ShuttingDown:
            raise
        except (AgentdError, TimeoutError) as error:
            self._failed(session, error)
        except Exception as error:
            # Boundary of background work: a bug here costs facts, never a turn.
            log.exception("extraction_crashed", session=session)
            self._failed(session, error)

    def _failed(self, session: SessionKey, error: Exception) -> None:
        reason = _reason(error)
        if self._is_its_own(error) and session in self._failures:
            pause = _PAUSES[self._failures[session][1] - 1]
        else:
            self._outages += 1
            pause = _PAUSES[min(self._outages, len(_PAUSES)) - 1]
            self._rests_until = self._clock.monotonic() + pause
        self._due[session] = self._clock.monotonic() + pause
        log.warning("extraction_failed", session=session, reason=reason, again_in=pause)
        cure = "They are read later by themselves; see `agentd logs` if this stays."
        text = f"Facts could not be read out of session {session!r}: {reason}."
        # The cure of a temporary error advises the sender of a message; here it would mislead.
        passes = isinstance(error, ProviderError) and (error.retryable or error.away)
        own = "" if passes else getattr(error, "cure", "")
        self._failure = Problem("facts_unread", text, own or cure)

    @staticmethod
    def _is_its_own(error: Exception) -> bool:
        """Whether the passage itself may be the cause of the failure."""
        if isinstance(error, ProviderError):
            return not error.retryable and error.kind not in _OUTAGES
        return not isinstance(error, AgentdError)

    async def _gave_up(self, passage: Passage, error: Exception) -> bool:
        """Count a failure of the passage; return True if it was the last one, and the passage was
        skipped.
        """
        first, failures = self._failures.get(passage.session, (passage.first, 0))
        failures = failures + 1 if first == passage.first else 1
        self._failures[passage.session] = (passage.first, failures)
        if failures < TRIES:
            return False
        await self._reader.skip(passage)
        del self._failures[passage.session]
        reason = _reason(error)
        log.warning(
            "facts_skipped",
            session=passage.session,
            first=passage.first,
            last=passage.last,
            messages=len(passage.spoken),
            reason=reason,
        )
        self._skipped = Problem(
            "facts_skipped",
            f"Messages {passage.first} to {passage.last} of session {passage.session!r} were not "
            f"read for facts: {reason}, {TRIES} times.",
            "Say again what matters of them, beginning with “remember that”.",
        )
        return True


def in_words(changed: Sequence[OperationResult]) -> str:
    """Describe the changes in one line, with how to undo them."""
    kept = [_kept_text(one.fact, one.gone) for one in changed if one.fact is not None]
    ended = [_ended_text(fact) for one in changed if one.fact is None for fact in one.gone]
    lead = [f"remembered: {' '.join(kept)}"] if kept else []
    return f"{' '.join((*lead, *ended))} (/undo takes it back)"


def _kept_text(fact: Fact, gone: Sequence[Fact]) -> str:
    return f"{fact.text} (before: {_texts(gone)})" if gone else fact.text


def _ended_text(fact: Fact) -> str:
    if fact.is_active and fact.valid_to is not None:  # valid_to is the end of that day
        return f"so until {fact.valid_to - timedelta(microseconds=1):%Y-%m-%d}: {fact.text}"
    return f"no longer so: {fact.text}"


def _texts(facts: Sequence[Fact]) -> str:
    return " ".join(fact.text for fact in facts)


def _as_json(learned: OperationResult) -> JsonObject:
    assert learned.change is not None
    fact = learned.fact
    return {
        "change": learned.change.id,
        "op": str(learned.change.op),
        "id": fact.id if fact else None,
        "text": fact.text if fact else None,
        "old": [old.text for old in learned.gone],
    }


def _reason(error: Exception) -> str:
    if isinstance(error, AgentdError):
        return error.reason
    return "timeout" if isinstance(error, TimeoutError) else "internal"
