"""Writes, checks and unpacks backups: one file with conversations, memory and configuration.

A backup is a tar.gz archive that only the owner can read. `manifest.json`, its last entry, has the
SHA-256 of every other entry. The search index is left out, since it can be built again.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from msgspec import Struct

from agentd.core.errors import (
    AgentdError,
    InvalidRequest,
    StorageCorrupt,
    StorageError,
    StorageFull,
)
from agentd.core.paths import DaemonPaths, cure_of, ensure_private_dir, sync_directory
from agentd.storage.migrations import STATE, check, check_shape

MANIFEST = "manifest.json"
DATABASE = "state/state.db"
CONFIG = "config.toml"
COPY = ".backup-"  # prefix of the folder in the state directory that holds the copied database
STATE_ALONE = "state"  # value of `holds` in the manifest of a backup of the state alone
_FORMAT = 1
_FILES = (MANIFEST, CONFIG, DATABASE, "state/facts.key", "state/rows.key")
_FOLDERS = ("workspace", "state/versions", "state/blobs", "state/mcp")
_RATIO = 100  # most unpacked bytes for each byte of an archive
_ALWAYS = 64 << 20  # unpacked bytes that are allowed for an archive of any size
_MOST_FILES = 1_000_000
_SPARE = 100 << 20  # bytes of the disk that stay free
_FOR_MESSAGES = 16 << 20  # bytes that stay free for messages stored meanwhile
# Errors of file systems without hard links, such as those of USB sticks and some network ones.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_PIECE = 1 << 16
_MOST_NAMED = 20  # links that are reported by name
_LONGEST_NAME = 200  # characters of a name in an error message
_DEEPEST = 256  # parts of a path; honest archives have fewer
_STRAY = (".agentd-", ".tmp")


Store = Callable[[str, Iterable[bytes]], object]
Link = Callable[[Path, Path], None]
Free = Callable[[Path], int]


class ArchiveContents(Struct, frozen=True):
    """What goes into an archive. `database` is a copy that nobody writes to any more. With
    `state_alone` only the database and the keys are archived; a restore then leaves all other files
    where they are.
    """

    database: Path
    config_file: Path
    workspace: Path
    versions: Path
    blobs: Path
    facts_key: Path
    rows_key: Path
    mcp_pins: Path
    state_alone: bool = False

    def entries(self) -> Iterator[tuple[str, Path]]:
        """Yield each name in the archive with the path of its file. Symbolic links are left out,
        since they may lead anywhere and agentd itself follows none.
        """
        yield DATABASE, self.database
        keys = [key for key in (self.facts_key, self.rows_key) if key.is_file()]
        yield from ((f"state/{key.name}", key) for key in keys)
        if self.state_alone:
            return
        if self.config_file.is_file():
            yield CONFIG, self.config_file
        yield from _below("workspace", self.workspace)
        yield from _below("state/versions", self.versions)
        yield from _below("state/blobs", self.blobs)
        # Left out: logins to MCP servers, which are secrets, and files that are being written.
        pins = sorted(self.mcp_pins.glob("*.json"))
        yield from ((f"state/mcp/{path.name}", path) for path in pins if not path.is_symlink())

    def folders(self) -> Iterator[str]:
        """Yield the names in the archive of the workspace's folders that contain no file, and so
        would not come back with an entry. A git repository needs its empty folders.
        """
        if not self.state_alone:
            for folder, files in _folders(self.workspace):
                if not files and folder != self.workspace:
                    yield f"workspace/{folder.relative_to(self.workspace).as_posix()}"


def skipped_links(workspace: Path) -> dict[str, Any]:
    """Return the workspace's symbolic links as `{links, left_out}`: their number, and the paths of
    the first. What they point to is in no archive. Blocks.
    """
    found = sorted(
        os.fsencode(path.relative_to(workspace)).decode("utf-8", "replace")
        for path in workspace.rglob("*")
        if path.is_symlink()
    )
    return {"links": len(found), "left_out": found[:_MOST_NAMED]}


def free_at(folder: Path) -> int:
    """Return the free bytes of the folder's disk."""
    return shutil.disk_usage(folder).free


