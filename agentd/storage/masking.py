"""Reads and masks the texts of the state database: conversations, turns, jobs, beats and alerts.

Rows of a transcript change in no other way. A masked row keeps its number, its time and its tool
calls, but loses its opaque blocks, which only the provider understands: they may contain the words
in unreadable form, or a signature over the changed text.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import Struct

from agentd.core.alert import alert_digest
from agentd.core.erasure import Erasure, StoredText, offset_after_masking
from agentd.core.errors import Busy
from agentd.core.message import (
    Block,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
    decode_blocks,
)
from agentd.core.ports import TextFilter
from agentd.core.spans import Span
from agentd.core.turn import SessionKey
from agentd.storage.codec import maybe_moment
from agentd.storage.masked_columns import COLUMNS, masked_spans
from agentd.storage.proofs import digest_of
from agentd.storage.sqlite import Database
from agentd.storage.transcript import retitle

PAGE = 1_000  # rows read by one transaction
_KNOWN = -1  # position before the first page: the known rows come first

Without = Callable[[Collection[SessionKey]], AbstractAsyncContextManager[None]]
_T = TypeVar("_T")
_Act = Callable[[sqlite3.Connection, str, Erasure, Sequence[sqlite3.Row]], _T]

_OPEN = "SELECT id FROM turns WHERE state = 'running' AND ended_at IS NULL"
_NEXT = "SELECT rowid AS place, COLUMNS FROM TABLE WHERE rowid > ? ORDER BY rowid LIMIT ?"
_THESE = """
SELECT rowid AS place, COLUMNS FROM TABLE
WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid
"""
_PLACES_OF = _THESE.replace("COLUMNS", "PLACES AS places, *")
_MASK = "UPDATE TABLE SET VALUES WHERE rowid = ?"
_SEAL = "UPDATE rows SET digest = DIGEST WHERE rowid = ?".replace("DIGEST", digest_of())
_SESSIONS_OF = "SELECT key FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
_OUTDATE = "UPDATE sessions SET generation = generation + 1 WHERE id = ?"
_EVIDENCE = """
SELECT e.id, e.begins, e.ends FROM fact_evidence e
JOIN rows r ON r.seq = e.seq JOIN sessions s ON s.id = r.session_id AND s.key = e.session
WHERE r.id = ? AND e.ends > 0
"""
_MOVE = "UPDATE OR REPLACE fact_evidence SET begins = ?, ends = ? WHERE id = ?"
_DIGEST = "UPDATE alerts SET digest = ? WHERE id = ?"


class _Known(Struct):
    """Which rows of a table may have to be changed. The first `count` rows, up to row id `last`,
    have been searched: of these, only `rows`, and rows that a mark names, can contain words for
    which `looked_for` is true.
    """

    rows: list[int] = []
    last: int = 0
    count: int = 0
    looked_for: Callable[[str], bool] = lambda _: False


class Masking:
    """The Eraser and the SearchableTexts of the state database, except for facts, which their own
    store erases.

    `without` keeps sessions out of the search index while their rows are changed, so that a crash
    leaves no words in the index that the rows no longer contain.
    """

    def __init__(self, db: Database, without: Without) -> None:
        self._db = db
        self._without = without
        self._awaited: tuple[object, frozenset[int]] | None = None  # words, running turns
        self._looked = _Known()  # found by `texts`, until `erase` takes it

    @property
    def name(self) -> str:
        """See Eraser."""
        return "transcripts"

    async def erase(self, erasure: Erasure) -> int:
        """See Eraser. Raises Busy, after masking everything, while a turn is still running that was
        running at the first call for these words: it may still write them.
        """
        before = await self._db.read(_open_turns)
        awaited = self._awaited
        places = await self._mask(erasure)
        words = erasure.spans, erasure.sentences, erasure.ids  # no marks: they are found later
        if awaited is None or awaited[0] != words:
            open_ = before | await self._db.read(_open_turns)
            self._awaited = words, open_
        else:
            open_ = awaited[1] & before
        if open_:
            raise Busy(
                "a turn that goes on may still write what is forgotten",
                cure="nothing: it is looked at again when the turn has ended",
            )
        self._awaited = None
        return places

    async def texts(self, wanted: TextFilter | None = None) -> AsyncIterator[Sequence[StoredText]]:
        """See SearchableTexts. Remembers which rows of transcripts were wanted until the next
        `erase` has used that. Raises StorageError.
        """
        self._looked, looked = _Known(), _Known()
        if wanted is None:
            all_rows = _ROWS.replace("PLACES", PLACES["rows"])
            look = partial(_texts_look, query=all_rows, made=_of_row, wanted=None)
        else:
            wanted.expect(await self._db.read(_count))
            named = await self._db.read(partial(_rows_at, places=wanted.places))
            look = partial(_rows_look, wanted=wanted, named=named, looked=looked)
        async for texts in self._pages(look):
            yield texts
        if wanted is not None:
            looked.looked_for = wanted.looked_for()
            self._looked = looked
        for table, at, text, mine in _TABLES:
            parts = {"PLACES": PLACES[table], "AT": at, "TEXT": text, "MINE": mine, "TABLE": table}
            query = _PLAIN
            for name, part in parts.items():
                query = query.replace(name, part)
            look = partial(_texts_look, query=query, made=_of_plain, wanted=wanted)
            async for texts in self._pages(look):
                yield texts

    async def said(self, session: SessionKey, seq: int) -> StoredText | None:
        """Return one row of a transcript; None if it does not exist. Raises StorageError."""
        query = _ROWS.replace("PLACES", PLACES["rows"]).replace("id > ?", _ONE)
        found = await self._db.read(lambda conn: conn.execute(query, (session, seq, 1)).fetchone())
        return _of_row(found) if found else None

    async def _pages(self, look: _Look) -> AsyncIterator[Sequence[StoredText]]:
        after: int | None = 0
        while after is not None:
            after, texts = await self._db.read(partial(look, after=after))
            if texts:
                yield texts

    async def _mask(self, erasure: Erasure) -> int:
        known = {table: _Known() for table in COLUMNS} | {"rows": await self._rows_with(erasure)}
        guilty: dict[str, _Known] = {}
        sessions: set[int] = set()
        for table in sorted(known, key=lambda table: table != "rows"):
            last, pages = await self._walk(self._db.read, _guilty, table, erasure, known[table])
            guilty[table] = _Known(list(chain.from_iterable(pages)), last)
            sessions.update(one for page in pages for told in page.values() for one in told)
        if not any(one.rows for one in guilty.values()):
            return 0
        keys = await self._db.read(partial(_keys, sessions=sessions))
        async with self._db.erasing():
            async with self._without(keys) if keys else nullcontext():
                count = await self._change("rows", erasure, guilty.pop("rows"))
                for session in sorted(sessions):  # titles are made from rows
                    await self._db.write(partial(_refresh, session=session))
            for table, rows in guilty.items():
                count += await self._change(table, erasure, rows)
        return count

    async def _change(self, table: str, erasure: Erasure, guilty: _Known) -> int:
        _, counts = await self._walk(self._db.write, _mask_rows, table, erasure, guilty)
        return sum(counts)

    async def _rows_with(self, erasure: Erasure) -> _Known:
        """Return the rows of transcripts that contain these words, as far as `texts` found out."""
        looked, self._looked = self._looked, _Known()
        excerpts = (one.text for one in erasure.excerpts)
        if not all(map(looked.looked_for, (*erasure.spans, *erasure.sentences, *excerpts))):
            return _Known()
        is_same = await self._db.read(partial(_count, last=looked.last)) == looked.count
        return looked if is_same else _Known()  # a new row may have the id of a deleted one

    async def _walk(
        self,
        run: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
        act: _Act[_T],
        table: str,
        erasure: Erasure,
        known: _Known,
    ) -> tuple[int, list[_T]]:
        """Run `act` for the rows of a table that may have to be changed, page by page; return the
        last row id and the results.
        """
        after: int | None = _KNOWN
        last, results = 0, list[_T]()
        while after is not None:
            last = max(last, after)
            after, result = await run(partial(_step, act, table, erasure, known, after))
            results.append(result)
        return last, results


def _open_turns(conn: sqlite3.Connection) -> frozenset[int]:
    return frozenset(row["id"] for row in conn.execute(_OPEN))


def _keys(conn: sqlite3.Connection, sessions: Collection[int]) -> list[SessionKey]:
    found = conn.execute(_SESSIONS_OF, (json.dumps(list(sessions)),))
    return [SessionKey(row["key"]) for row in found]


def _step(
    act: _Act[_T],
    table: str,
    erasure: Erasure,
    known: _Known,
    after: int,
    conn: sqlite3.Connection,
) -> tuple[int | None, _T]:
    """Run `act` for the next page's rows that may have to be changed, and return the page's last
    row id (None behind the end) with the result. The first page is that of the known rows.
    """
    last, found = _suspects(conn, table, erasure, known, after)
    rows: Sequence[sqlite3.Row] = ()
    if found:  # computing PLACES is slow
        query = _PLACES_OF.replace("TABLE", table).replace("PLACES", PLACES[table])
        rows = conn.execute(query, (json.dumps(sorted(found)),)).fetchall()
    return last, act(conn, table, erasure, rows)


def _suspects(
    conn: sqlite3.Connection, table: str, erasure: Erasure, known: _Known, after: int
) -> tuple[int | None, set[int]]:
    """Return the last row id of the next page, None behind the end, and the ids of its rows that
    may contain the words. The first page is that of the known rows.
    """
    columns = COLUMNS[table]
    is_first = after == _KNOWN
    query = (_THESE if is_first else _NEXT).replace("COLUMNS", ", ".join(columns))
    values = (json.dumps(sorted(known.rows)),) if is_first else (after, PAGE)
    rows = conn.execute(query.replace("TABLE", table), values).fetchall()
    if not (is_first or rows):
        return None, set()
    last = known.last if is_first else int(rows[-1]["place"])
    found = [(row["place"], row[name]) for row in rows for name in columns]
    texts = [(place, text) for place, text in found if isinstance(text, str)]
    guilty = {texts[n][0] for n in _glimpses([text for _, text in texts], erasure)}
    return last, guilty | _marked_rows(conn, table, erasure, after, last)


def _guilty(
    _: sqlite3.Connection, table: str, erasure: Erasure, rows: Sequence[sqlite3.Row]
) -> Mapping[int, tuple[int, ...]]:
    """Return the ids of the rows that must be changed, each with the ids of the sessions to
    refresh.
    """
    return {
        row["place"]: (row["session_id"],) if table == "rows" else ()
        for row in rows
        if _masked_columns(row, table, erasure)
    }


def _masked_columns(row: sqlite3.Row, table: str, erasure: Erasure) -> Mapping[str, str]:
    """Return the new values of the row's columns that change."""
    places = _places(row)
    new = {
        name: change(erasure, row[name], places)
        for name, change in COLUMNS[table].items()
        if isinstance(row[name], str)
    }
    return {name: text for name, text in new.items() if text != row[name]}


