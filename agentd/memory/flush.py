"""The flush: before rows leave a context, a silent turn lets the model save what they say."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core import failpoints
from agentd.core.compaction import Answer, CompactionPlan, Question
from agentd.core.errors import AgentdError, ProviderError, ShuttingDown
from agentd.core.message import BY_OWNER, Block, Image, Text, ToolResult, ToolUse
from agentd.core.offloading import offload_rows
from agentd.core.outside import from_outside, without_outside_text
from agentd.core.paths import prompt
from agentd.core.ports import Clock, Contexts
from agentd.core.spans import Span, shift_spans, within
from agentd.core.text import shorten
from agentd.core.transcript import DISABLED, NO_MEMORY, Coverage, Row, RowRole
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.core.verdict import is_no_reply
from agentd.engine import tokens
from agentd.engine.durable import when_space
from agentd.memory.settings import MemoryFlushSettings

log = structlog.get_logger()

_FOLDER = "memory"  # where the prompts say that daily notes are
_SYSTEM, _USER = prompt("flush_system"), prompt("flush_user")
_APPEND_HINT = (
    "Write only by appending to today's note, memory/YYYY-MM-DD.md; all other files are read-only."
)
_SILENCE_HINT = "If there is nothing to store, reply with NO_REPLY alone."
RESULT_CHARS = 2_000  # characters of a tool's result that are shown
# Estimate for pieces: low enough for wide scripts to stay below the budget in most cases.
_CHARS_PER_TOKEN = 2
_SMALLEST = 64
TRIES = 3  # after so many failures the rows are cut unsaved, which is recorded
# A conversation that is sent to a model must not begin with the model's own words.
_EARLIER = "(The beginning of this conversation has been looked at already.)"
# Added to a question about text from outside.
_APART = (
    "\nThe user's own words in this part have been looked at already. Save only what the text from"
    " outside (results of tools, attachments, words of others) adds to them."
)
_STORED = "stored"
_TOOLS = frozenset({"memory_read", "memory_search", "memory_write"})
Ask = Callable[[Question], Awaitable[Answer]]


class MemoryFlush:
    """A CompactionHook that flushes. Every row is covered exactly once: by a success, or by the
    record of its third failure. `part_tokens` returns how many tokens of conversation one question
    may hold.
    """

    name = "memory_flush"

    def __init__(
        self,
        store: Contexts,
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
        """Flush the uncovered rows: one try per call, or all remaining tries when this is the last
        chance. A failed try is recorded. Raises StorageError, ShuttingDown, and ProviderError while
        the service is away.
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
        """Return why a flush has no point; "" if it has."""
        # The daily notes belong to the owner: nothing said among others is written there.
        if kind_of(session) is not SessionKind.OWNER:
            return NO_MEMORY
        return "" if self._settings.enabled else DISABLED

    async def _parts(self, plan: CompactionPlan) -> tuple[FlushPart, ...]:
        """Return the parts to ask about. A crash may have interrupted an earlier flush of these
        rows; asking about the very same rows again resumes it. Rows added since are asked about
        separately.
        """
        budget = max(1, self._part_tokens())
        start = f"{_key(plan.session)}{plan.uncovered[0].seq}-"
        asked = await when_space(self._clock, self._store.last_asked, plan.session, start)
        known = re.match(r"\d+", asked.removeprefix(start))
        last = int(known.group()) if known else 0
        rows = plan.uncovered

        def parts() -> tuple[FlushPart, ...]:
            old = [row for row in rows if row.seq <= last]
            new = [row for row in rows if row.seq > last]
            return (*split(old, budget), *split(new, budget))

        return await offload_rows(rows, parts)

    async def _try(
        self, plan: CompactionPlan, part: FlushPart, failures: int, ask: Ask
    ) -> tuple[bool, str]:
        """Flush a part; return whether it succeeded, and the reason. Text from outside is asked
        about separately, so that it does not taint what the rest gives.
        """
        # A failed turn cannot be run again under its key, so each further try gets another key. The
        # number of tries is stored, so after a restart a try has the same key as before.
        tries = plan.given_up * TRIES + failures
        again = f"#{tries + 1}" if tries else ""
        key = f"{_key(plan.session)}{part.name}"
        rows = part.rows
        clean, outside = await offload_rows(
            rows, lambda: (without_outside_text(plan.session, rows), from_outside(rows))
        )
        saved, reason = await self._ask_model(plan, clean, f"{key}{again}", "", ask)
        if saved and outside:
            saved, other = await self._ask_model(
                plan, outside, f"{key}-outside{again}", _APART, ask
            )
            reason = other if not saved or other == _STORED else reason
        return saved, reason

    async def _ask_model(
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
                raise  # this does not count as a try
            return False, error.reason
        except AgentdError as error:
            return False, error.reason
        failpoints.hit("flush.done")
        if answer.writes:
            return True, _STORED
        if answer.failed:  # the model tried to store something: NO_REPLY after that does not count
            return False, "write_failed"
        return (True, "no_reply") if is_no_reply(answer.text) else (False, "wrote_nothing")

    async def _failed(self, session: SessionKey, reason: str) -> int:
        return await when_space(self._clock, self._store.flush_failed, session, reason)

    async def _cover(self, session: SessionKey, coverage: Coverage) -> None:
        await when_space(self._clock, self._store.cover, session, coverage)
        log.info(
            "flush_done" if coverage.ok else "flush_given_up",
            session=session,
            first=coverage.first,
            last=coverage.last,
            reason=coverage.reason,
        )


def flush_prompt(
    settings: MemoryFlushSettings, now: datetime, zone: str, folder: str = _FOLDER
) -> tuple[str, str]:
    """Return system and user text of a flush at `now`, in the owner's zone, with daily notes in
    `folder`. The user's own prompts get the rules that they lack.
    """
    system = settings.system_prompt.strip() or _SYSTEM
    user = settings.user_prompt.strip() or _USER
    both = f"{system}\n{user}".casefold()
    if "append" not in both or "yyyy-mm-dd" not in both:
        user = f"{user}\n{_APPEND_HINT}"
    if "no_reply" not in both:
        user = f"{user}\n{_SILENCE_HINT}"
    user = f"{user}\nCurrent time: {now:%H:%M} {zone}"
    note, day = f"{folder}/YYYY-MM-DD", f"{now:%Y-%m-%d}"
    system, user = (
        text.replace(f"{_FOLDER}/YYYY-MM-DD", note).replace("YYYY-MM-DD", day)
        for text in (system, user)
    )
    return system, user


def split(rows: Sequence[Row], budget: int) -> tuple[FlushPart, ...]:
    """Split the rows, in order, into as few parts as fit `budget` tokens each. A tool call and its
    result stay in the same part. A text row too large for any part is split into pieces.
    """
    parts: list[FlushPart] = []
    held: list[Row] = []
    weight = 0
    for unit in _units([clip(row) for row in rows]):
        size = tokens.of_rows(unit)
        if held and weight + size > budget:
            parts.append(FlushPart(tuple(held), held[-1].seq))
            held, weight = [], 0
        if size > budget and len(unit) == 1 and _is_words(unit[0]):
            parts.extend(_pieces(unit[0], budget))
            continue
        held.extend(unit)
        weight += size
    if held:
        parts.append(FlushPart(tuple(held), held[-1].seq))
    return tuple(parts)


def clip(row: Row) -> Row:
    """Return the row with long tool results cut and images replaced by their labels."""
    return replace(row, blocks=tuple(map(_clip_block, row.blocks)))


class FlushPart(Struct, frozen=True):
    """Rows for one question. `covered` is the last row that is done when this part is done: a row
    in pieces is done with its last piece. `piece` counts these pieces from 1.
    """

    rows: tuple[Row, ...]
    covered: int
    piece: int = 0

    @property
    def name(self) -> str:
        """`first-last`, with `.n` for a piece of one row: equal for equal rows and budget."""
        span = f"{self.rows[0].seq}-{self.rows[-1].seq}"
        return f"{span}.{self.piece}" if self.piece else span


def _clip_block(block: Block) -> Block:
    if isinstance(block, Image):
        return Text(block.label)
    if not isinstance(block, ToolResult) or len(block.text) <= RESULT_CHARS:
        return block
    return replace(block, text=shorten(block.text, RESULT_CHARS))


def _units(rows: Sequence[Row]) -> Iterator[tuple[Row, ...]]:
    """Yield runs of rows that must stay together, up to where every call has its result."""
    unit: list[Row] = []
    waiting: set[str] = set()
    for row in rows:
        unit.append(row)
        waiting |= {b.id for b in row.blocks if isinstance(b, ToolUse)}
        waiting -= {b.tool_use_id for b in row.blocks if isinstance(b, ToolResult)}
        if not waiting:
            yield tuple(unit)
            unit = []
    if unit:
        yield tuple(unit)


def _is_words(row: Row) -> bool:
    return all(isinstance(block, Text) for block in row.blocks)


def _quoted_spans(row: Row) -> list[Span]:
    """Return the quoted spans of all text blocks, as spans of the row's text."""
    spans: list[Span] = []
    offset = 0
    for block in row.blocks:
        if isinstance(block, Text):
            spans += shift_spans(block.quoted, offset)
            offset += len(block.text)
    return spans


def _pieces(row: Row, budget: int) -> Iterator[FlushPart]:
    size = max(_SMALLEST, budget * _CHARS_PER_TOKEN)
    text, quoted = row.text, _quoted_spans(row)
    # A piece is tainted only by what it quotes itself.
    source = BY_OWNER if row.source.is_owners_own else row.source
    starts = range(0, len(text), size)
    for number, start in enumerate(starts, 1):
        end = start + size
        piece = replace(
            row, blocks=(Text(text[start:end], within(quoted, start, end)),), source=source
        )
        done = row.seq if number == len(starts) else row.seq - 1
        yield FlushPart((piece,), done, number)


def _key(session: SessionKey) -> str:
    return f"flush:{session}:"
