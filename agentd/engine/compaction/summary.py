"""Asks the model for summaries, and checks whether they may replace the rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.clock import minute
from agentd.core.errors import ProviderError
from agentd.core.message import Image, OpaqueBlock, Text, ToolResult, ToolUse
from agentd.core.ports import Clock
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import Origin, SessionKey
from agentd.engine import tokens
from agentd.engine.compaction.extract import absent, extract, shorten_to_tokens, wanted_identifiers
from agentd.engine.completion import Completion, Completions
from agentd.engine.rendering import clip, fence

log = structlog.get_logger()

RESULT_CHARS = 2000
MIN_CHARS, MIN_SLICE_TOKENS = 100, 2000
LONGEST = 2_000  # tokens of a summary, and at most an eighth of the window
_WORDS = 0.6  # words per token
_TRIES = 2
_MOST_BEGUN = 4  # sessions whose partial summary is kept


class SummaryFault(Struct, frozen=True):
    """Why a summary may not replace rows: `code` for machines, `text` as a clause for the model."""

    code: str
    text: str


class _Run(Struct, frozen=True):
    """The rows of one summary call; `digest` covers the earlier summary and all rows up to the last
    of these.
    """

    rows: Sequence[Row]
    digest: bytes


class _PartialSummary(Struct, frozen=True):
    """A partial summary from a failed try; `digest` is that of the last run that it covers."""

    digest: bytes
    summary: str


_CUT = SummaryFault("cut_off", "it was cut off before its end")


class SummaryRefused(ProviderError):
    """The model's summary would lose too much or cannot be used; `fault` is the code of the
    SummaryFault.
    """

    def __init__(self, message: str, *, fault: str) -> None:
        super().__init__(message, kind="summary_refused")
        self.fault = fault


class Summariser(Struct):
    """Makes summaries of at most `longest` tokens, which replace rows. One call carries at most
    `part_tokens` of the conversation and takes at most `timeout` seconds.

    The partial summary of a failed try is kept in memory, so that the next try goes on from there.
    """

    completions: Completions
    clock: Clock
    instructions: str
    model: str
    part_tokens: int
    longest: int
    timeout: float
    _begun: dict[SessionKey, _PartialSummary] = field(default_factory=dict)

    async def tokens_since(self, since: datetime) -> int:
        """Return the tokens that summaries have used since then, reservations included."""
        return await self.completions.charges.tokens_since(since, Origin.SUMMARY)

    async def summarise(
        self, session: SessionKey, rows: Sequence[Row], earlier: str, wish: str = ""
    ) -> str:
        """Return a summary of `earlier` and `rows`: one call for each part of at most
        `part_tokens`, and one more where an answer is refused. `wish` is what the user wants from
        the summary.

        Raises SummaryRefused when the second answer for a part is no better than the first,
        ProviderError, TimeoutError, ShuttingDown.
        """
        if wish:
            self.forget(session)  # a partial summary was made without the wish
        summary, left = await self._begin(session, rows, earlier)
        for run in left[:-1]:
            summary = await self._part(session, run.rows, summary, (), wish)
            self._begun[session] = _PartialSummary(run.digest, summary)
            while len(self._begun) > _MOST_BEGUN:
                del self._begun[next(iter(self._begun))]
        names = wanted_identifiers(rows, self.longest)
        summary = await self._part(session, left[-1].rows, summary, names, wish)
        self.forget(session)
        return summary

    async def extract(self, session: SessionKey, rows: Sequence[Row], earlier: str) -> str:
        """Return what replaces a summary that cannot be had: made by rule, without a call, from the
        partial summary of a failed try and excerpts of the rest.
        """
        summary, left = await self._begin(session, rows, earlier)
        self.forget(session)
        rest = [row for run in left for row in run.rows]
        return await asyncio.to_thread(extract, rest, summary, self.longest, self.clock.zone)

    def forget(self, session: SessionKey) -> None:
        """Forget the session's partial summary."""
        self._begun.pop(session, None)

    async def _begin(
        self, session: SessionKey, rows: Sequence[Row], earlier: str
    ) -> tuple[str, list[_Run]]:
        """Return the summary so far, and the runs that it does not cover yet, at least one."""
        runs = await asyncio.to_thread(_runs, rows, earlier, self.part_tokens)  # may be very many
        begun = self._begun.get(session)
        for place, run in enumerate(runs[:-1]):
            if begun is not None and begun.digest == run.digest:
                return begun.summary, runs[place + 1 :]
        return shorten_to_tokens(earlier, 2 * self.longest), runs

    async def _part(
        self,
        session: SessionKey,
        rows: Sequence[Row],
        earlier: str,
        names: Sequence[str],
        wish: str,
    ) -> str:
        found: SummaryFault | None = None
        for _ in range(_TRIES):
            answer = await self._once(session, rows, earlier, wish, found)
            found = _CUT if answer.is_cut else fault(answer.text, rows, names, self.longest)
            if found is None:
                return answer.text
            log.info("summary_refused", session=session, why=found.code)
        code = found.code if found else ""
        raise SummaryRefused(f"The summary was refused: {code}.", fault=code)

    async def _once(
        self,
        session: SessionKey,
        rows: Sequence[Row],
        earlier: str,
        wish: str,
        found: SummaryFault | None,
    ) -> Completion:
        pieces = [fence("earlier summary", earlier)] if earlier else []
        pieces.append(fence("conversation", render_rows(rows, self.clock.zone)))
        if wish:
            pieces.append(f"The user wants this of the summary: {wish}")
        if found is not None:
            pieces.append(f"A first try could not be used: {found.text}. Mend that this time.")
        words = int(self.longest * _WORDS)
        pieces.append(f"Write the summary now, in {words} words at most.")
        async with asyncio.timeout(self.timeout):
            return await self.completions.ask(
                session,
                Origin.SUMMARY,
                self.instructions,
                "\n\n".join(pieces),
                self.model,
                max_tokens=2 * self.longest,  # a longer answer would be refused anyway
            )


