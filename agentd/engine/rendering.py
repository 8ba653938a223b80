"""Renders rows of a conversation as the messages that a model reads. Pure.

Equal rows always give equal messages, and stored rows are never changed. Opaque blocks are sent
whichever provider wrote them, because another provider may answer the next call; each provider
leaves out the blocks of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.clock import minute
from agentd.core.message import Block, Image, Message, Role, Text, ToolResult
from agentd.core.text import shorten
from agentd.core.transcript import Row, RowRole, opens_turn

ALERT_TAG = "alert"
FAILURE_TAG = "failure"
_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?data)", re.IGNORECASE)
_BLANK = "(a message without words)"
_BEGINNING = "(The conversation begins here.)"


class RenderedPast(Struct, frozen=True):
    """The conversation before a turn, as the turn's calls carry it: `rows` are the rows of earlier
    turns, notices included, `messages` are what the model reads of them, and `notices` are the
    alerts after the last user row, which the model has not read yet.
    """

    rows: tuple[Row, ...] = ()
    messages: tuple[Message, ...] = ()
    notices: str = ""
    is_tainted: bool = False  # the rows hold text from outside, or text derived from it


def render_past(rows: Sequence[Row], summary: str = "", zone: tzinfo = UTC) -> RenderedPast:
    """Return the rows before a turn, and the summary of what was before them, as messages with
    times in `zone`.

    Messages whose turn failed before the model said anything are left out: nobody waits for their
    answer any more, and a service that refused one would refuse every later call.
    """
    kept = _without_failed(rows)
    messages = render_rows(kept, zone)
    if summary:
        messages = merge_neighbours([Message(Role.USER, (Text(_summary(summary)),)), *messages])
    elif messages and messages[0].role is Role.ASSISTANT:  # an imported conversation may begin so
        messages = [Message(Role.USER, (Text(_BEGINNING),)), *messages]
    is_tainted = any(row.source.tainted and row.role.is_spoken for row in rows)
    return RenderedPast(tuple(rows), tuple(messages), _open_notices(kept, zone), is_tainted)


def render_rows(rows: Iterable[Row], zone: tzinfo) -> list[Message]:
    """Return the rows as messages with times in `zone`. Alerts stand before the user's words that
    follow them.
    """
    messages: list[Message] = []
    notices: list[str] = []
    for row in rows:
        if row.role is RowRole.NOTICE:
            if row.tag.startswith(ALERT_TAG):
                notices.append(_notice(row, zone))
            continue
        if row.role is RowRole.SUMMARY:
            continue
        blocks = tuple(b for b in row.blocks if not isinstance(b, Text) or b.text.strip())
        if row.role is RowRole.USER and all(isinstance(b, Image) for b in blocks):
            blocks = (*blocks, Text(_BLANK))
        if notices and opens_turn(row):
            blocks = (*(Text(n) for n in notices), *blocks)
            notices = []
        if blocks:
            messages.append(Message(Role(row.role.value), blocks))
    return merge_neighbours(messages)


def _without_failed(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without the messages whose only answer is a failure. Message and failure are
    matched by turn id, because rows of other turns may stand between them. Copied rows have no turn
    ids; there a failure belongs to the last message before it.
    """
    gone: set[int] = set()
    turns: dict[int | None, list[Row]] = {}
    for row in rows:
        if row.role.is_spoken:
            if row.turn_id is None and opens_turn(row):
                turns.pop(None, None)
            turns.setdefault(row.turn_id, []).append(row)
        elif row.role is RowRole.NOTICE and row.tag == FAILURE_TAG:
            turn = turns.pop(row.turn_id, [])
            if not any(r.role is RowRole.ASSISTANT for r in turn):
                gone |= {r.seq for r in turn}
    return [row for row in rows if row.seq not in gone]


def _open_notices(rows: Sequence[Row], zone: tzinfo) -> str:
    """Return the alert notices after the last user row; they go before the new user message."""
    found: list[str] = []
    for row in reversed(rows):
        if opens_turn(row):
            break
        if row.role is RowRole.NOTICE and row.tag.startswith(ALERT_TAG):
            found.append(_notice(row, zone))
    return "\n".join(reversed(found))


def _notice(row: Row, zone: tzinfo) -> str:
    return fence(f"agentd alert of {minute(row.at, zone)}, shown to the user", row.text)


def _summary(summary: str) -> str:
    return fence("agentd, summary of the conversation before this point", summary)


def fence(label: str, text: str) -> str:
    """Return text from elsewhere in a `<data>` element that names its source; the text cannot close
    the element.
    """
    body = _TAG.sub("<\u200b", text)
    return f'<data source="{label}">\n{body}\n</data>'


def merge_neighbours(messages: Iterable[Message]) -> list[Message]:
    """Join neighbouring messages of one role into one, as the API reads them anyway."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1].role is message.role:
            merged[-1] = Message(message.role, (*merged[-1].blocks, *message.blocks))
        else:
            merged.append(message)
    return merged


def clip_rows(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return the rows with their tool results cut to `limit` characters."""
    return [replace(r, blocks=tuple(clip(b, limit) for b in r.blocks)) for r in rows]


def clip(block: Block, limit: int) -> Block:
    """Return a tool result cut to `limit` characters, with a note about the cut; any other block
    unchanged.
    """
    if not isinstance(block, ToolResult) or len(block.text) <= limit:
        return block
    return replace(block, text=shorten(block.text, limit, "to make room"))