@contextmanager
def place_for_copy(places: DaemonPaths, target: Path, free: Free = free_at) -> Iterator[Path]:
    """Yield a path for a copy of the database that is archived into the folder `target`. The copy
    is removed after the block. Blocks. Raises StorageFull if the copy would take the room that
    messages need, StorageError if no copy can be made.
    """
    state = places.state_dir
    log = places.database.with_name(f"{places.database.name}-wal")
    size = sum(path.stat().st_size for path in (places.database, log) if path.exists())
    near = next(path for path in (target, *target.parents) if path.exists())
    copies = 2 if near.stat().st_dev == state.stat().st_dev else 1
    if (left := free(state)) < (needed := copies * size + _FOR_MESSAGES):
        raise StorageFull(
            (
                f"a backup may take {needed // 1_000_000:,} MB in {state}, and "
                f"{left // 1_000_000:,} are free"
            ),
            cure="make room there; until then all is stored as before, and no backup is made",
        )
    try:
        folder = tempfile.mkdtemp(prefix=COPY, dir=state)  # 0700
    except OSError as error:
        raise StorageError(
            f"no copy can be made in {state}: {error.strerror}", cure=cure_of(error)
        ) from error
    try:
        yield Path(folder, places.database.name)
    finally:
        shutil.rmtree(folder)


def write(
    contents: ArchiveContents, file: Path, now: datetime, *, link: Link = os.link
) -> dict[str, Any]:
    """Write the archive and check it by reading it back. Return `{file, bytes, files}`, and the
    result of `skipped_links` unless only the state is archived. `link` makes a hard link. Blocks.

    Raises InvalidRequest if the file exists, AgentdError if the file cannot be written or something
    cannot be read, StorageCorrupt if the database is damaged. Then nothing is left behind.
    """
    check_database(contents.database)
    links = {} if contents.state_alone else skipped_links(contents.workspace)
    try:
        with _begun(file) as part:
            with part.open("wb") as target:
                _fill(target, contents, now)
                target.flush()
                os.fsync(target.fileno())
            count = len(verify(part)["files"])
            _name(part, file, link)
            sync_directory(file.parent)
    except FileExistsError:
        raise InvalidRequest(f"{file} exists already", cure="choose another name") from None
    except OSError as error:
        raise AgentdError(
            f"{file} cannot be written: {error.strerror}",
            cure=(
                "choose a folder with room that the daemon may write; a system "
                "service does not see homes"
            ),
        ) from error
    return {"file": str(file), "bytes": file.stat().st_size, "files": count, **links}


