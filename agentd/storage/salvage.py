"""Copies everything that is still readable in a damaged state database into a new one. Blocking.

Rows are read from the pages themselves, not through the damaged file's own structure: first along
the trees of its tables, then from pages that no tree reaches any more, where the shape of a row
shows which table it belongs to.
"""

from __future__ import annotations

import mmap
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentd.storage.migrations import Schema
from agentd.storage.pages import INDEX, TABLE, Buffer, PageKind, Pages, SalvagedRecord, Value

_VERSION = 60  # offset of the schema's version in the file header
_CLASSES: Mapping[str, tuple[type, ...]] = {
    "INTEGER": (int,),
    "REAL": (float, int),  # SQLite stores 2.0 as 2
    "TEXT": (str,),
    "BLOB": (bytes,),
}
_JSON = re.compile(r"[\[{]")
# Tells apart tables with the same number of columns of the same types.
_FORMS: Mapping[tuple[str, str], re.Pattern[str]] = {
    ("alerts", "digest"): re.compile(r"\A[0-9a-f]{16,}+$"),
    ("charges", "usage"): _JSON,
    ("fact_changes", "before"): _JSON,
    ("fact_erasures", "needles"): _JSON,
    ("fact_parked", "fact_id"): re.compile(r"[a-z0-9]{1,8}$"),
    ("graph_withdrawn", "name"): re.compile(r"[^\[{]{9,}"),
}
_WITH_ROWS = frozenset({PageKind.TABLE_LEAF, PageKind.INDEX_LEAF, PageKind.INDEX_INNER})
# Tables without row ids whose rows cannot be mistaken for entries of an index.
_FOUND_BY_SHAPE_ALONE = frozenset({"images", "fact_tombstones", "graph_programs"})
_COLUMNS = "SELECT name, type, [notnull], dflt_value, pk FROM pragma_table_info(?) ORDER BY cid"
_TABLES = "SELECT name, wr FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
_SEQUENCE = "sqlite_sequence"
_OF_SEQUENCE = {"name": "TEXT", "seq": "INTEGER"}  # its columns have no declared type
_ALL = "SELECT * FROM TABLE"
_EMPTY = "DELETE FROM TABLE"
_INSERT = "INSERT INTO TABLE VALUES (MARKS)"
_RAISE = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
_BEGIN = """
INSERT INTO sqlite_sequence SELECT ?, ? WHERE ? NOT IN (SELECT name FROM sqlite_sequence)
"""
_LOST_SESSIONS = """
INSERT INTO sessions (id, key, title, created_at, updated_at)
SELECT session_id, 'chat:salvaged-' || session_id, '', min(at), max(at) FROM rows
WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id
"""
_LOST_TURNS = """
UPDATE rows SET turn_id = NULL WHERE turn_id NOT IN (SELECT id FROM turns)
"""
_COUNT = """
UPDATE sessions SET
    rows = max(rows, (SELECT coalesce(max(seq), 0) FROM rows WHERE session_id = sessions.id)),
    turns = max(turns, (
        SELECT count(*) FROM rows WHERE session_id = sessions.id AND opens_turn = 1
    ))
"""
_BEHIND = "UPDATE sessions SET context_from = 1, covered_to = 0 WHERE context_from > rows + 1"
_NO_SESSION = "DELETE FROM turns WHERE session_id NOT IN (SELECT id FROM sessions)"


class Salvaged(Struct, frozen=True):
    """The result of `salvage`: how many rows of each table were found, and how many the new
    database refused because another row has their place or a value is missing.
    """

    found: Mapping[str, int]
    refused: Mapping[str, int]


class _Column(Struct, frozen=True):
    name: str
    classes: tuple[type, ...]
    is_needed: bool  # NOT NULL
    is_rowid: bool
    has_default: bool
    form: re.Pattern[str] | None

    def takes(self, value: Value) -> bool:
        if value is None:
            return self.is_rowid or not self.is_needed
        if self.is_rowid or not isinstance(value, self.classes):
            return False
        return self.form is None or not isinstance(value, str) or bool(self.form.match(value))

    def forced(self, value: Value) -> Value:
        """Return the value, or the nearest one of the column's type. A row id becomes None: it is
        stored apart.
        """
        own = self.classes[0]
        if self.is_rowid:
            return None
        if value is None:
            return own() if self.is_needed else None
        if isinstance(value, self.classes):
            return value
        if own is str:
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        return str(value).encode() if own is bytes else own()


