"""All text in the state database that may say a fact, and whose it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from agentd.domain.erasure import Written
from agentd.domain.message import Block, Text, ToolResult, ToolUse, decode_blocks
from agentd.domain.source import TextSource, Writer
from agentd.domain.turn import SessionKey
from agentd.ports import Wanted
from agentd.storage.codec import maybe_moment
from agentd.storage.masking import PLACES
from agentd.storage.sqlite import Database

_PAGE = 500  # rows that one look reads

_ROWS = """
SELECT id AS place, PLACES AS places, at, source, blocks AS text FROM rows WHERE id > ? ORDER BY id LIMIT ?
"""
_ONE = "session_id = (SELECT id FROM sessions WHERE key = ?) AND seq = ?"
_PLAIN = """
SELECT rowid AS place, PLACES AS places, AT AS at, TEXT AS text, MINE AS by_user
FROM TABLE WHERE rowid > ? AND TEXT <> '' ORDER BY rowid LIMIT ?
"""
_TABLES = (  # table, when it was written, its words, whether the user wrote them
    ("sessions", "NULL", "summary", "0"),
    ("alerts", "at", "text", "0"),
    ("beats", "at", "text || coalesce(char(10) || reason, '')", "0"),
    ("jobs", "created_at", "text", "created_by = 'owner'"),
    ("job_runs", "at", "text || coalesce(char(10) || reason, '')", "0"),
)


class StoredTexts:
    """The Writings of the state database."""

    name = "transcripts"

    def __init__(self, db: Database) -> None:
        self._db = db

    async def texts(self, wanted: Wanted | None = None) -> AsyncIterator[Sequence[Written]]:
        """See Writings. Raises StorageError."""
        async for texts in self._pages(_ROWS.replace("PLACES", PLACES["rows"]), _of_row, wanted):
            yield texts
        for table, at, text, mine in _TABLES:
            parts = {"PLACES": PLACES[table], "AT": at, "TEXT": text, "MINE": mine, "TABLE": table}
            query = _PLAIN
            for name, part in parts.items():
                query = query.replace(name, part)
            async for texts in self._pages(query, _of_plain, wanted):
                yield texts

    async def said(self, session: SessionKey, seq: int) -> Written | None:
        """One row of a transcript; None if it is gone. Raises StorageError."""
        query = _ROWS.replace("PLACES", PLACES["rows"]).replace("id > ?", _ONE)
        found = await self._db.read(lambda conn: conn.execute(query, (session, seq, 1)).fetchone())
        return _of_row(found) if found else None

    async def _pages(
        self, query: str, made: Callable[[sqlite3.Row], Written], wanted: Wanted | None
    ) -> AsyncIterator[Sequence[Written]]:
        after: int | None = 0
        while after is not None:
            look = partial(_look, query=query, made=made, wanted=wanted, after=after)
            after, texts = await self._db.read(look)
            if texts:
                yield texts


def _look(
    conn: sqlite3.Connection,
    query: str,
    made: Callable[[sqlite3.Row], Written],
    wanted: Wanted | None,
    after: int,
) -> tuple[int | None, list[Written]]:
    """The last row of a page, None behind the end, and the texts of it that are wanted."""
    rows = conn.execute(query, (after, _PAGE)).fetchall()
    few = rows if wanted is None else [r for r in rows if wanted.may_be(r["text"], r["places"])]
    if wanted is not None:
        wanted.pass_over(len(rows) - len(few))
    return (rows[-1]["place"] if rows else None), [made(row) for row in few]


def _of_row(row: sqlite3.Row) -> Written:
    blocks = decode_blocks(json.loads(row["text"]))
    by_user = TextSource.parse(row["source"]).writer is not Writer.AGENT
    if by_user:
        text = "".join(block.text for block in blocks if isinstance(block, Text))
    else:
        text = "\n".join(words for block in blocks for words in _words(block))
    return Written(row["places"], text, maybe_moment(row["at"]), by_user)


def _of_plain(row: sqlite3.Row) -> Written:
    return Written(row["places"], row["text"], maybe_moment(row["at"]), bool(row["by_user"]))


def _words(block: Block) -> Iterator[str]:
    """What a block says, part by part."""
    match block:
        case Text(text) | ToolResult(_, text, _):
            yield text
        case ToolUse(_, name, arguments):
            yield from (name, *_strings(arguments))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _strings(inner)