def _glimpses(texts: Sequence[str], erasure: Erasure) -> Iterator[int]:
    """Yield the indices of the texts that may contain the words. Texts that need no folding are
    searched together, and halved where something is found: most pages contain nothing.
    """
    usual = []
    for n, text in enumerate(texts):
        if text.isascii() and "\\" not in text:
            usual.append(n)
        elif erasure.glimpsed(text):
            yield n
    waiting = [usual]
    while waiting:
        some = waiting.pop()
        if some and erasure.glimpsed("\n".join(texts[n] for n in some)):
            if len(some) == 1:
                yield some[0]
            else:
                half = len(some) // 2
                waiting += (some[:half], some[half:])


def _marked_rows(
    conn: sqlite3.Connection, table: str, erasure: Erasure, after: int, last: int
) -> set[int]:
    """Return the ids of the rows after `after`, up to `last`, that marks name."""
    if not (marked := erasure.marked):
        return set()
    if table in _OF_ROWS:
        found = conn.execute(_OF_ROWS[table], (json.dumps(list(map(_number, marked))),))
        return {number for (number,) in found if number is not None and after < number <= last}
    query = _NAMED.replace("TABLE", table).replace("PLACES", PLACES[table])
    found = conn.execute(query, (after, last, json.dumps(list(marked))))
    return {number for (number,) in found}


