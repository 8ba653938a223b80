"""One file that holds everything: conversations, memory, configuration; written, checked, read back.

The archive is a tar.gz for the owner alone. `manifest.json`, its last entry, has the SHA-256 of every
other one. The search index is not in it: it is built again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from agentd.errors import AgentdError, InvalidRequest, StorageCorrupt
from agentd.storage.migrations import STATE, check

MANIFEST = "manifest.json"
DATABASE = "state/state.db"
CONFIG = "config.toml"
_FORMAT = 1
_TOPS = ("state", "workspace")
_STRAY = (".agentd-", ".tmp")


@dataclass(frozen=True, slots=True)
class Contents:
    """What goes into an archive: `database` is a copy that nobody writes any more."""

    database: Path
    config_file: Path
    workspace: Path
    versions: Path
    blobs: Path
    facts_key: Path

    def entries(self) -> Iterator[tuple[str, Path]]:
        """Names in the archive and where they come from; links are left out."""
        yield DATABASE, self.database
        if self.config_file.is_file():
            yield CONFIG, self.config_file
        if self.facts_key.is_file():
            yield f"state/{self.facts_key.name}", self.facts_key
        yield from _below("workspace", self.workspace)
        yield from _below("state/versions", self.versions)
        yield from _below("state/blobs", self.blobs)


def write(contents: Contents, file: Path, now: datetime) -> dict[str, Any]:
    """Write the archive and check it by reading it back; `{file, bytes, files}`. Blocks.

    Raises InvalidRequest for a file that exists, AgentdError for one that cannot be written,
    StorageCorrupt for a database that is damaged; then nothing is left behind.
    """
    check_database(contents.database)
    part = file.with_name(f".{file.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as target:
                _fill(target, contents, now)
                target.flush()
                os.fsync(target.fileno())
            count = len(verify(part)["files"])
            os.link(part, file)  # unlike a rename it never replaces anything
        finally:
            part.unlink()
    except FileExistsError:
        raise InvalidRequest(f"{file} exists already", cure="choose another name") from None
    except OSError as error:
        raise AgentdError(
            f"{file} cannot be written: {error.strerror}",
            cure="choose a folder that the daemon may write; a system service does not see homes",
        ) from error
    return {"file": str(file), "bytes": file.stat().st_size, "files": count}


def verify(file: Path) -> dict[str, Any]:
    """The manifest of an archive whose every file is as it was written. Blocks. Raises AgentdError."""
    found: dict[str, str] = {}
    manifest: dict[str, Any] | None = None
    for name, data in read(file):
        if name == MANIFEST:
            manifest = json.loads(data)
        else:
            found[name] = hashlib.sha256(data).hexdigest()
    if manifest is None or manifest.get("format") != _FORMAT:
        raise _damaged(file, "it has no manifest that this agentd knows")
    wrong = {name for name, digest in manifest["files"].items() if found.get(name) != digest}
    if wrong := wrong | (found.keys() - manifest["files"].keys()):
        raise _damaged(file, f"{min(wrong)} is not what was written")
    if DATABASE not in found:
        raise _damaged(file, "it holds no conversations")
    return manifest


def read(file: Path) -> Iterator[tuple[str, bytes]]:
    """The entries of an archive. Blocks. Raises AgentdError for what agentd did not write."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                source = archive.extractfile(member) if member.isreg() else None
                if source is None or not _is_ours(member.name):
                    raise _damaged(file, f"{member.name!r} has no place in it")
                yield member.name, source.read()
    except FileNotFoundError:
        raise AgentdError(f"there is no {file}", cure="name a file of `agentd backup`") from None
    except (OSError, EOFError, tarfile.TarError) as error:
        raise _damaged(file, "it cannot be unpacked") from error


def check_database(path: Path) -> None:
    """Raise StorageCorrupt unless the copy of a database is whole, StorageError if it is newer than
    this agentd.
    """
    try:
        with closing(sqlite3.connect(path)) as conn:
            (told,) = conn.execute("PRAGMA integrity_check(1)").fetchone()
            check(conn, STATE)
    except sqlite3.DatabaseError:
        told = "it is no database"
    if told != "ok":
        raise StorageCorrupt(
            f"the copy of the conversations is damaged: {told}",
            cure="see `agentd doctor`; take an earlier backup if there is one",
        )


def _fill(target: Any, contents: Contents, now: datetime) -> None:
    digests: dict[str, str] = {}
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=6) as archive:
        for name, path in contents.entries():
            data = path.read_bytes()
            digests[name] = hashlib.sha256(data).hexdigest()
            _add(archive, name, data, now)
        manifest: Mapping[str, Any] = {
            "format": _FORMAT,
            "created_at": now.isoformat(),
            "files": digests,
        }
        _add(archive, MANIFEST, json.dumps(manifest, indent=1).encode(), now)


def _add(archive: tarfile.TarFile, name: str, data: bytes, now: datetime) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(now.timestamp())
    archive.addfile(info, io.BytesIO(data))


def _below(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        is_stray = path.name.startswith(_STRAY[0]) and path.name.endswith(_STRAY[1])
        if path.is_file() and not path.is_symlink() and not is_stray:
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _is_ours(name: str) -> bool:
    parts = PurePosixPath(name).parts
    if name in (MANIFEST, CONFIG):
        return True
    return len(parts) > 1 and parts[0] in _TOPS and ".." not in parts


def _damaged(file: Path, why: str) -> AgentdError:
    return AgentdError(
        f"{file} is no whole backup: {why}", cure="take another one; nothing was changed"
    )