def _name(part: Path, file: Path, link: Link) -> None:
    """Give the written archive its name without replacing a file. Raises FileExistsError,
    OSError.
    """
    try:
        link(part, file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        part.rename(file)


def leftovers(state_dir: Path, backups: Path) -> Iterator[Path]:
    """Yield what killed backups have left over: copies of the database and unfinished archives of
    our own. No backup may be running.
    """
    yield from state_dir.glob(f"{COPY}*")
    yield from backups.glob(f"{_STRAY[0]}*{_STRAY[1]}")


@contextmanager
def _begun(file: Path) -> Iterator[Path]:
    """Yield an empty file beside `file`, which is removed after the block. A file that a killed
    backup left there is replaced, since nobody holds its lock. Raises InvalidRequest while another
    backup to the same file is running.
    """
    part = file.with_name(f"{_STRAY[0]}{file.name}{_STRAY[1]}")
    _discard(part, file)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield part
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


def _discard(part: Path, file: Path) -> None:
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()
    except BlockingIOError:
        raise InvalidRequest(
            f"another backup is being written to {file}", cure="wait for it, or choose another name"
        ) from None
    finally:
        os.close(descriptor)


def verify(file: Path) -> dict[str, Any]:
    """Return the manifest of an archive after checking that every file is as it was written.
    Blocks. Raises AgentdError.
    """
    return _through(file, lambda _, pieces: deque(pieces, 0))


def unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Do `verify`, and write the files into an empty private folder. Blocks. Raises AgentdError;
    then some of the files may exist.
    """

    def store(name: str, pieces: Iterable[bytes]) -> None:
        path = folder / name
        ensure_private_dir(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            target.writelines(pieces)

    manifest = _through(file, store, room=shutil.disk_usage(folder).free - _SPARE)
    try:
        for name in manifest.get("folders", ()):  # older archives have none
            if not isinstance(name, str) or not _is_ours(name):
                raise _damaged_error(file, f"the folder {_short(str(name))} has no place in it")
            ensure_private_dir(folder / name)
    except (TypeError, ValueError, FileExistsError, NotADirectoryError) as error:
        raise _damaged_error(file, "its manifest names folders that are none") from error
    return manifest


def _through(file: Path, store: Store, room: int | None = None) -> dict[str, Any]:
    """Pass each file of the archive to `store` and return the manifest. `room` limits the unpacked
    bytes.
    """
    try:
        manifest, found = _unpack_into(file, store, room)
    except FileNotFoundError:
        raise AgentdError(f"there is no {file}", cure="name a file of `agentd backup`") from None
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _damaged_error(file, "a name in it is that of a file and of a folder") from error
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise _damaged_error(file, f"it cannot be unpacked ({_why(error)})") from error
    if manifest is None or manifest.get("format") != _FORMAT:
        raise _damaged_error(file, "it has no manifest that this agentd knows")
    written = manifest.get("files")
    if not isinstance(written, dict):
        raise _damaged_error(file, "its manifest names no files")
    wrong = {name for name, digest in written.items() if found.get(name) != digest}
    if wrong := wrong | (found.keys() - written.keys()):
        raise _damaged_error(file, f"{min(wrong)!r} is not what was written")
    if DATABASE not in found:
        raise _damaged_error(file, "it holds no conversations")
    return manifest


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or "it is cut or damaged"


def _unpack_into(
    file: Path, store: Store, room: int | None
) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Return the manifest, None without one, and the digests of all other files."""
    found: dict[str, str] = {}
    manifest: dict[str, Any] | None = None
    for name, pieces in _entries(file, room):
        if name == MANIFEST:
            manifest = _parse_manifest(file, b"".join(pieces))
            continue
        digest = hashlib.sha256()
        store(name, _hash_pieces(pieces, digest))
        found[name] = digest.hexdigest()
    return manifest, found


def _entries(file: Path, room: int | None) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the archive's files, each as an iterator of pieces to be consumed before the next file.

    Raises AgentdError for anything that agentd did not write, before any part of it is unpacked: a
    name that is not agentd's or comes twice, an entry that is not a regular file, more data than an
    honest archive of that size can contain. Errors of reading are raised as they are.
    """
    known: set[str] = set()
    with (
        _open_archive(file) as packed,
        tarfile.open(fileobj=cast("IO[bytes]", packed), mode="r:") as archive,
    ):
        while (member := archive.next()) is not None:
            vars(archive)["members"].clear()  # tarfile would keep every member in memory
            if not member.isreg() or member.issparse() or not _is_ours(member.name):
                raise _damaged_error(file, f"{_short(member.name)} has no place in it")
            if member.name in known or len(known) == _MOST_FILES:
                raise _damaged_error(
                    file, f"{_short(member.name)} comes twice, or after too many others"
                )
            packed.require(member.size)
            if room is not None and packed.position + member.size > room:
                raise AgentdError(
                    f"{file} does not fit on the disk", cure="make room, then restore it again"
                )
            known.add(member.name)
            yield member.name, _pieces(archive, member)


def _short(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")


def _pieces(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    source = archive.extractfile(member)
    while source is not None and (piece := source.read(_PIECE)):
        yield piece


def _hash_pieces(pieces: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _parse_manifest(file: Path, data: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise _damaged_error(file, "its manifest cannot be read")
    return manifest


@contextmanager
def _open_archive(file: Path) -> Iterator[_Unzipped]:
    """Open the archive for reading without its compression. Raises OSError, and AgentdError if it
    is no regular file.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise _damaged_error(file, "it is no regular file")
    with os.fdopen(descriptor, "rb") as packed, gzip.open(packed, "rb") as source:
        yield _Unzipped(file, source, max(_ALWAYS, _RATIO * found.st_size))


class _Unzipped:
    """The decompressed stream that tarfile reads an archive from. It only goes forward, in pieces,
    and gives at most `most` bytes.
    """

    def __init__(self, file: Path, source: gzip.GzipFile, most: int) -> None:
        self._file = file
        self._source = source
        self._most = most
        self.position = 0

    def require(self, size: int) -> None:
        """Raise AgentdError unless `size` more bytes are allowed."""
        if size < 0 or self.position + size > self._most:
            raise _damaged_error(
                self._file, f"it holds more than {_RATIO} times its size, or {self._most:,} bytes"
            )

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytes:
        if size > _PIECE:  # only long names make tarfile read so much at once
            raise _damaged_error(self._file, "the name of a file in it is too long")
        self.require(size)
        data = self._source.read(size)
        self.position += len(data)
        return data

    def seek(self, position: int) -> None:
        if position < self.position:
            raise _damaged_error(self._file, "its files overlap")
        while self.position < position and self.read(min(_PIECE, position - self.position)):
            pass


def check_database(path: Path, *, foreign: bool = False) -> None:
    """Raise StorageCorrupt unless a copied database is whole, StorageError if a newer agentd wrote
    it. A `foreign` database comes from elsewhere: it must contain exactly agentd's tables, indices
    and triggers.
    """
    try:
        with closing(sqlite3.connect(path)) as conn:
            conn.execute("PRAGMA trusted_schema = OFF")
            if foreign:
                check_shape(conn, STATE)
            (told,) = conn.execute("PRAGMA integrity_check(1)").fetchone()
            check(conn, STATE)
    except sqlite3.DatabaseError:
        told = "it is no database"
    if told != "ok":
        raise StorageCorrupt(
            f"the copy of the conversations is damaged: {told}",
            cure="see `agentd doctor`; take an earlier backup if there is one",
        )


def _fill(target: Any, contents: ArchiveContents, now: datetime) -> None:
    digests: dict[str, str] = {}
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=6) as archive:
        for name, path in contents.entries():
            with suppress(FileNotFoundError):  # deleted since it was listed
                digests[name] = _add_file(archive, name, path, now)
        manifest: Mapping[str, Any] = {
            "format": _FORMAT,
            "holds": STATE_ALONE if contents.state_alone else "everything",
            "created_at": now.isoformat(),
            "files": digests,
            "folders": list(contents.folders()),
        }
        data = json.dumps(manifest, indent=1).encode()
        archive.addfile(_entry(MANIFEST, len(data), now), io.BytesIO(data))


