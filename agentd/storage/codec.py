"""Encodes values as columns and decodes them; leaves out and reports rows that damage made
unreadable.

Tables of jobs, beats, facts and costs have no digests, unlike transcripts. An unreadable row must
not keep the others from being used, and must not go unreported.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog

from agentd.core.errors import AgentdError, StorageError
from agentd.core.health import Problem
from agentd.core.message import Block, Image, Text, TextSource, decode_blocks, encode_blocks
from agentd.core.times import within_calendar
from agentd.core.tool import FileAction, FileIntent, Intent, ToolCall, ToolOutput
from agentd.core.transcript import DAMAGED, Row, RowRole
from agentd.core.turn import (
    Failure,
    FinishedCall,
    Origin,
    SessionKey,
    SessionKind,
    StopReason,
    Turn,
    Usage,
)

_DAMAGED = "(What was stored here is damaged, and left out.)"
_EPOCH = datetime.fromtimestamp(0, UTC)  # of damaged rows: no value of theirs is trusted


def stamp(at: datetime) -> str:
    """Encode an aware time as UTC text, which sorts like the time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def moment(text: str) -> datetime:
    """Decode the text of `stamp`. Damaged text gives 1970; a time at the ends of the calendar gives
    one that exists in every time zone, so that rows can still be listed.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return _EPOCH
    return within_calendar(found) if found.tzinfo else _EPOCH


def maybe_stamp(at: datetime | None) -> str | None:
    """Encode like `stamp`; None stays None."""
    return None if at is None else stamp(at)


def maybe_moment(text: str | None) -> datetime | None:
    """Decode like `moment`; None stays None."""
    return None if text is None else moment(text)


def dumps(value: Any) -> str:
    """Encode as compact JSON; non-ASCII characters stay, unless there is a lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def dump_blocks(blocks: Iterable[Block]) -> str:
    """Encode message blocks as a column."""
    return dumps(encode_blocks(blocks))


def load_images(text: str) -> tuple[Image, ...]:
    """Decode the text of `dump_blocks`; return only the images."""
    return tuple(b for b in decode_blocks(json.loads(text)) if isinstance(b, Image))


def dump_usage(usage: Usage | None) -> str | None:
    """Encode token usage as a column."""
    return None if usage is None else dumps(_usage_fields(usage))


def load_row(row: sqlite3.Row) -> Row:
    """Decode a transcript row. One that is not `proven` is replaced by a placeholder with the tag
    DAMAGED: a user row where it opens a turn, else a notice.
    """
    if not row["proven"]:
        role = RowRole.USER if row["opens_turn"] == 1 else RowRole.NOTICE
        return Row(row["seq"], role, (Text(_DAMAGED),), _EPOCH, row["turn_id"], tag=DAMAGED)
    return Row(
        seq=row["seq"],
        role=RowRole(row["role"]),
        blocks=decode_blocks(json.loads(row["blocks"])),
        at=moment(row["at"]),
        turn_id=row["turn_id"],
        provider=row["provider"],
        usage=load_usage(row["usage"]),
        tag=row["tag"],
        source=TextSource.parse(row["source"]),
    )


def dump_turn(turn: Turn) -> str:
    """Encode the outcome of a turn as a column, without its session and message id."""
    failure = turn.failure
    return dumps(
        {
            "text": turn.text,
            "stop_reason": turn.stop_reason,
            "usage": _usage_fields(turn.usage),
            "tool_calls": [call.as_json() for call in turn.tool_calls],
            "cost_usd": turn.cost_usd,
            "context_tokens": turn.context_tokens,
            "tainted": turn.tainted,
            "failure": failure and [failure.code, failure.message, failure.cure],
        }
    )


def load_turn(session: SessionKey, message_id: str, outcome: str) -> Turn:
    """Decode the ended turn from the text of `dump_turn`."""
    data = json.loads(outcome)
    stop = data["stop_reason"]
    return Turn(
        session=session,
        message_id=message_id,
        text=data["text"],
        stop_reason=StopReason(stop) if stop else None,
        usage=Usage(*data["usage"]),
        tool_calls=tuple(
            FinishedCall(
                call.get("id", ""),  # older versions stored names only
                call["name"],
                call.get("input", {}),
                call["is_error"],
                call.get("is_repetition", False),
            )
            for call in data["tool_calls"]
        ),
        cost_usd=data["cost_usd"],
        context_tokens=data.get("context_tokens", 0),  # older versions stored none
        tainted=data.get("tainted", False),
        failure=Failure(*data["failure"]) if data["failure"] else None,
    )


