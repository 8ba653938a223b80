"""Asking the model for a summary, and refusing a bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import structlog

from agentd.domain.message import Image, Opaque, Text, ToolResult, ToolUse
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import Origin, SessionKey
from agentd.engine import tokens
from agentd.engine.compaction.identifiers import absent, identifiers
from agentd.engine.prompt import clip, fence
from agentd.engine.sidecall import SideCall
from agentd.errors import ProviderError

log = structlog.get_logger()

RESULT_CHARS = 2000
MIN_CHARS, MIN_SLICE_TOKENS = 100, 2000
MOST_NAMES = 60  # identifiers in one message; with more it is pasted data


class SummaryRefused(ProviderError):
    """The model's summary would lose too much."""


@dataclass(slots=True)
class Summariser:
    """Turns rows into a summary that stands for them."""

    calls: SideCall
    instructions: str
    model: str
    part_tokens: int  # how much of the conversation one call may carry

    def close(self) -> None:
        """Begin no more model calls."""
        self.calls.draining = True

    async def summarise(self, session: SessionKey, rows: Sequence[Row], earlier: str) -> str:
        """A summary of `earlier` and `rows`, in as many calls as the window needs.

        Raises SummaryRefused when the second try is no better than the first, ProviderError,
        ShuttingDown.
        """
        hint = why = ""
        for _ in range(2):
            summary = earlier
            for part in parts(rows, self.part_tokens):
                summary = await self._once(session, part, summary, hint)
            why = fault(summary, rows)
            if not why:
                return summary
            log.info("summary_refused", session=session, why=why)
            hint = f"A first try could not be used: {why}. Keep that this time."
        raise SummaryRefused(f"The summary was refused: {why}.", kind="summary_refused")

    async def _once(self, session: SessionKey, rows: Sequence[Row], earlier: str, hint: str) -> str:
        pieces = [fence("earlier summary", earlier)] if earlier else []
        pieces += [fence("conversation", rendered(rows)), hint, "Write the summary now."]
        text = "\n\n".join(filter(None, pieces))
        return await self.calls.ask(session, Origin.SUMMARY, self.instructions, text, self.model)


def fault(summary: str, rows: Sequence[Row]) -> str:
    """Why the summary may not replace the rows; "" when it may.

    Too short is under 100 characters for more than 2,000 tokens. And whatever identifier (path, URL,
    UUID, hash, number of four digits or more) stands in the last three user messages must be kept.
    Of a message that is full of them, a pasted log, only the first and the last ones count.
    """
    if not summary.strip():
        return "it is empty"
    if len(summary) < MIN_CHARS and tokens.of_rows(rows) > MIN_SLICE_TOKENS:
        return f"it has only {len(summary)} characters"
    asked = (r for r in reversed(rows) if r.role is RowRole.USER and r.text.strip())
    wanted = [name for row in islice(asked, 3) for name in _ends(identifiers(row.text))]
    dropped = absent(wanted, summary)
    return f"it drops {', '.join(dropped[:40])}" if dropped else ""


def _ends(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) <= MOST_NAMES else (*names[:20], *names[-20:])


def parts(rows: Sequence[Row], limit: int) -> list[Sequence[Row]]:
    """The rows in runs of at most `limit` estimated tokens once clipped, at least one row each."""
    runs: list[list[Row]] = [[]]
    used = 0
    for row in rows:
        size = tokens.of_text(_line(row, RESULT_CHARS))
        if runs[-1] and used + size > limit:
            runs.append([])
            used = 0
        runs[-1].append(_fitted(row, limit) if size > limit else row)
        used += size
    return list(runs)


def rendered(rows: Sequence[Row]) -> str:
    """The rows as text, tool results clipped."""
    return "\n\n".join(filter(None, (_line(r, RESULT_CHARS) for r in rows)))


def _fitted(row: Row, limit: int) -> Row:
    """A single row that is larger than a whole call, cut to its head and tail."""
    keep = limit  # characters on each side: together about half the tokens allowed
    blocks = tuple(
        Text(f"{b.text[:keep]}\n[…]\n{b.text[-keep:]}")
        if isinstance(b, Text) and len(b.text) > 2 * keep
        else b
        for b in row.blocks
    )
    return replace(row, blocks=blocks)


def _line(row: Row, result_chars: int) -> str:
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
            case Opaque():
                pass
    # Further lines are indented, so that no text can look like another speaker's.
    said = " ".join(words).replace("\n", "\n  ")
    return f"{row.role.value} ({row.at:%Y-%m-%d %H:%M} UTC): {said}" if words else ""