def _add_file(archive: tarfile.TarFile, name: str, path: Path, now: datetime) -> str:
    """Add a file of any size to the archive and return its digest. Raises FileNotFoundError if the
    file is gone, AgentdError if it cannot be read, OSError if the archive cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        source = _HashingReader(path, file)
        archive.addfile(_entry(name, os.fstat(descriptor).st_size, now), source)
    return source.digest.hexdigest()


class _HashingReader:
    """A file that tarfile reads, hashed as it is read."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Return `size` bytes of the file. Raises AgentdError."""
        try:
            data = self._file.read(size)
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if len(data) < size:
            raise AgentdError(
                f"{self._path} became shorter while it was read", cure="back up once more"
            )
        self.digest.update(data)
        return data


def _entry(name: str, size: int, now: datetime) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(now.timestamp())
    return info


def _below(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for _, files in _folders(folder):
        yield from ((f"{name}/{path.relative_to(folder).as_posix()}", path) for path in files)


def _folders(top: Path) -> Iterator[tuple[Path, Sequence[Path]]]:
    """Yield the folder, if it exists, and all folders below it, in order, each with the files in it
    that are backed up. Raises AgentdError for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise _unreadable(error.filename, error) from error

    for folder, folders, names in os.walk(top, onerror=refuse):
        folders.sort()
        paths = (Path(folder, name) for name in sorted(names))
        yield Path(folder), [path for path in paths if _is_backed_up(path)]


def _is_backed_up(path: Path) -> bool:
    is_stray = path.name.startswith(_STRAY[0]) and path.name.endswith(_STRAY[1])
    try:
        return stat.S_ISREG(path.lstat().st_mode) and not is_stray
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: object, error: OSError) -> AgentdError:
    return AgentdError(
        f"{path} cannot be read: {error.strerror}; no backup was made",
        cure="let the daemon's user read it, or move it out of the workspace",
    )


def _is_ours(name: str) -> bool:
    if name in _FILES:
        return True
    parts = name.split("/")
    is_plain = not any(part in ("", ".", "..") for part in parts)
    return (
        is_plain and len(parts) <= _DEEPEST and any(name.startswith(f"{top}/") for top in _FOLDERS)
    )


def _damaged_error(file: Path, why: str) -> AgentdError:
    return AgentdError(
        f"{file} is no whole backup: {why}", cure="take another one; nothing was changed"
    )