class _Table(Struct, frozen=True):
    name: str
    columns: tuple[_Column, ...]
    has_rowid: bool

    def takes(self, record: SalvagedRecord) -> bool:
        """Whether the record could be a row of this table."""
        given, left = record.values, self.columns[len(record.values) :]
        return (
            len(given) <= len(self.columns)
            and (record.rowid is not None) == self.has_rowid
            and all(column.takes(value) for column, value in zip(self.columns, given, strict=False))
            and all(column.has_default or not column.is_needed for column in left)
        )

    def forced(self, record: SalvagedRecord) -> SalvagedRecord:
        """Return the record with values that the table can store, in place of damaged ones."""
        given = (*record.values, *[None] * len(self.columns))[: len(self.columns)]
        fit = zip(self.columns, given, strict=True)
        return SalvagedRecord(record.rowid, tuple(column.forced(value) for column, value in fit))

    def insertion(self, record: SalvagedRecord) -> tuple[str, list[Value]]:
        """Return the INSERT statement for the record, and its values."""
        names = [c.name for c in self.columns[: len(record.values)] if not c.is_rowid]
        values: list[Value] = [
            value
            for column, value in zip(self.columns, record.values, strict=False)
            if not column.is_rowid
        ]
        if self.has_rowid:
            names, values = ["rowid", *names], [record.rowid, *values]
        marks = ", ".join("?" * len(names))
        quoted = ", ".join(f'"{name}"' for name in names)
        statement = _INSERT.replace("TABLE", f'"{self.name}" ({quoted})').replace("MARKS", marks)
        return statement, values


def salvage(damaged: Path, target: Path, schema: Schema) -> Salvaged:
    """Create the database `target`, which must have no tables yet, with every row that can be read
    from `damaged` and its log. Its version is the one that the damaged header states, or the newest
    if that is invalid. Raises OSError, sqlite3.Error.
    """
    with ExitStack() as stack:
        pages = Pages(
            _map_file(damaged, stack), _map_file(damaged.with_name(f"{damaged.name}-wal"), stack)
        )
        with closing(sqlite3.connect(target, isolation_level=None)) as conn:
            version = _version(pages, schema)
            for step in schema.steps[:version]:
                conn.executescript(step)
            conn.execute(f"PRAGMA application_id = {schema.application_id}")
            conn.execute(f"PRAGMA user_version = {version}")
            conn.execute("PRAGMA foreign_keys = OFF")
            conn.execute("BEGIN")
            told = _fill(conn, pages)
            _mend(conn)
            conn.execute("COMMIT")
    return told


