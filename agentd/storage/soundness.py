"""Whether a database file is whole, looked at before anything is written to it. Blocking."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentd.core.errors import StorageCorrupt, StorageError
from agentd.storage.migrations import Schema, check_shape
from agentd.storage.sqlite_errors import corrupt, translate

LARGE = 16 * 1024 * 1024  # bytes of a derived file that is not read before it is used: .02 s
SECONDS = 0.5  # that each of the two readings at a start may take


@dataclass(frozen=True, slots=True)
class SoundnessLook:
    """What a look has found: why the file is damaged, "" if no damage was seen, and whether all of it
    was read.
    """

    damage: str = ""
    is_complete: bool = True


def look(path: Path, schema: Schema, seconds: float = SECONDS) -> SoundnessLook:
    """Read a database that nobody has open, and write nothing. All of it and its indices if that can be
    done in `seconds`, else in as many once more its pages alone. Raises StorageError for a file that
    cannot be read for another reason than damage, and for one that is not ours or of a newer agentd.
    """
    try:
        with closing(read_only(path)) as conn:
            found = _damage(conn, schema)
            return found or _read(conn, seconds)
    except sqlite3.Error as error:
        told = translate(error, path)
        if not isinstance(told, StorageCorrupt):
            raise told from error
        return SoundnessLook(str(error))
    except UnicodeDecodeError:  # SQLite's own message names what is damaged
        return SoundnessLook("its schema cannot be read")


def check_whole(conn: sqlite3.Connection, path: Path) -> None:
    """Read the file, and not what is known of it. Raises sqlite3.Error, StorageCorrupt."""
    conn.execute("PRAGMA shrink_memory")
    if conn.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise corrupt(path)


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes neither the file nor its log, not even when it is closed. Nobody may have
    the database open.
    """
    log = path.with_name(f"{path.name}-wal")
    # Without a log the file is all there is: read as such it needs no index of a log beside it, for which a
    # full disk has no room.
    kind = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?{kind}", uri=True, isolation_level=None)
    conn.text_factory = lenient
    return conn


def lenient(data: bytes) -> str:
    """The text of a column, which damage may have made no Unicode."""
    return data.decode("utf-8", "replace")


def _damage(conn: sqlite3.Connection, schema: Schema) -> SoundnessLook | None:
    """Whether what stands in the header and the schema is not what the steps make. That of another
    program, or of a newer agentd, is its own business. Raises StorageError for these.
    """
    tables = {str(name) for (name,) in conn.execute("SELECT name FROM sqlite_schema")}
    try:
        check_shape(conn, schema)
    except StorageCorrupt as error:
        if "sessions" not in tables and tables:
            raise
        return SoundnessLook(error.message)
    except StorageError:  # its version is a newer one's; or a damaged number, with our very tables
        if not _is_shaped(conn, schema):
            raise
        return SoundnessLook("the version in its header is damaged")
    return None


def _is_shaped(conn: sqlite3.Connection, schema: Schema) -> bool:
    with closing(sqlite3.connect(":memory:")) as copy:
        for step in schema.steps:
            copy.executescript(step)
        query = "SELECT type, name FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'"
        return set(copy.execute(query)) == set(conn.execute(query))


def _read(conn: sqlite3.Connection, seconds: float) -> SoundnessLook:
    for pragma in ("integrity_check", "quick_check"):
        with _limited(conn, seconds):
            try:
                (told,) = conn.execute(f"PRAGMA {pragma}(1)").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
            else:
                why = "" if told == "ok" else str(told).splitlines()[-1]
                return SoundnessLook(why, is_complete=pragma == "integrity_check")
    return SoundnessLook(is_complete=False)


@contextmanager
def _limited(conn: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt what the connection does when the time is over."""
    timer = threading.Timer(seconds, conn.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
