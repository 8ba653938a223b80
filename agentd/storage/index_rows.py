"""Writes chunks as rows of the index database and reads them back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import date

from agentd.core.search import MOVES, Chunk, Entry, LinePatch, Source
from agentd.core.text import well_formed

CHUNK = (
    "c.id, f.path, f.source, c.scope, l.start_line, l.end_line, c.date, c.speaker, c.context,"
    " c.importance, c.text"
)
_UPSERT_FILE = """
INSERT INTO files (path, source, digest) VALUES (?, ?, ?)
ON CONFLICT (path) DO UPDATE SET source = excluded.source, digest = excluded.digest RETURNING id
"""
_LAST_ID = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'"
CHUNKS = "chunks c LEFT JOIN chunk_lines l ON l.id = c.id JOIN files f ON f.id = c.file_id"
_INSERT_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_LINES = "INSERT INTO chunk_lines VALUES (?, ?, ?, ?)"
_ALL_OF_FILE = """
SELECT l.start_line, l.end_line, c.* FROM chunk_lines l JOIN chunks c ON c.id = l.id
WHERE l.file_id = ? AND l.start_line >= ? ORDER BY l.id
"""
_ENTRIES_OF_FILE = """
SELECT COLUMNS, c.terms, c.digest, c.traits
FROM files f JOIN chunk_lines l ON l.file_id = f.id JOIN chunks c ON c.id = l.id
WHERE f.path = ? AND l.start_line >= ? ORDER BY l.start_line, l.id
""".replace("COLUMNS", CHUNK)
_IDS_OF_FILE = "SELECT id FROM chunk_lines WHERE file_id = ? ORDER BY id"
_IDS_ON_LINES = """
SELECT id FROM chunk_lines WHERE file_id = ? AND start_line >= ? AND start_line < ?
"""
_MOVE = """
UPDATE chunk_lines SET start_line = start_line + ?, end_line = end_line + ?
WHERE file_id = ? AND start_line >= ?
"""
_COUNT_MOVES = """
INSERT INTO meta VALUES (?, '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1
"""
_LINES_OF_FILE = """
SELECT l.id, l.start_line, l.end_line FROM files f JOIN chunk_lines l ON l.file_id = f.id
WHERE f.path = ? ORDER BY l.id
"""
_OWN = 2  # leading columns that are not the chunk's content: its id and its file
PARTS = tuple("01234567")  # of the terms of all chunks: a chunk's is its id modulo 8
_INSERT_PART = """
INSERT INTO words_PART (rowid, terms) SELECT id, terms FROM chunks WHERE id > ? AND id % 8 = PART
"""
_DELETE_PART = """
INSERT INTO words_PART (words_PART, rowid, terms)
SELECT 'delete', id, terms FROM chunks
WHERE id IN (SELECT value FROM json_each(?) WHERE value % 8 = PART)
"""
_MERGE_PART = "INSERT INTO words_PART (words_PART) VALUES ('optimize')"
_INSERT_WORDS = (
    *(_INSERT_PART.replace("PART", part) for part in PARTS),
    """
INSERT INTO words_shared (rowid, terms)
SELECT id, terms FROM chunks WHERE id > ? AND scope = ''
""",
)
_DELETE_CHUNKS = (
    *(_DELETE_PART.replace("PART", part) for part in PARTS),
    """
INSERT INTO words_shared (words_shared, rowid, terms)
SELECT 'delete', id, terms FROM chunks
WHERE id IN (SELECT value FROM json_each(?)) AND scope = ''
""",
    "INSERT OR IGNORE INTO words_deleted SELECT value % 8 FROM json_each(?)",
    "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
    "DELETE FROM chunk_lines WHERE id IN (SELECT value FROM json_each(?))",
)

_Place = tuple[int, int]  # first and last line


def put_file(conn: sqlite3.Connection, path: str, digest: str, entries: Sequence[Entry]) -> int:
    """Create or update the file with this digest; return its id."""
    by_path = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    source = entries[0].chunk.source if entries else by_path
    ((file_id,),) = conn.execute(_UPSERT_FILE, (path, source, digest)).fetchall()
    return int(file_id)


def insert(conn: sqlite3.Connection, file_id: int, entries: Sequence[Entry]) -> None:
    """Add chunks to a file."""
    if not entries:
        return
    (last,) = conn.execute(_LAST_ID).fetchone()
    numbered = list(enumerate(entries, last + 1))
    conn.executemany(_INSERT_CHUNK, (_values(n, file_id, entry) for n, entry in numbered))
    places = ((n, file_id, e.chunk.start_line, e.chunk.end_line) for n, e in numbered)
    conn.executemany(_INSERT_LINES, places)
    for statement in _INSERT_WORDS:
        conn.execute(statement, (last,))


def exchange(
    conn: sqlite3.Connection, file_id: int, entries: Sequence[Entry], since: int
) -> list[int]:
    """Replace the chunks of a file from line `since` on by these; return the ids of the deleted
    ones. Chunks of the same lines keep their ids if all of them are identical to the stored ones:
    their ids give their order.
    """
    held: dict[_Place, list[tuple[int, tuple[object, ...]]]] = {}
    for row in conn.execute(_ALL_OF_FILE, (file_id, since)):
        place = (row["start_line"], row["end_line"])
        held.setdefault(place, []).append((row["id"], tuple(row)[len(place) + _OWN :]))
    wanted: dict[_Place, list[Entry]] = {}
    for entry in entries:
        wanted.setdefault((entry.chunk.start_line, entry.chunk.end_line), []).append(entry)
    kept = {
        place
        for place, those in wanted.items()
        if [own for _, own in held.get(place, ())] == [_values(0, 0, one)[_OWN:] for one in those]
    }
    gone = sorted(n for place, rows in held.items() if place not in kept for n, _ in rows)
    _delete(conn, gone)
    new = [e for e in entries if (e.chunk.start_line, e.chunk.end_line) not in kept]
    insert(conn, file_id, new)
    return gone


def patch(conn: sqlite3.Connection, file_id: int, patches: Sequence[LinePatch[Entry]]) -> list[int]:
    """Replace the chunks on some lines of a file, and shift the lines of the chunks after them;
    return the ids of the deleted ones.
    """
    gone: list[int] = []
    moved = 0
    for one in reversed(patches):  # from the end, so that earlier line numbers stay valid
        found = conn.execute(_IDS_ON_LINES, (file_id, one.first, one.end))
        gone += [row["id"] for row in found]
        if one.by:
            moved += conn.execute(_MOVE, (one.by, one.by, file_id, one.end)).rowcount
    _delete(conn, sorted(gone))
    insert(conn, file_id, [piece for one in patches for piece in one.pieces])
    if moved:  # not where lines were appended
        conn.execute(_COUNT_MOVES, (MOVES,))
    return sorted(gone)


def lines_of(conn: sqlite3.Connection, path: str) -> list[tuple[int, int, int]]:
    """Return (id, first line, last line) of each chunk of a file, by id."""
    cursor = conn.cursor()
    cursor.row_factory = None  # plain tuples, in half the time
    return cursor.execute(_LINES_OF_FILE, (path,)).fetchall()


def entries_of(conn: sqlite3.Connection, path: str, since: int) -> list[Entry]:
    """Return the chunks of a file from line `since` on, in order."""
    found = conn.execute(_ENTRIES_OF_FILE, (path, since))
    return [Entry(chunk_of(row), row["terms"], row["digest"], row["traits"]) for row in found]


def remove(conn: sqlite3.Connection, paths: Sequence[str]) -> list[int]:
    """Delete files; return the ids of their chunks."""
    gone: list[int] = []
    for path in paths:
        found = conn.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        if found:
            ids = [row["id"] for row in conn.execute(_IDS_OF_FILE, (found["id"],))]
            _delete(conn, ids)
            conn.execute("DELETE FROM files WHERE id = ?", (found["id"],))
            gone += ids
    return gone


def merge_words(conn: sqlite3.Connection) -> None:
    """Remove the terms of deleted chunks from the full-text tables, which keep them until then.
    Only the parts that lost a chunk are written anew.
    """
    for (part,) in conn.execute("SELECT part FROM words_deleted").fetchall():
        conn.execute(_MERGE_PART.replace("PART", PARTS[part]))
    conn.execute("DELETE FROM words_deleted")
    conn.execute(_MERGE_PART.replace("PART", "shared"))


def chunk_of(row: sqlite3.Row) -> Chunk:
    """Return the chunk of a row with the columns CHUNK."""
    return Chunk(
        path=row["path"],
        start_line=row["start_line"],
        end_line=row["end_line"],
        text=row["text"],
        source=Source(row["source"]),
        scope=row["scope"],
        date=date.fromisoformat(row["date"]) if row["date"] else None,
        speaker=row["speaker"],
        context=row["context"],
        importance=row["importance"],
    )


def _delete(conn: sqlite3.Connection, ids: Sequence[int]) -> None:
    if ids:
        for statement in _DELETE_CHUNKS:
            conn.execute(statement, (json.dumps(ids),))


def _values(number: int, file_id: int, entry: Entry) -> tuple[object, ...]:
    chunk = entry.chunk
    return (
        number,
        file_id,
        chunk.date.isoformat() if chunk.date else None,
        well_formed(chunk.speaker),
        well_formed(chunk.context),
        float(chunk.importance),
        well_formed(chunk.text),
        entry.terms,
        entry.digest,
        entry.traits,
        well_formed(chunk.scope),
    )
