"""Asking the model for a summary, and refusing a bad one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import structlog

from agentd.domain.message import Image, Opaque, Text, ToolResult, ToolUse
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import Origin, SessionKey
from agentd.engine import tokens
from agentd.engine.prompt import clip, fence
from agentd.engine.sidecall import SideCall
from agentd.errors import ProviderError

log = structlog.get_logger()

RESULT_CHARS = 2000
MIN_CHARS, MIN_SLICE_TOKENS = 100, 2000
MOST_NAMES = 60  # identifiers in one message; with more it is pasted data
_FIGURES = re.compile(r"[\d/]+")
_GROUPED = re.compile(r"(?P<whole>\d{1,3}(?:[.,_']\d{3})+)(?:[.,]\d{1,2})?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_SEPARATOR = re.compile(r"(?<=\d)[.,' \u00a0\u202f](?=\d{3}(?!\d))")
_IDENTIFIER = re.compile(
    r"""(?P<url>https?://[^\s<>"'`)\]]{1,2000})
      | (?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)
      | (?P<hash>\b(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{7,64}\b)
      | (?P<root>(?<![\w/])~?(?:\.{0,2}/)[\w.@-]{1,200}(?:/[\w.@-]{1,200}){0,40}/?)
      | (?P<path>(?<![\w/.@-])[\w.@-]{1,200}(?:/[\w.@-]{1,200}){1,40})
      | (?P<number>(?<![\w.])\d[\d_,.']{0,60}\d(?!\w))
    """,
    re.VERBOSE,
)


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
    kept = _bare(summary)
    wanted = [name for row in islice(asked, 3) for name in _ends(identifiers(row.text))]
    lost = [name for name in wanted if _bare(name) not in kept]
    return f"it drops {', '.join(lost[:40])}" if lost else ""


def identifiers(text: str) -> tuple[str, ...]:
    """Paths, URLs, UUIDs, hashes and numbers of four digits or more, each once, in order."""
    found: dict[str, None] = {}
    for match in _IDENTIFIER.finditer(text[:100_000]):
        name = match.group().rstrip(".,;:!?")
        if match.lastgroup == "number" or _FIGURES.fullmatch(name):
            found.update(dict.fromkeys(_numbers(name)))
        elif match.lastgroup == "path":
            if name.count("/") > 1 or "." in name.rsplit("/", 1)[-1]:
                found[name] = None
        elif len(name) > 3:
            found[name] = None
    return tuple(found)


def _numbers(text: str) -> list[str]:
    """The numbers of four digits or more in figures that may be a price, a date, a time or a version.

    Whoever retells these writes them in another way: 1.299,00 as 1,299, 21.11.2026 as November 21,
    2026. So the thousands count as one number, and otherwise each run of digits for itself.
    """
    if match := _GROUPED.fullmatch(text):
        return [match["whole"]]
    if _ADDRESS.fullmatch(text):
        return [text]
    return [run for run in re.findall(r"\d+", text) if len(run) >= 4]


def _ends(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) <= MOST_NAMES else (*names[:20], *names[-20:])


def _bare(text: str) -> str:
    """Without the separators that people and models put into numbers."""
    return _SEPARATOR.sub("", text.replace("_", ""))


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