def _number(where: str) -> tuple[str, int]:
    """Return the session and the row number of a place `sessions/KEY.jsonl:ROW`; ("", 0) for a
    place that does not end in a number.
    """
    path, _, seq = where.rpartition(":")
    session = path.removeprefix("sessions/").removesuffix(".jsonl")
    return (session, int(seq)) if seq.isdecimal() else ("", 0)


def _places(row: sqlite3.Row) -> tuple[str, ...]:
    return tuple((row["places"] or "").splitlines())


def _mask_rows(
    conn: sqlite3.Connection, table: str, erasure: Erasure, rows: Sequence[sqlite3.Row]
) -> int:
    """Mask the rows; return how many changed."""
    count = 0
    for row in rows:
        if not (new := _masked_columns(row, table, erasure)):
            continue
        count += 1
        values = ", ".join(f"{name} = ?" for name in new)
        query = _MASK.replace("TABLE", table).replace("VALUES", values)
        conn.execute(query, (*new.values(), row["place"]))
        if table == "rows":
            conn.execute(_SEAL, (row["place"],))
            _move_evidence(conn, row, masked_spans(erasure, row["blocks"], _places(row)))
        if table == "alerts":  # the old digest would confirm a guess of the words
            conn.execute(_DIGEST, (alert_digest(new["text"]), row["place"]))
    return count


