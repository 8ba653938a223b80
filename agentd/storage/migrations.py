"""The shapes of the two databases, as numbered steps from an empty file to the present."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from importlib.resources import files

from agentd.errors import StorageCorrupt, StorageError


@dataclass(frozen=True, slots=True)
class Schema:
    """A database's kind. Step n leads from version n-1 to n; a released step is never edited.

    `application_id` stands in the file's header and tells our files from others'. A `derived`
    database can be built again from other data, so a bad file is put aside instead of refused.
    """

    name: str
    application_id: int
    steps: tuple[str, ...]
    derived: bool = False


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
    ),
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
    ),
    derived=True,
)


def check(conn: sqlite3.Connection, schema: Schema) -> int:
    """The file's version, 0 for a new file; writes nothing.

    Raises StorageCorrupt for somebody else's file, StorageError for one of a newer agentd.
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
            f"the {schema.name} database has version {version}; this agentd knows {len(schema.steps)}",
            cure="install the agentd that wrote it, or a newer one; nothing was changed",
        )
    return int(version)


def migrate(conn: sqlite3.Connection, schema: Schema) -> None:
    """Run the missing steps, each in one transaction with the record that it was run."""
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
