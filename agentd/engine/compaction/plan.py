"""When the context must shrink and where it may be cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from agentd.core.errors import ConfigError
from agentd.core.transcript import History, Row, RowRole, opens_turn
from agentd.engine import tokens


class Thresholds(Struct, frozen=True):
    """Token counts of the next request, `0 < flush_at < compact_at < window`."""

    window: int
    flush_at: int  # from here on, finished messages are offered to memory
    compact_at: int  # from here on, old messages leave the context


def thresholds(
    window: int,
    soft: int,
    *,
    mode: Literal["reserve", "ratio"] = "reserve",
    reserve: int = 20_000,
) -> Thresholds:
    """Return the thresholds for a window of 1,000 tokens or more.

    `compact_at` is the window minus `reserve`, of which at most a quarter of the window counts; in
    mode "ratio" it is three quarters of the window. `flush_at` is `soft` tokens lower, but not by
    more than a quarter of `compact_at`. A window of 100,000 with the defaults flushes at 76,000
    ("ratio": 71,000). Raises ConfigError for a smaller window.
    """
    if window < 1000:
        msg = f"a context window of {window} tokens is too small"
        raise ConfigError(msg, cure="Set [provider] context_window to 1000 or more.")
    compact_at = window * 3 // 4 if mode == "ratio" else window - min(reserve, window // 4)
    return Thresholds(window, compact_at - max(1, min(soft, compact_at // 4)), compact_at)


def smallest_window(fixed: int, soft: int, reserve: int) -> int:
    """Return the smallest window, in steps of about 5 %, whose `flush_at` is at least twice the
    `fixed` tokens that every call carries.
    """
    window = 1000
    while thresholds(window, soft, reserve=reserve).flush_at < 2 * fixed:
        window = window + max(100, window // 20)
    return window


def cut_point(rows: Sequence[Row], tail_tokens: int) -> int:
    """Return the number of the row at which the kept tail begins; that of the first row when
    nothing can go.

    The tail is as long as fits `tail_tokens`, always holds the last user message, and never begins
    between a tool call and its result.
    """
    spoken = [r for r in rows if r.role.is_spoken]
    if not spoken:
        return rows[0].seq if rows else 1
    asked = [r.seq for r in spoken if opens_turn(r)]
    newest = asked[-1] if asked else spoken[0].seq
    best, used = newest, 0
    for row in reversed(spoken):
        used += tokens.of_row(row)
        if used > tail_tokens and row.seq < newest:
            break
        if row.seq <= newest and _may_come_first(row):
            best = row.seq
    return best


def shorter_from(rows: Sequence[Row]) -> int:
    """Return the number of the row from which on a turn carries these rows after all of them proved
    too long: a quarter of their tokens, or none if they are one message and what came of it.
    """
    at = cut_point(rows, tokens.of_rows(rows) // 4)
    if any(r.seq < at for r in rows if r.role.is_spoken):
        return at
    return rows[-1].seq + 1  # the running turn brings the last user message


def first_apart(whole: History, history: History) -> int | None:
    """Return the number of the first row of `whole` that is not in `history`; None if all are."""
    held = {r.seq for r in history.rows}
    return next((r.seq for r in whole.rows if r.seq not in held), None)


def _may_come_first(row: Row) -> bool:
    return row.role is RowRole.ASSISTANT or opens_turn(row)