def _move_evidence(conn: sqlite3.Connection, row: sqlite3.Row, spans: list[Span]) -> None:
    """Correct the offsets of the evidence in a row after these spans of its text were masked."""
    for known in conn.execute(_EVIDENCE, (row["place"],)).fetchall():
        begins, ends = (offset_after_masking(known[name], spans) for name in ("begins", "ends"))
        if (begins, ends) != (known["begins"], known["ends"]):
            conn.execute(_MOVE, (begins, ends, known["id"]))


def _refresh(conn: sqlite3.Connection, session: int) -> None:
    """Rebuild the session's title, which quotes its rows, and make stale any summary of them that
    is being written now.
    """
    retitle(conn, session)
    conn.execute(_OUTDATE, (session,))


_ROWS_OF_TURN = """(
    SELECT group_concat('sessions/' || s.key || '.jsonl:' || r.seq, char(10))
    FROM rows r JOIN sessions s ON s.id = r.session_id WHERE r.turn_id = TURN
)"""

# SQL for the places of each table's rows, as in `StoredText.where`; lines if there are several.
PLACES: Mapping[str, str] = {
    "sessions": "'sessions/' || key || '.jsonl:summary'",
    "turns": _ROWS_OF_TURN.replace("TURN", "turns.id"),
    "rows": (
        "(SELECT 'sessions/' || key || '.jsonl:' || seq FROM sessions s WHERE "
        "s.id = rows.session_id)"
    ),
    "silent_rows": "''",
    "coverages": "''",
    "calls": _ROWS_OF_TURN.replace("TURN", "calls.turn_id"),
    "beats": "'beats:' || id",
    "watches": "'watches:' || entry",
    "jobs": "'jobs:' || id",
    "job_runs": "'job_runs:' || id",
    "alerts": "'alerts:' || id",
}

# Finds the rows of tables whose places are rows of transcripts, for all marks in one query:
# computing PLACES for each row would be far slower.
_ROWS_NAMED = """
FROM json_each(?) n JOIN sessions s ON s.key = json_extract(n.value, '$[0]')
JOIN rows r ON r.session_id = s.id AND r.seq = json_extract(n.value, '$[1]')
"""
_OF_ROWS = {
    "rows": f"SELECT r.id {_ROWS_NAMED}",
    "turns": f"SELECT r.turn_id {_ROWS_NAMED}",
    "calls": f"SELECT c.id {_ROWS_NAMED} JOIN calls c ON c.turn_id = r.turn_id",
}
_NAMED = """
SELECT rowid FROM TABLE
WHERE rowid > ? AND rowid <= ? AND PLACES IN (SELECT value FROM json_each(?))
"""

_PAGE = 500  # rows of a page in `_texts_look`

_ROWS = """
SELECT id AS place, PLACES AS places, at, source, blocks AS text FROM rows
WHERE id > ? ORDER BY id LIMIT ?
"""
_BLOCKS = "SELECT id AS place, blocks AS text FROM rows WHERE id > ? ORDER BY id LIMIT ?"
_BEGINS, _ENDS = '[{"type":"text","text":"', '"}]'
_THOSE = "id IN (SELECT value FROM json_each(?))"
_ONE = "session_id = (SELECT id FROM sessions WHERE key = ?) AND seq = ?"
_PLAIN = """
SELECT rowid AS place, PLACES AS places, AT AS at, TEXT AS text, MINE AS by_user
FROM TABLE WHERE rowid > ? AND TEXT <> '' ORDER BY rowid LIMIT ?
"""
_Look = Callable[..., tuple[int | None, list[StoredText]]]
_TABLES = (  # table, and expressions: time, words, whether the user wrote them
    ("sessions", "NULL", "summary", "0"),
    ("alerts", "at", "text", "0"),
    ("beats", "at", "text || coalesce(char(10) || reason, '')", "0"),
    ("watches", "looked_at", "told || char(10) || failure || char(10) || calls", "0"),
    ("jobs", "created_at", "text", "created_by = 'owner'"),
    ("job_runs", "at", "text || coalesce(char(10) || reason, '')", "0"),
)


