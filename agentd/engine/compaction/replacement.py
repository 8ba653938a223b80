"""What replaces the rows that leave a context: a summary, or after too many failures an extract.

A model that makes no usable summary is asked again, after growing pauses; from its third failure in
a row on, an extract made by rule replaces the summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from math import ceil

import structlog
from msgspec import Struct

from agentd.core.compaction import CompactionPlan, Trigger
from agentd.core.errors import ProviderError
from agentd.core.health import Problem
from agentd.core.offloading import offload_rows
from agentd.core.outside import from_outside, without_outside_text
from agentd.core.ports import Clock, SessionStore
from agentd.core.times import format_duration
from agentd.core.transcript import NO_TROUBLE, History, Row, SessionInfo, SummaryTrouble
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.engine.compaction.extract import extract
from agentd.engine.compaction.summary import Summariser, SummaryRefused
from agentd.engine.durable import when_space

log = structlog.get_logger()

EXTRACTED = "extract"  # the reason of a compaction without a summary
MOST_FAILURES = 3  # in a row; then an extract replaces the rows
_FIRST_PAUSE = timedelta(minutes=10)  # doubled by each further failure
_LONGEST_PAUSE = timedelta(hours=8)
_NOT_MADE = frozenset({"breaker_open", "budget"})  # the model was not asked


class Replacement(Struct, frozen=True):
    """The replacement of old rows: `summary` (or an extract), `outside` (a summary of text from
    outside), and the `reason` for the report of the cut; `failure` says why there is none.
    """

    reason: str = ""
    summary: str = ""
    outside: str = ""
    failure: str = ""


class Replacements:
    """Makes the replacements of old rows, and keeps account of the summaries that failed."""

    def __init__(
        self, store: SessionStore, summariser: Summariser, clock: Clock, retry_daily_tokens: int
    ) -> None:
        self._store = store
        self._summariser = summariser
        self._clock = clock
        self._retry_daily_tokens = retry_daily_tokens
        self._troubles: dict[SessionKey, SummaryTrouble] = {}

    def restore(self, sessions: Iterable[SessionInfo]) -> None:
        """Take over the failures of summaries that were stored before this start."""
        self._troubles = {info.key: info.trouble for info in sessions if info.trouble.failures}

    def forget(self, session: SessionKey) -> None:
        """Forget the failures of the session's summaries: the session is deleted."""
        self._troubles.pop(session, None)
        self._summariser.forget(session)

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each session whose summaries fail, most failures first."""
        found = sorted(self._troubles.items(), key=lambda item: -item[1].failures)
        return tuple(_problem(session, trouble, self._clock) for session, trouble in found)

    def excerpt(self, rows: Sequence[Row], summary: str) -> str:
        """Return an extract of rows and of the summary before them, made by rule without a
        model.
        """
        return extract(rows, summary, self._summariser.longest, self._clock.zone)

    async def of(self, plan: CompactionPlan) -> Replacement:
        """Return a summary of the old rows; an extract if no summary may be tried now or too many
        have failed; no text if the context is to be emptied.
        """
        if plan.trigger.empties:
            return Replacement(str(plan.trigger))
        if held := await self._reason_not_to_try(plan):
            log.warning("summary_not_tried", session=plan.session, reason=held)
            return Replacement(EXTRACTED, await self._extract(plan))
        try:
            summary, outside = await self._summaries(plan)
        except (ProviderError, TimeoutError) as error:
            reason = error.reason if isinstance(error, ProviderError) else "summary_timeout"
            log.warning("summary_failed", session=plan.session, reason=reason)
            trouble = await self._count_failure(plan, error)
            if trouble.failures < MOST_FAILURES:
                return Replacement(failure=reason)
            return Replacement(EXTRACTED, await self._extract(plan))
        if plan.trouble.failures:
            await self._set_trouble(plan.session, NO_TROUBLE)
        return Replacement(str(plan.trigger), summary, outside)

    async def _reason_not_to_try(self, plan: CompactionPlan) -> str:
        """Return why no summary may be tried now; "" if one may, as always for MANUAL."""
        if not plan.trouble.failures or plan.trigger is Trigger.MANUAL:
            return ""
        now = self._clock.now()
        if plan.trouble.holds(now):
            return "summary_pause"
        most = self._retry_daily_tokens
        day = now.astimezone(self._clock.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        if most and await self._summariser.tokens_since(day) >= most:
            return "summary_budget"
        return ""

    async def _count_failure(
        self, plan: CompactionPlan, error: ProviderError | TimeoutError
    ) -> SummaryTrouble:
        """Store one more failed summary and the pause before the next try, unless the service was
        away or was not asked. Return the failures as stored.
        """
        is_away = isinstance(error, ProviderError) and error.away
        kind = error.kind if isinstance(error, ProviderError) else "summary_timeout"
        if kind in _NOT_MADE or is_away:
            return plan.trouble
        failures = plan.trouble.failures + 1
        pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LONGEST_PAUSE)
        word = error.fault if isinstance(error, SummaryRefused) else kind
        trouble = SummaryTrouble(failures, word, self._clock.now() + pause)
        await self._set_trouble(plan.session, trouble)
        return trouble

    async def _extract(self, plan: CompactionPlan) -> str:
        rows = plan.old
        if kind_of(plan.session) is SessionKind.OWNER:
            rows, _ = await _apart(plan)
        return await self._summariser.extract(plan.session, rows, plan.summary)

    async def _set_trouble(self, session: SessionKey, trouble: SummaryTrouble) -> None:
        await when_space(self._clock, self._store.set_trouble, session, trouble)
        if trouble.failures:
            self._troubles[session] = trouble
        else:
            self._troubles.pop(session, None)

    def is_paused(self, history: History) -> bool:
        """Whether cuts of the context are paused because its summary has failed."""
        trouble = history.trouble
        return trouble.failures < MOST_FAILURES and trouble.holds(self._clock.now())

    async def _summaries(self, plan: CompactionPlan) -> tuple[str, str]:
        """Return the context's new summary, and in the owner's own sessions one of text from
        outside, else "". Raises ProviderError, TimeoutError.
        """
        ask = partial(self._summariser.summarise, plan.session)
        if kind_of(plan.session) is not SessionKind.OWNER:
            return await ask(plan.old, plan.summary, plan.wish), ""
        if not spoken(plan.old):
            return plan.summary, ""
        clean, outside = await _apart(plan)
        summary = await ask(clean, plan.summary, plan.wish)
        if not outside:
            return summary, ""
        try:
            return summary, await ask(outside, "")
        except SummaryRefused as error:
            # Nothing is lost: the rows stay, and no context would have carried this summary.
            log.warning("outside_not_summarised", session=plan.session, reason=error.reason)
            return summary, ""


def _problem(session: SessionKey, trouble: SummaryTrouble, clock: Clock) -> Problem:
    given_up = trouble.failures >= MOST_FAILURES
    instead = "its messages stay as they are, or in a turn that they do not fit an extract"
    if given_up:
        instead = "an extract by rule stands in for it"
    count = "once" if trouble.failures == 1 else f"{trouble.failures} times in a row"
    text = f"The summary of session {session!r} has failed {count} ({trouble.reason}); {instead}."
    left = _until(trouble.retry_at, clock)
    cure = (
        f"The next try comes {left}, or with `agentd sessions compact {session}`; if it stays, "
        "set [compaction] summary_model to a model that writes summaries, or leave "
        "summary_prompt empty."
    )
    return Problem("summary_failed", text, cure)


def _until(moment: datetime | None, clock: Clock) -> str:
    left = moment - clock.now() if moment else timedelta(0)
    if left <= timedelta(0):
        return "when room is needed"
    return f"in {format_duration(timedelta(minutes=ceil(left / timedelta(minutes=1))))}"


async def _apart(plan: CompactionPlan) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return the old rows without text from outside, and the whole turns that contain such text."""

    def parted() -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        return without_outside_text(plan.session, plan.old), from_outside(spoken(plan.old))

    return await offload_rows(plan.old, parted)


def spoken(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in which something is said, without notices and summaries."""
    return [r for r in rows if r.role.is_spoken]
