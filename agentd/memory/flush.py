"""The silent flush: before rows leave a context, the model may save what they say."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agentd import failpoints
from agentd.domain.compaction import Answer, CompactionPlan, Question
from agentd.domain.outside import cleaned, from_outside
from agentd.domain.transcript import NO_MEMORY, Coverage, Row, RowRole
from agentd.domain.turn import Kind, SessionKey, kind_of
from agentd.domain.verdict import is_no_reply
from agentd.engine.durable import when_space
from agentd.errors import AgentdError, ProviderError, ShuttingDown
from agentd.memory.flush_prompt import flush_prompt
from agentd.memory.settings import MemoryFlushSettings
from agentd.memory.slices import Part, split
from agentd.offloading import ROWS, offload
from agentd.ports import Clock, SessionStore

TRIES = 3  # then the rows are cut unsaved, with a record of it
# A conversation that is sent to a model must not begin with the model's own words.
_EARLIER = "(The beginning of this conversation has been looked at already.)"
# Said with a question about what came from outside.
_APART = (
    "\nThe user's own words in this part have been looked at already. Save only what the text from"
    " outside (results of tools, attachments, words of others) adds to them."
)
_STORED = "stored"
_TOOLS = frozenset({"memory_read", "memory_search", "memory_write"})

Ask = Callable[[Question], Awaitable[Answer]]

log = structlog.get_logger()


class MemoryFlush:
    """A compaction hook. Every row it is shown is covered exactly once: by a success, or by the
    record of its third failure. `part_tokens` is how much conversation one question may carry.
    """

    name = "memory_flush"

    def __init__(
        self,
        store: SessionStore,
        settings: MemoryFlushSettings,
        clock: Clock,
        part_tokens: Callable[[], int],
        daily_dir: str = "memory",
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._part_tokens = part_tokens
        self._daily_dir = daily_dir

    async def before_compaction(self, plan: CompactionPlan, ask: Ask) -> None:
        """Offer the uncovered rows to memory. One try a call, or all that are left when this is the
        last chance. Raises StorageError, ShuttingDown, ProviderError while the service is away; a failed
        try is recorded instead.
        """
        if not plan.uncovered:
            return
        first, last = plan.uncovered[0].seq, plan.uncovered[-1].seq
        if useless := self._useless(plan.session):
            if plan.last_try:
                await self._cover(plan.session, Coverage(first, last, False, useless))
            return
        failures = plan.failures
        reason = "failed_before"
        for part in await self._parts(plan):
            while failures < TRIES:
                saved, reason = await self._try(plan, part, failures, ask)
                if saved:
                    break
                failures = await self._failed(plan.session, reason)
                log.warning("flush_failed", session=plan.session, reason=reason, failures=failures)
                if failures < TRIES and not plan.last_try:
                    return
            else:
                await self._cover(plan.session, Coverage(first, last, False, reason))
                return
            if part.covered >= first:
                await self._cover(plan.session, Coverage(first, part.covered, True, reason))
                first, failures = part.covered + 1, 0

    def _useless(self, session: SessionKey) -> str:
        """Why there is no point in asking; "" if there is one."""
        # The daily notes belong to the owner: nothing said among others is written there.
        if kind_of(session) is not Kind.MAIN:
            return NO_MEMORY
        return "" if self._settings.enabled else "disabled"

    async def _parts(self, plan: CompactionPlan) -> tuple[Part, ...]:
        """What to ask about. A crash may have cut an earlier flush of these rows with half of it
        written down, or all of it; asked again about the very same rows, it goes on where it was.
        Rows that have come since are asked about on their own.
        """
        budget = max(1, self._part_tokens())
        start = f"{_key(plan.session)}{plan.uncovered[0].seq}-"
        asked = await when_space(self._clock, lambda: self._store.last_asked(plan.session, start))
        known = re.match(r"\d+", asked.removeprefix(start))
        last = int(known.group()) if known else 0
        rows = plan.uncovered

        def parts() -> tuple[Part, ...]:
            old = [row for row in rows if row.seq <= last]
            new = [row for row in rows if row.seq > last]
            return (*split(old, budget), *split(new, budget))

        return await offload(len(rows), parts, light=ROWS)

    async def _try(
        self, plan: CompactionPlan, part: Part, failures: int, ask: Ask
    ) -> tuple[bool, str]:
        """Whether a part was saved, and the word for it. What came from outside is asked about apart, so
        that what the rest gives is free of it.
        """
        # A turn that ended badly keeps its key, so each further try has its own; the count is
        # stored, so a restart asks under the same key again.
        tries = plan.given_up * TRIES + failures
        again = f"#{tries + 1}" if tries else ""
        key = f"{_key(plan.session)}{part.name}"
        rows = part.rows
        clean, outside = await offload(
            len(rows), lambda: (cleaned(plan.session, rows), from_outside(rows)), light=ROWS
        )
        saved, reason = await self._asked(plan, clean, f"{key}{again}", "", ask)
        if saved and outside:
            saved, other = await self._asked(plan, outside, f"{key}-outside{again}", _APART, ask)
            reason = other if not saved or other == _STORED else reason
        return saved, reason

    async def _asked(
        self, plan: CompactionPlan, rows: Sequence[Row], key: str, more: str, ask: Ask
    ) -> tuple[bool, str]:
        now = self._clock.now().astimezone(self._clock.zone)
        system, text = flush_prompt(self._settings, now, str(self._clock.zone), self._daily_dir)
        opening = "" if rows[0].role is RowRole.USER else _EARLIER
        question = Question(
            key, system, f"{text}{more}", tuple(rows), _TOOLS, plan.summary or opening
        )
        failpoints.hit("flush.begun")
        try:
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                answer = await ask(question)
        except ShuttingDown:
            raise
        except TimeoutError:
            return False, "timeout"
        except ProviderError as error:
            if error.away:
                raise  # nothing has been tried yet
            return False, error.reason
        except AgentdError as error:
            return False, error.reason
        failpoints.hit("flush.done")
        if answer.writes:
            return True, _STORED
        return (True, "no_reply") if is_no_reply(answer.text) else (False, "wrote_nothing")

    async def _failed(self, session: SessionKey, reason: str) -> int:
        return await when_space(self._clock, lambda: self._store.flush_failed(session, reason))

    async def _cover(self, session: SessionKey, coverage: Coverage) -> None:
        await when_space(self._clock, lambda: self._store.cover(session, coverage))
        log.info(
            "flush_done" if coverage.ok else "flush_given_up",
            session=session,
            first=coverage.first,
            last=coverage.last,
            reason=coverage.reason,
        )


def _key(session: SessionKey) -> str:
    return f"flush:{session}:"
