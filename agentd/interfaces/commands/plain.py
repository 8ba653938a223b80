"""Plain, aligned text for terminals and pipes, with times as the owner's clock shows them."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.core.ports import Clock  # loads more than a quick command should wait for

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MANY_MINUTES = 5
_DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_WIDEST = 60
_WIDEST_LAST = 240  # nothing stands behind the last column
_STEP = 4
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")  # between columns
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class TimeFormatter:
    """Formats times relative to the clock's now, in its zone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def clock(self) -> Clock:
        """The clock whose zone and time are used."""
        return self._clock

    def short(self, at: str) -> str:
        """Return an ISO time in short words, a future one with the time until then; any other text
        unchanged.
        """
        if not _ISO.fullmatch(at):
            return at
        now = self._clock.now()
        moment = datetime.fromisoformat(at)
        local, here = moment.astimezone(self._clock.zone), now.astimezone(self._clock.zone)
        days = (local.date() - here.date()).days
        words = f"{_DAYS.get(days, f'{local:%Y-%m-%d}')} {local:%H:%M}"
        return f"{words}, in {span(moment - now)}" if moment > now else words

    def exact(self, at: str) -> str:
        """Return an ISO time to the second in the clock's zone; any other text unchanged."""
        if not _ISO.fullmatch(at):
            return at
        return f"{datetime.fromisoformat(at).astimezone(self._clock.zone):%Y-%m-%d %H:%M:%S}"

    def age(self, at: str) -> timedelta:
        """Return how long ago an ISO time was."""
        return self._clock.now() - datetime.fromisoformat(at)

    def read(self, value: Any) -> Any:
        """Return a daemon's answer with all ISO times replaced by short words."""
        match value:
            case str():
                return self.short(value)
            case dict():
                return {key: self.read(item) for key, item in value.items()}
            case list():
                return [self.read(item) for item in value]
        return value


def span(duration: timedelta) -> str:
    """Return a duration in its largest unit and the next smaller one."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next((at for at, (number, _) in enumerate(parts) if number), len(parts) - 1)
    # Nobody wants seconds beside many minutes.
    last = first + 1 if parts[first][1] == "min" and minutes >= _MANY_MINUTES else first + 2
    shown = [f"{number} {unit}" for number, unit in parts[first:last] if number]
    return " ".join(shown) or "0 s"


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], empty: str) -> str:
    """Return one line a row below a header of column names; `empty` if there are no rows."""
    lines = [
        [
            _cell(row.get(column), _WIDEST_LAST if column == columns[-1] else _WIDEST)
            for column in columns
        ]
        for row in rows
    ]
    if not lines:
        return empty
    lines.insert(0, [column.replace("_", " ") for column in columns])
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def fields(values: Mapping[str, Any]) -> str:
    """Return one line a value with aligned names; nested values are indented below their name."""
    return "\n".join(_field_lines(values, ""))


def folded(text: str, width: int) -> str:
    """Wrap lines to `width`. Continuation lines are indented to the last column; if little room is
    left there, the last column moves to a line of its own.
    """
    return "\n".join(part for line in text.split("\n") for part in _folded_line(line, width))


def words(value: Any) -> str:
    """Return a single value as text for people."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {words(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        told = [words(item) for item in value]
        return ("; " if any(", " in one for one in told) else ", ").join(told) or "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def is_plain(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal gets text only, without colours."""
    return bool(environ.get("NO_COLOR")) or environ.get("TERM", "dumb") in {"", "dumb", "unknown"}


def visible(text: str) -> str:
    """Return `text` without control characters and characters that change the text direction."""
    return "".join(c for c in text if not _steers(c))


def revealed(text: str) -> str:
    """Return `text` with control and text-direction characters spelled out as escapes: text that a
    user judges must hide nothing.
    """
    return "".join(f"\\u{ord(c):04x}" if _steers(c) else c for c in text)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return “1 fact”, “2,000 facts”; `nouns` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def spent(usd: float, tokens: int) -> str:
    """Return the cost of calls; in tokens if they have no price, since “$0.00” would say that they
    were free.
    """
    return counted(tokens, "token") if tokens and not usd else f"${usd:.2f}"


def _field_lines(values: Mapping[str, Any], indent: str) -> Iterable[str]:
    width = max((len(key) for key in values), default=0)
    for key, value in values.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}"
            yield from _field_lines(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{indent}{name}"
            yield from (f"{indent}  {words(item)}" for item in value)
        else:
            below = "\n" + " " * (len(indent) + width + 2)
            yield f"{indent}{name.ljust(width)}  {below.join(words(value).splitlines())}"


def _steers(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _TURNING or unicodedata.category(character) == "Cc"


def _folded_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    margin = len(line) - len(line.lstrip(" "))
    gaps = list(_GAP.finditer(line))
    if gaps and gaps[-1].end() > width * 3 // 4:
        head, last = line[: gaps[-1].start()], line[gaps[-1].end() :]
        return [*_folded_line(head, width), *_folded_line(" " * (margin + _STEP) + last, width)]
    return textwrap.wrap(
        line[margin:],
        width,
        initial_indent=line[:margin],
        subsequent_indent=" " * (gaps[-1].end() if gaps else margin),
        replace_whitespace=False,
        expand_tabs=False,
        break_on_hyphens=False,
    )


def _cell(value: Any, widest: int) -> str:
    text = " ".join(words(value).split())
    return text if len(text) <= widest else text[: widest - 1] + "…"
