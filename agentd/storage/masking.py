"""Masking words in the state database: conversations, turns, jobs, beats and alerts.

Otherwise rows of a transcript never change. A row that is masked keeps its number, its time and its
tool calls; what only its provider understands is dropped from it, since that may say the words in a
form nobody can read, or be signed together with what was changed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from agentd.domain.erasure import MASK, Needles
from agentd.domain.message import Block, Opaque, Text, decode_blocks, encode_block
from agentd.domain.turn import SessionKey
from agentd.errors import Busy
from agentd.storage.codec import dumps
from agentd.storage.sqlite import Database
from agentd.storage.transcript import retitle

_FORGET = "forget"  # the tool's name
PAGE = 200  # rows that one transaction looks at

Without = Callable[[Collection[SessionKey]], AbstractAsyncContextManager[None]]
_Change = Callable[[Needles, str], str]

_OPEN = "SELECT id FROM turns WHERE state = 'running' AND ended_at IS NULL"
_SOME = "SELECT rowid AS place, COLUMNS FROM TABLE WHERE rowid > ? ORDER BY rowid LIMIT ?"
_MASK = "UPDATE TABLE SET PLACES WHERE rowid = ?"
_SESSIONS_OF = "SELECT key FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
_OUTDATE = "UPDATE sessions SET generation = generation + 1 WHERE id = ?"


class Masking:
    """The Eraser of the state database, but for facts, which their own store blanks.

    `without` keeps sessions out of the search index while their rows are changed, so that a crash
    leaves no words in the index that are gone from the rows.
    """

    def __init__(self, db: Database, without: Without) -> None:
        self._db = db
        self._without = without
        self._awaited: tuple[Needles, frozenset[int]] | None = None  # turns that went on

    @property
    def name(self) -> str:
        """See Eraser."""
        return "transcripts"

    async def erase(self, needles: Needles) -> int:
        """See Eraser. Raises Busy, when all is masked, as long as a turn goes on that went on while
        this was first called: it may still write the words.
        """
        before = await self._db.read(_open_turns)
        awaited = self._awaited
        places = await self._mask(needles)
        if awaited is None or awaited[0] != needles:
            open_ = before | await self._db.read(_open_turns)
            self._awaited = needles, open_
        else:
            open_ = awaited[1] & before
        if open_:
            raise Busy(
                "a turn that goes on may still write what is forgotten",
                cure="nothing: it is looked at again when the turn has ended",
            )
        self._awaited = None
        return places

    async def _mask(self, needles: Needles) -> int:
        guilty = await self._guilty(needles)
        async with self._db.erasing():
            if guilty:
                keys = await self._db.read(partial(_keys, sessions=guilty))
                async with self._without(keys):
                    places = await self._change("rows", needles)
                    for session in guilty:
                        await self._db.write(partial(_refresh, session=session))
            else:
                places = 0
            for table in COLUMNS.keys() - {"rows"}:
                places += await self._change(table, needles)
        return places

    async def _guilty(self, needles: Needles) -> list[int]:
        """The sessions with rows that say it."""
        found: set[int] = set()
        after: int | None = 0
        while after is not None:
            after, sessions = await self._db.read(partial(_look, needles=needles, after=after))
            found |= sessions
        return sorted(found)

    async def _change(self, table: str, needles: Needles) -> int:
        places, after = 0, 0
        while True:
            step = partial(_mask_page, table=table, needles=needles, after=after)
            seen, changed = await self._db.write(step)
            places += changed
            if seen is None:
                return places
            after = seen


def _open_turns(conn: sqlite3.Connection) -> frozenset[int]:
    return frozenset(row["id"] for row in conn.execute(_OPEN))


def _keys(conn: sqlite3.Connection, sessions: Collection[int]) -> list[SessionKey]:
    found = conn.execute(_SESSIONS_OF, (json.dumps(list(sessions)),))
    return [SessionKey(row["key"]) for row in found]


def _look(
    conn: sqlite3.Connection, needles: Needles, after: int
) -> tuple[int | None, frozenset[int]]:
    """The last row of a page, None behind the end, and the sessions of rows that are to be changed."""
    rows = conn.execute(
        "SELECT id, session_id, blocks FROM rows WHERE id > ? ORDER BY id LIMIT ?", (after, PAGE)
    ).fetchall()
    guilty = {r["session_id"] for r in rows if _blocks(needles, r["blocks"]) != r["blocks"]}
    return (rows[-1]["id"] if rows else None), frozenset(guilty)


def _mask_page(
    conn: sqlite3.Connection, table: str, needles: Needles, after: int
) -> tuple[int | None, int]:
    """The last row of a page, None behind the end, and how many rows were changed."""
    columns = COLUMNS[table]
    names = ", ".join(columns)
    rows = conn.execute(
        _SOME.replace("COLUMNS", names).replace("TABLE", table), (after, PAGE)
    ).fetchall()
    changed = 0
    for row in rows:
        new = {
            name: change(needles, row[name])
            for name, change in columns.items()
            if isinstance(row[name], str)
        }
        new = {name: text for name, text in new.items() if text != row[name]}
        if new:
            places = ", ".join(f"{name} = ?" for name in new)
            conn.execute(
                _MASK.replace("TABLE", table).replace("PLACES", places),
                (*new.values(), row["place"]),
            )
            changed += 1
    return (rows[-1]["place"] if rows else None), changed


def _refresh(conn: sqlite3.Connection, session: int) -> None:
    """Take a session's title from its rows again, which was cut out of them, and make stale what is
    being summarised of them now.
    """
    retitle(conn, session)
    conn.execute(_OUTDATE, (session,))


def _text(needles: Needles, text: str) -> str:
    return needles.masked(text)


def _json(needles: Needles, text: str) -> str:
    if not needles.glimpsed(text):
        return text
    data = json.loads(text)
    masked = needles.within(data)
    return text if masked == data else dumps(masked)


def _outcome(needles: Needles, text: str) -> str:
    """The words, calls and failure of a turn's outcome; the rest are no words."""
    if not needles.glimpsed(text):
        return text
    data: dict[str, Any] = json.loads(text)
    said = {name: data[name] for name in ("text", "tool_calls", "failure") if name in data}
    masked = needles.within(said)
    calls = masked.get("tool_calls", ())
    masked["tool_calls"] = [_wish(needles, c) if isinstance(c, dict) else c for c in calls]
    return text if masked == said else dumps({**data, **masked})