def _runs(rows: Sequence[Row], earlier: str, limit: int) -> list[_Run]:
    words = blake2b(earlier.encode(errors="replace"), digest_size=16)
    runs: list[_Run] = []
    for part in parts(rows, limit):
        words.update(f"\n\n{render_rows(part)}".encode(errors="replace"))
        runs.append(_Run(part, words.digest()))
    return runs


def longest_summary(window: int) -> int:
    """Return the most tokens that a summary may have in a window of `window` tokens."""
    return min(LONGEST, window // 8)


def fault(
    summary: str, rows: Sequence[Row], names: Sequence[str], longest: int
) -> SummaryFault | None:
    """Return why the summary may not replace the rows; None if it may.

    It may not be empty, shorter than 100 characters for rows of more than 2,000 tokens, or longer
    than `longest` tokens, and must contain every identifier in `names`.
    """
    if not summary.strip():
        return SummaryFault("empty", "it is empty")
    if len(summary) < MIN_CHARS and tokens.of_rows(rows) > MIN_SLICE_TOKENS:
        return SummaryFault("too_short", f"it has only {len(summary)} characters")
    if (size := tokens.of_text(summary)) > longest:
        return SummaryFault("too_long", f"it has about {size} tokens of {longest} allowed")
    dropped = absent(names, summary)
    return SummaryFault("drops_identifiers", f"it drops {', '.join(dropped)}") if dropped else None


def parts(rows: Sequence[Row], limit: int) -> list[Sequence[Row]]:
    """Return the rows in runs of at most `limit` estimated tokens, tool results clipped, at least
    one row per run.
    """
    runs: list[list[Row]] = [[]]
    used = 0
    for row in rows:
        size = tokens.of_text(_line(row, RESULT_CHARS))
        if runs[-1] and used + size > limit:
            runs.append([])
            used = 0
        runs[-1].append(_fit_row(row, limit) if size > limit else row)
        used += size
    return list(runs)


def render_rows(rows: Sequence[Row], zone: tzinfo = UTC) -> str:
    """Return the rows as text, with tool results clipped."""
    return "\n\n".join(filter(None, (_line(r, RESULT_CHARS, zone) for r in rows)))


def _fit_row(row: Row, limit: int) -> Row:
    """Return a row that is larger than a whole call with its texts cut to their heads and tails."""
    keep = limit  # characters on each side: together about half the tokens allowed
    blocks = tuple(
        Text(f"{b.text[:keep]}\n[…]\n{b.text[-keep:]}")
        if isinstance(b, Text) and len(b.text) > 2 * keep
        else b
        for b in row.blocks
    )
    return replace(row, blocks=blocks)


def _line(row: Row, result_chars: int, zone: tzinfo = UTC) -> str:
    if row.role in (RowRole.NOTICE, RowRole.SUMMARY):
        return ""
    words: list[str] = []
    for block in row.blocks:
        match clip(block, result_chars):
            case Text(text):
                words.append(text)
            case Image() as image:
                words.append(image.label)
            case ToolUse(_, name, arguments):
                words.append(f"[calls {name} {dict(arguments)}]"[:result_chars])
            case ToolResult(_, text, is_error):
                words.append(f"[{'error' if is_error else 'result'}: {text}]")
            case OpaqueBlock():
                pass
    # Further lines are indented, so that no text can look like another speaker's.
    said = " ".join(words).replace("\n", "\n  ")
    return f"{row.role.value} ({minute(row.at, zone)}): {said}" if words else ""