def _count(conn: sqlite3.Connection, last: int | None = None) -> int:
    """Return the number of rows of transcripts, up to the row id `last` if given."""
    query = "SELECT count(*) FROM rows WHERE ? IS NULL OR id <= ?"
    (count,) = conn.execute(query, (last, last)).fetchone()
    return int(count)


def _rows_at(conn: sqlite3.Connection, places: Collection[str]) -> frozenset[int]:
    """Return the ids of the rows of transcripts at these places."""
    named = [_number(one) for one in places if one.startswith("sessions/")]
    return frozenset(number for (number,) in conn.execute(_OF_ROWS["rows"], (json.dumps(named),)))


def _rows_look(
    conn: sqlite3.Connection,
    wanted: TextFilter,
    named: frozenset[int],
    looked: _Known,
    after: int,
) -> tuple[int | None, list[StoredText]]:
    """Return what `_texts_look` returns, for transcripts. Only the blocks of each row are read
    first, because most rows are not wanted. Rows in `named` are, whatever they say.
    """
    cursor = conn.cursor()
    cursor.row_factory = None  # plain tuples, in less time
    rows = cursor.execute(_BLOCKS, (after, PAGE)).fetchall()
    if not rows:
        return None, []
    places, texts = zip(*rows, strict=True)
    last = int(places[-1])
    chosen = {places[n] for n in wanted.among(texts)}
    chosen |= {number for number in named if after < number <= last}
    looked.rows += sorted(chosen)
    looked.count, looked.last = looked.count + len(rows), last
    wanted.pass_over(len(rows) - len(chosen))
    if not chosen:
        return last, []
    query = _ROWS.replace("PLACES", PLACES["rows"]).replace("id > ?", _THOSE)
    few = conn.execute(query, (json.dumps(sorted(chosen)), PAGE))
    return last, [_of_row(row) for row in few]


def _texts_look(
    conn: sqlite3.Connection,
    query: str,
    made: Callable[[sqlite3.Row], StoredText],
    wanted: TextFilter | None,
    after: int,
) -> tuple[int | None, list[StoredText]]:
    """Return the last row id of a page, None behind the end, and its wanted texts."""
    rows = conn.execute(query, (after, _PAGE)).fetchall()
    few = rows if wanted is None else [r for r in rows if wanted.may_be(r["text"], r["places"])]
    if wanted is not None:
        wanted.pass_over(len(rows) - len(few))
    return (rows[-1]["place"] if rows else None), [made(row) for row in few]


def _of_row(row: sqlite3.Row) -> StoredText:
    by_user = _is_by_user(row["source"])
    text = _only_text(row["text"])
    if text is not None:
        return StoredText(row["places"], text, maybe_moment(row["at"]), by_user)
    blocks = decode_blocks(json.loads(row["text"]))
    if by_user:
        text = "".join(block.text for block in blocks if isinstance(block, Text))
    else:
        text = "\n".join(words for block in blocks for words in _words(block))
    return StoredText(row["places"], text, maybe_moment(row["at"]), by_user)


@lru_cache(maxsize=16)  # few different sources, many rows of each
def _is_by_user(source: str) -> bool:
    return TextSource.parse(source).writer is not Writer.AGENT


def _only_text(blocks: str) -> str | None:
    """Return the text of a row that is a single text block without escapes, as most are; None for
    any other. Parsing each as JSON would take most of the time.
    """
    text = blocks[len(_BEGINS) : -len(_ENDS)]
    is_one = blocks.startswith(_BEGINS) and blocks.endswith(_ENDS)
    return text if is_one and '"' not in text and "\\" not in text else None


def _of_plain(row: sqlite3.Row) -> StoredText:
    return StoredText(row["places"], row["text"], maybe_moment(row["at"]), bool(row["by_user"]))


def _words(block: Block) -> Iterator[str]:
    """Yield the words of a block, part by part."""
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