def _map_file(path: Path, stack: ExitStack) -> Buffer:
    if not path.is_file() or not path.stat().st_size:
        return b""
    file = stack.enter_context(path.open("rb"))
    view = memoryview(stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    stack.callback(view.release)
    return view


def _version(pages: Pages, schema: Schema) -> int:
    first = pages.page(1)
    told = int.from_bytes(first[_VERSION : _VERSION + 4], "big")
    return told if 1 <= told <= len(schema.steps) else len(schema.steps)


def _fill(conn: sqlite3.Connection, pages: Pages) -> Salvaged:
    tables = {table.name: table for table in _tables(conn)}
    made = {name: rows for name in tables if (rows := _all(conn, name))}  # rows the steps insert
    for name in made:
        conn.execute(_EMPTY.replace("TABLE", name))
    found: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    given: list[SalvagedRecord] = []
    # Rows whose number was taken: damage has changed the number of one of the two.
    twice: list[tuple[_Table, SalvagedRecord]] = []
    for table, record, is_in_tree in _rows(pages, tables):
        if table.name == _SEQUENCE:
            given.append(record)
        elif _put(conn, table, record):
            found[table.name] += 1
        elif is_in_tree and table.has_rowid:
            twice.append((table, replace(record, rowid=None)))
        else:
            refused[table.name] += 1
    for table, record in twice:  # they get new numbers, once all others are in place
        is_put = _put(conn, table, record)
        (found if is_put else refused)[table.name] += 1
    for name in made.keys() - found.keys():
        marks = ", ".join("?" * len(made[name][0]))
        conn.executemany(_INSERT.replace("TABLE", name).replace("MARKS", marks), made[name])
    _go_on_counting(conn, given, tables)
    return Salvaged(dict(found), dict(refused))


def _put(conn: sqlite3.Connection, table: _Table, record: SalvagedRecord) -> bool:
    """Insert the record; return False if the table refused it."""
    try:
        conn.execute(*table.insertion(record))
    except sqlite3.IntegrityError:
        return False
    return True


def _go_on_counting(
    conn: sqlite3.Connection, given: Sequence[SalvagedRecord], tables: Mapping[str, _Table]
) -> None:
    """Keep AUTOINCREMENT from issuing a number twice: `given` are the salvaged rows of
    sqlite_sequence, the last number issued for each table.
    """
    for record in given:
        name, number = record.values
        if str(name) in tables:
            conn.execute(_RAISE, (number, name))
            conn.execute(_BEGIN, (name, number, name))


def _all(conn: sqlite3.Connection, table: str) -> list[tuple[Value, ...]]:
    return conn.execute(_ALL.replace("TABLE", table)).fetchall()


def _mend(conn: sqlite3.Connection) -> None:
    """Restore the references between tables: give rows of a lost session a new session, detach rows
    of a lost turn, delete turns of a lost session, and correct the sessions' counts.
    """
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_schema")}
    if {"sessions", "rows", "turns"} <= tables:
        for statement in (_NO_SESSION, _LOST_SESSIONS, _LOST_TURNS, _COUNT, _BEHIND):
            conn.execute(statement)


def _tables(conn: sqlite3.Connection) -> Iterator[_Table]:
    for name, is_without in conn.execute(_TABLES).fetchall():
        if name in {"sqlite_schema", "sqlite_stat1", "sqlite_stat4"}:
            continue
        found = conn.execute(_COLUMNS, (name,)).fetchall()
        keys = sum(1 for *_, pk in found if pk)
        columns = tuple(
            _Column(
                column,
                _CLASSES[kind or _OF_SEQUENCE[column]],
                is_needed=bool(needed) or name == _SEQUENCE or bool(pk and is_without),
                is_rowid=bool(pk) and keys == 1 and kind == "INTEGER" and not is_without,
                has_default=default is not None,
                form=_FORMS.get((name, column)),
            )
            for column, kind, needed, default, pk in found
        )
        yield _Table(name, columns, has_rowid=not is_without)


def _rows(
    pages: Pages, tables: Mapping[str, _Table]
) -> Iterator[tuple[_Table, SalvagedRecord, bool]]:
    """Yield every record as (table, record, whether it was in a tree): first the records in the
    trees of the schema, then those on other pages, which may be earlier states of a row.
    """
    seen: set[int] = set()
    loose: list[tuple[_Table, SalvagedRecord]] = []
    for table, root in list(_roots(pages, tables, seen)):
        family = TABLE if table.has_rowid else INDEX
        for number in pages.tree(root, seen, family):
            for record in pages.records(number):
                if table.takes(record):
                    yield table, record, True
                else:
                    loose.append((table, record))
    for table, record in loose:
        own = _fitting([record], tables)
        yield (own, record, True) if own is not None else (table, table.forced(record), True)
    for number in range(1, pages.count + 1):
        if number in seen or pages.kind(number) not in _WITH_ROWS:
            continue
        for table, record in _of_page(list(pages.records(number)), tables):
            yield table, record, False


def _of_page(
    records: Sequence[SalvagedRecord], tables: Mapping[str, _Table]
) -> Iterator[tuple[_Table, SalvagedRecord]]:
    """Yield the records of a page that no tree reaches, with their tables. Normally all belong to
    one table; damaged ones are matched alone.
    """
    own = _fitting(records, tables)
    for record in records:
        table = own if own is not None and own.takes(record) else _fitting([record], tables)
        if table is not None:
            yield table, record


def _fitting(records: Sequence[SalvagedRecord], tables: Mapping[str, _Table]) -> _Table | None:
    """Return the table that most of the records could belong to; None if there is none."""

    def fit(table: _Table) -> int:
        return sum(table.takes(record) for record in records)

    known = (t for t in tables.values() if t.has_rowid or t.name in _FOUND_BY_SHAPE_ALONE)
    best = max(known, key=fit)
    return best if fit(best) else None


def _roots(
    pages: Pages, tables: Mapping[str, _Table], seen: set[int]
) -> Iterator[tuple[_Table, int]]:
    """Yield each table with its tree's first page, as far as the schema can be read."""
    for number in list(pages.tree(1, seen, TABLE)):
        for record in pages.records(number):
            entry = dict(zip(("type", "name", "of", "root"), record.values, strict=False))
            table, root = tables.get(str(entry.get("name"))), entry.get("root")
            if entry["type"] == "table" and table and isinstance(root, int) and root > 1:
                yield table, root