def _blocks(needles: Needles, text: str) -> str:
    """The blocks of a row, of which the opaque ones go if another is changed or they say it."""
    if not needles.glimpsed(text):
        return text
    blocks = decode_blocks(json.loads(text))
    masked = [_block(needles, block) for block in blocks]
    if masked == [encode_block(block) for block in blocks]:
        return text
    kept = [d for d, block in zip(masked, blocks, strict=True) if not isinstance(block, Opaque)]
    return dumps(kept or [encode_block(Text(MASK))])


def _block(needles: Needles, block: Block) -> dict[str, Any]:
    data = encode_block(block)
    for name in _WORDS:
        if name in data:
            data[name] = needles.within(data[name])
    return _wish(needles, data)


def _wish(needles: Needles, call: dict[str, Any]) -> dict[str, Any]:
    """A call of the tool that forgets names what is to go, in however few words."""
    if call.get("name") != _FORGET or not needles.glimpsed(dumps(call.get("input"))):
        return call
    return {**call, "input": {"query": MASK}}


_WORDS = ("text", "content", "input", "raw")  # parts of an encoded block

# Every column that may hold words, and how it is masked. What a call of an open turn is about to do
# stays, since recovery compares it by its bytes: it is erased when the turn ends.
COLUMNS: Mapping[str, Mapping[str, _Change]] = {
    "sessions": {"title": _text, "summary": _text, "flush_failure": _text},
    "turns": {"text": _text, "outcome": _outcome},
    "rows": {"blocks": _blocks},
    "silent_rows": {"blocks": _blocks},
    "coverages": {"reason": _text},
    "calls": {"output": _json},
    "beats": {"text": _text, "reason": _text},
    "jobs": {"text": _text},
    "job_runs": {"text": _text, "reason": _text},
    "alerts": {"text": _text},
}