def dump_intent(intent: Intent) -> tuple[str, bytes | None]:
    """Encode an intent as two columns: JSON, and the bytes of its file change."""
    call, file = intent.call, intent.file
    data: dict[str, Any] = {
        "id": call.id,
        "name": call.name,
        "input": dict(call.input),
        "session": call.session,
        "kind": call.kind,
        "origin": call.origin,
        "tainted": call.tainted,
        "approved": call.approved,
    }
    if file is None:
        return dumps(data), None
    data["file"] = [file.path, file.action, file.before, file.after, file.offset]
    return dumps(data), file.data


def load_intent(text: str, content: bytes | None) -> Intent:
    """Decode the columns of `dump_intent`."""
    data = json.loads(text)
    call = ToolCall(
        id=data["id"],
        name=data["name"],
        input=data["input"],
        session=SessionKey(data["session"]),
        kind=SessionKind(data["kind"]),
        origin=Origin(data["origin"]),
        tainted=data["tainted"],
        approved=data.get("approved", False),
    )
    if content is None:
        return Intent(call)
    path, action, before, after, offset = data["file"]
    return Intent(call, FileIntent(path, FileAction(action), before, after, content, offset))


def dump_output(output: ToolOutput) -> str:
    """Encode a tool's output as a column."""
    return dumps([output.text, output.is_error, output.tainted, output.is_repetition])


def load_output(text: str) -> ToolOutput:
    """Decode the text of `dump_output`."""
    return ToolOutput(*json.loads(text))


def _usage_fields(usage: Usage) -> list[int]:
    return [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ]


def load_usage(text: str | None) -> Usage | None:
    """Decode the text of `dump_usage`; None stays None."""
    return None if text is None else Usage(*json.loads(text))


log = structlog.get_logger()
T = TypeVar("T")

# What decoding raises for damaged columns: a word that is in no enum, JSON that is invalid or has
# another shape, a number out of range.
_MISMADE = (ValueError, KeyError, TypeError, IndexError, OverflowError, AgentdError)


class UnreadableRows:
    """The unreadable rows of one table, by id. Each is reported as a problem until it is read again
    or deleted. `what` is the word for one row, `cure` says what to do, `key` is the column with the
    id.
    """

    def __init__(self, what: str, cure: str, key: str = "id") -> None:
        self._what = what
        self._cure = cure
        self._key = key
        self._ids: frozenset[int | str] = frozenset()  # never mutated: another thread reads it

    def readable(
        self, rows: Iterable[sqlite3.Row], load: Callable[[sqlite3.Row], T]
    ) -> tuple[T, ...]:
        """Return what `load` makes of each row; record and skip the rows it fails on."""
        found: list[T] = []
        bad: set[int | str] = set()
        good: set[int | str] = set()
        for row in rows:
            row_id = row[self._key]
            try:
                found.append(load(row))
                good.add(row_id)
            except _MISMADE as error:
                bad.add(row_id)
                if row_id not in self._ids:
                    why = type(error).__name__  # not its message, which may quote the row
                    log.warning("row_unreadable", what=self._what, id=row_id, reason=why)
        if bad or self._ids:
            self._ids = self._ids - good | bad
        return tuple(found)

    def one(self, row: sqlite3.Row, load: Callable[[sqlite3.Row], T]) -> T:
        """Return what `load` makes of the row. Raises StorageError if it fails."""
        for found in self.readable((row,), load):
            return found
        raise StorageError(
            f"{self._what} {row[self._key]} cannot be read: its row is damaged", cure=self._cure
        )

    def gone(self, row_id: int | str) -> None:
        """Stop reporting a row that was deleted."""
        self._ids -= {row_id}

    def problems(self) -> tuple[Problem, ...]:
        """One problem that names all unreadable rows; empty if there are none."""
        if not self._ids:
            return ()
        named = ", ".join(f"{self._what} {one}" for one in sorted(self._ids, key=str))
        text = f"left out, since a row of the database is damaged: {named}"
        return (Problem("row_unreadable", text, self._cure),)
