"""The schemas of the two databases, as numbered steps from an empty file to the newest version."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files

from msgspec import Struct

from agentd.core.errors import StorageCorrupt, StorageError


class Schema(Struct, frozen=True):
    """The schema of one kind of database. Step n leads from version n-1 to n; a released step is
    never edited.

    `application_id` is in the file's header and tells agentd's files from others. A `derived`
    database can be rebuilt from other data, so a damaged file is put aside instead of refused. The
    content of a `guarded` one is proven, see `proofs.py`.
    """

    name: str
    application_id: int
    steps: tuple[str, ...]
    derived: bool = False
    guarded: bool = False


def _read(*names: str) -> tuple[str, ...]:
    folder = files("agentd.storage") / "sql"
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


STATE = Schema(
    "state",
    0x41474453,
    _read(
        "state_001.sql",
        "state_002.sql",
        "state_003.sql",
        "state_004.sql",
        "state_005.sql",
        "state_006.sql",
        "state_007.sql",
        "state_008.sql",
        "state_009.sql",
        "state_010.sql",
        "state_011.sql",
        "state_012.sql",
        "state_013.sql",
        "state_014.sql",
        "state_015.sql",
        "state_016.sql",
        "state_017.sql",
    ),
    guarded=True,
)
INDEX = Schema(
    "index",
    0x41474449,
    _read(
        "index_001.sql",
        "index_002.sql",
        "index_003.sql",
        "index_004.sql",
        "index_005.sql",
        "index_006.sql",
        "index_007.sql",
        "index_008.sql",
        "index_009.sql",
    ),
    derived=True,
)


_OF_SQLITE = {  # tables that SQLite creates and drops itself
    ("table", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
    ("table", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}


def check(conn: sqlite3.Connection, schema: Schema) -> int:
    """Return the file's version, 0 for a new file; write nothing.

    Raises StorageCorrupt for a file that is not agentd's, StorageError for one of a newer agentd.
    """
    (version,) = conn.execute("PRAGMA user_version").fetchone()
    (owner,) = conn.execute("PRAGMA application_id").fetchone()
    (tables,) = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if owner != schema.application_id and (owner or version or tables):
        raise StorageCorrupt(
            f"the {schema.name} database is not one of agentd's",
            cure="move the file away, or point agentd at another state directory",
        )
    if version > len(schema.steps):
        raise StorageError(
            (
                f"the {schema.name} database has version {version}; this agentd "
                f"knows {len(schema.steps)}"
            ),
            cure="install the agentd that wrote it, or a newer one; nothing was changed",
        )
    return int(version)


def check_shape(conn: sqlite3.Connection, schema: Schema) -> None:
    """Check that the database has exactly the tables, indices and triggers of its version, as the
    steps make them. Raises StorageCorrupt if not, and whatever `check` raises.
    """
    version = check(conn, schema)
    with closing(sqlite3.connect(":memory:")) as fresh:
        for step in schema.steps[:version]:
            fresh.executescript(step)
        ours, theirs = _objects(fresh), _objects(conn)
    for kind, name in sorted(ours.keys() ^ theirs.keys()):
        what = "has no" if (kind, name) in ours else "has a"
        raise _foreign(schema, f"{what} {kind} {name!r}")
    for (kind, name), words in ours.items():
        if theirs[kind, name] != words:
            raise _foreign(schema, f"has another {kind} {name!r}")


def _objects(conn: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of everything in the schema, by kind and name, without SQLite's own tables.
    Blanks and quotation marks are removed: versions of SQLite that rename things write them
    differently.
    """
    found = conn.execute("SELECT type, name, sql FROM sqlite_schema")
    return {
        (str(kind), str(name)): re.sub(r"[\s\"]+", "", str(sql))
        for kind, name, sql in found
        if (kind, name, sql) not in _OF_SQLITE
    }


def _foreign(schema: Schema, what: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"the {schema.name} database {what}, which agentd did not make",
        cure="take another backup: what is in this one could act by itself",
    )


def migrate(conn: sqlite3.Connection, schema: Schema) -> None:
    """Run the missing steps, each in one transaction with the new version number."""
    done = check(conn, schema)
    for number, step in enumerate(schema.steps[done:], start=done + 1):
        try:
            conn.executescript(
                f"BEGIN IMMEDIATE;\n{step}\nPRAGMA application_id = {schema.application_id};\n"
                f"PRAGMA user_version = {number};\nCOMMIT;"
            )
        except sqlite3.Error:
            if conn.in_transaction:
                conn.rollback()
            raise
