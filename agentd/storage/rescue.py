"""Makes the state database fit to be opened: salvages a damaged one, refuses to start where it is
missing.

The damaged files are kept in a folder of `damages.py`. The salvaged database replaces them by
renames, in an order that the next start can continue: in that folder it gets its final name once it
is complete, and moves to its place after the damaged files have left it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

import structlog

from agentd.core.errors import StateMissing, StorageError
from agentd.core.health import Problem
from agentd.core.paths import cure_of, read_regular, require_regular, sync_directory, sync_file
from agentd.storage.damages import MARK, Damages
from agentd.storage.files import SECONDS, SoundnessLook, look, open_file, read_only
from agentd.storage.keys import KEY_BYTES
from agentd.storage.migrations import Schema
from agentd.storage.proofs import Seals, commits_in, describe_commits, key_of, ring_of
from agentd.storage.salvage import Salvaged, salvage
from agentd.storage.sqlite_errors import translate

log = structlog.get_logger()

_FILES = ("", "-wal", "-shm", "-journal", "-acknowledged")
_SALVAGED = "salvaged.db"
_MOST_BYTES = 1 << 20  # bytes of a note that are searched for our marks
_OUR_MARK = b"<!-- agentd:"
_OUR_FILES = ("index.db", "facts.key", "rows.key", "versions", "state.db-acknowledged")


_MOST_NAMED = 8
_COUNTS = "SELECT 1 FROM sqlite_schema WHERE name = 'proof'"
_NAMED = {
    "rows": "rows of conversations",
    "sessions": "sessions",
    "facts": "facts",
    "jobs": "jobs",
}


def is_used(state_dir: Path, workspace: Path) -> bool:
    """Whether an agentd has worked here before: files that it keeps beside the database exist, or a
    note contains its marks.
    """
    if any((state_dir / name).exists() for name in _OUR_FILES):
        return True
    return any(_is_marked(note) for note in (workspace / "memory").glob("*.md"))


def make_sound(
    path: Path,
    schema: Schema,
    now: datetime,
    *,
    used: Callable[[], bool],
    backup: Callable[[], Path | None] = lambda: None,
    seconds: float = SECONDS,
    proofs: bool = True,
) -> SoundnessLook:
    """Make sure that the database at `path` is sound or does not exist yet; return how far it was
    checked. No program may have it open.

    `used` tells whether a database must have existed, `backup` which backup to recommend. A check
    takes about `seconds` at most for each of its two readings, unless damage is suspected already.
    Without `proofs` it is not compared with the acknowledged commits; tests use that to show what
    the comparison is for.

    Raises StateMissing if the database existed and is gone; StorageError for a file that is not
    agentd's, that a newer agentd wrote, or that cannot be read or salvaged for lack of rights or
    room.
    """
    try:
        _finish(path)
        for suffix in _FILES[1:]:  # SQLite itself would wait for the other end of a pipe
            require_regular(path.with_name(path.name + suffix))
        if not path.exists():
            if used():
                raise _missing(path, backup())
            return SoundnessLook()
        suspected = unsound_mark(path)
        limit = threading.TIMEOUT_MAX if suspected.exists() else seconds
        found = look(path, schema, limit) if path.stat().st_size else _empty(path, used)
        suspected.unlink(missing_ok=True)
        if not found.damage and path.stat().st_size and _holds_nothing(path) and used():
            found = SoundnessLook("it holds nothing")  # all was in the log, which is gone
        if found.damage:
            log.error("state_damaged", database=path.name, damage=found.damage)
            _rescue(path, schema, found.damage, backup(), now)
            return SoundnessLook()
        if proofs and (problem := _unproven(path, backup())):
            _record(path, problem, now)
    except OSError as error:
        raise StorageError(
            f"{error.filename or path} cannot be used: {error.strerror}",
            cure=f"{cure_of(error)}; nothing was changed",
        ) from error
    return found


def begin_anew(path: Path, schema: Schema, now: datetime) -> list[Path]:
    """Create a new, empty database where there is none; return the leftover files that were renamed
    out of the way. Raises StorageError, also if there is a database.
    """
    if path.exists() and path.stat().st_size:
        raise StorageError(
            f"{path} is there", cure="nothing is missing: start agentd, which looks at it"
        )
    aside = []
    for suffix in _FILES:
        part = path.with_name(path.name + suffix)
        if part.exists():
            aside.append(part.rename(part.with_name(f"{part.name}.before-{now:%Y%m%dT%H%M%S}")))
    conn, _ = open_file(path, schema, "FULL")
    conn.close()
    return aside


def _holds_nothing(path: Path) -> bool:
    with closing(read_only(path)) as conn:
        return conn.execute("SELECT 1 FROM sqlite_schema").fetchone() is None


def _empty(path: Path, used: Callable[[], bool]) -> SoundnessLook:
    # A killed first start leaves an empty file without a log.
    has_log = path.with_name(f"{path.name}-wal").exists()
    return SoundnessLook("it is empty" if has_log or used() else "")


def _rescue(path: Path, schema: Schema, damage: str, backup: Path | None, now: datetime) -> None:
    damages = Damages(path)
    folder = damages.folder()
    part, whole = folder / f"{_SALVAGED}.part", folder / _SALVAGED
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        found = salvage(path, part, schema)
        forget_count(part)
    except sqlite3.Error as error:
        raise translate(error, part) from error
    sync_file(part)
    damages.record(folder, _problem(path, folder, damage, found, backup), now)
    part.rename(whole)
    sync_directory(folder)
    _move(path, folder)
    log.warning("state_salvaged", rows=sum(found.found.values()), folder=str(folder))


def unsound_mark(path: Path) -> Path:
    """Return the path of the file that records that a full check has found damage: the next start
    then reads everything, however long that takes.
    """
    return path.with_name(f"{path.name}-unsound")


def forget_count(path: Path) -> None:
    """Reset the commit count of a database that comes from elsewhere. Raises sqlite3.Error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        if conn.execute(_COUNTS).fetchone():
            conn.execute("UPDATE proof SET commits = 0")


def _unproven(path: Path, backup: Path | None) -> Problem | None:
    """Return the Problem if acknowledged commits are missing, or if the ring or the key that would
    show that is gone or another one; None if all is proven.
    """
    ring = commits_in(ring_of(path))
    try:
        with closing(read_only(path)) as conn:
            commits, key_id = 0, None
            if conn.execute(_COUNTS).fetchone():  # older versions did not count commits
                commits, key_id = conn.execute("SELECT commits, key_id FROM proof").fetchone()
            lost = [ring[number] for number in sorted(ring) if number > commits]
            names = describe_commits(conn, lost)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    cure = f"send again what is missing; {_backup_advice(backup)}" if backup else "send it again"
    if lost:
        count = max(ring) - commits
        told = ", ".join(names[:_MOST_NAMED]) or "none of them a row or a message"
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        text = (
            f"{count} changes that were acknowledged are not in {path.name}, since the end of its"
            " write-ahead log was damaged or deleted, or an earlier file was put in its place:"
            f" {told}{more}"
        )
        return Problem("acknowledged_lost", text, cure)
    if commits > 1 and not ring:  # number 1 marks the start of counting and may have no slot
        text = (
            f"{ring_of(path).name} is gone, so nothing tells whether the last changes are all there"
        )
        return Problem("acknowledged_unknown", text, "look whether your last messages are there")
    if key_id is not None and not _is_key(path, key_id):
        text = (
            f"{key_of(path).name} is gone or another, so nothing tells whether rows of "
            "conversations are what was stored; they have new digests from now on"
        )
        return Problem("rows_key_lost", text, "if you have a backup, compare with it")
    return None


def _is_key(path: Path, key_id: bytes) -> bool:
    try:
        key = read_regular(key_of(path))
    except FileNotFoundError:
        return False
    return len(key) == KEY_BYTES and Seals(key).key_id == key_id


def _record(path: Path, problem: Problem, now: datetime) -> None:
    """Record the problem together with the files that show it, before they are overwritten."""
    log.error(problem.code, database=path.name)
    damages = Damages(path)
    folder = damages.folder()
    for part in (path.with_name(f"{path.name}-wal"), ring_of(path)):
        if part.exists():
            shutil.copyfile(part, folder / part.name)
            (folder / part.name).chmod(0o600)
            sync_file(folder / part.name)
    key = key_of(path)
    if problem.code == "rows_key_lost" and key.exists():
        key.rename(folder / key.name)
    cure = f"{problem.cure}; removing {folder} ends this notice"
    damages.record(folder, Problem(problem.code, problem.text, cure), now)


def _backup_advice(backup: Path) -> str:
    return (
        f"the newest backup is {backup}: `agentd stop`, then `agentd restore "
        f"{shlex.quote(str(backup))} --force`"
    )


def _finish(path: Path) -> None:
    """Complete a rescue that a crash cut short: move a complete salvaged file to its place; delete
    a folder with an incomplete one.
    """
    for folder in sorted(path.parent.glob(f"{path.name}{MARK}*")):
        if (folder / _SALVAGED).exists():
            _move(path, folder)
        elif (folder / f"{_SALVAGED}.part").exists():
            shutil.rmtree(folder)


def _move(path: Path, folder: Path) -> None:
    for suffix in _FILES:
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(folder / part.name)
    sync_directory(folder)
    (folder / _SALVAGED).rename(path)
    sync_directory(path.parent)


def _problem(
    path: Path, folder: Path, damage: str, found: Salvaged, backup: Path | None
) -> Problem:
    told = f"salvaged, and in use, are {_row_counts(found.found)}"
    count = sum(found.refused.values())
    lost = f"; {count} more that were read had no place any more" if count else ""
    cure = (
        f"compare with what you remember; {folder} keeps the damaged files, and removing that "
        "folder ends this notice"
    )
    if backup is not None:
        cure = f"{cure}; {_backup_advice(backup)}"
    text = (
        f"{path.name} was damaged ({damage}): {told}{lost}; what could not be read is "
        "lost but for a backup"
    )
    return Problem("state_salvaged", text, cure)


def _row_counts(rows: Mapping[str, int]) -> str:
    named = [f"{name}: {rows.get(table, 0)}" for table, name in _NAMED.items()]
    others = sum(rows.values()) - sum(rows.get(table, 0) for table in _NAMED)
    return f"{', '.join(named)}, others: {others}"


def _missing(path: Path, backup: Path | None) -> StateMissing:
    file = shlex.quote(str(backup)) if backup else "FILE"
    return StateMissing(
        f"{path} is gone, and an agentd has worked here before: the conversations were in it",
        cure=(
            f"put it back; or `agentd restore {file} --force` from a backup; or `agentd init "
            "--new-state` to begin without them"
        ),
    )


def _is_marked(note: Path) -> bool:
    try:
        with note.open("rb") as file:
            return _OUR_MARK in file.read(_MOST_BYTES)
    except OSError:
        return False
