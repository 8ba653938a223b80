"""Checks that a daemon's directories and files belong to its user alone; tightens loose modes."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from agentd.core.errors import ConfigError
from agentd.core.paths import DaemonPaths

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def secure_places(
    places: DaemonPaths, uid: int, *, config_is_elsewhere: bool = False
) -> tuple[str, ...]:
    """Check the places that exist, and close those of the user's own that are open to others;
    return a sentence for each mode that was changed. The configuration file is always included, its
    folder only if it was not named on the command line (`config_is_elsewhere`).

    Raises ConfigError for anything that belongs to another user or cannot be closed.
    """
    mended = [configuration(places.config_file, uid, mend=True)]
    if not config_is_elsewhere:
        mended.append(_folder(places.config_file.parent, uid, or_root=True))
    mended.append(_folder(places.state_dir, uid))
    with suppress(FileNotFoundError):
        mended.append(runtime_folder(places.socket.parent, uid))
    return tuple(filter(None, mended))


def secure_contents(places: DaemonPaths, uid: int) -> tuple[str, ...]:
    """Do what `secure_places` does for what the daemon is about to open: the workspace, wherever it
    is configured to be, and the databases and keys in the state directory. Others may still read
    the workspace if its folder's mode allows that, but change nothing in it.
    """
    files = (places.database, places.index, places.facts_key, places.rows_key)
    beside = (
        path.with_name(f"{path.name}{suffix}") for path in files for suffix in ("", "-wal", "-shm")
    )
    return tuple(
        filter(
            None,
            (
                _place(path, uid, loose)
                for path, loose in (
                    (places.workspace, _OTHERS_WRITE),
                    *((path, _OTHERS) for path in beside),
                )
            ),
        )
    )


def owned(path: Path, uid: int) -> None:
    """Raise ConfigError if the path exists and belongs to another user."""
    with suppress(OSError):
        _require_owner(path, path.stat(), uid, or_root=False)


def configuration(path: Path, uid: int, *, mend: bool) -> str:
    """Return what is wrong with the mode of the configuration file, "" if nothing; with `mend`,
    correct it. A file that belongs to root may be readable by all. Raises ConfigError for a file of
    another user.
    """
    try:
        found = path.stat()
    except OSError:
        return ""  # reading it reports the error
    _require_owner(path, found, uid, or_root=True)
    loose = _OTHERS if found.st_uid == uid else _OTHERS_WRITE
    return _tighten_mode(path, found, loose, uid) if mend else _as_text(path, found, loose)


def runtime_folder(path: Path, uid: int) -> str:
    """Close the folder of the socket to others; return what was wrong with its mode, "" if nothing.
    A symbolic link is refused: whoever made it could choose which socket clients find, and which
    folder is changed.

    Raises ConfigError for a link, and for a folder that is shared with or owned by others;
    FileNotFoundError.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise ConfigError(
            f"the socket's directory {path} is a symbolic link",
            cure=f"look where it leads, then remove it: {shlex.join(['rm', str(path)])}",
        )
    if found.st_mode & stat.S_ISVTX:
        raise ConfigError(
            f"the socket's directory {str(path)!r} is shared with other users",
            cure="choose a directory of your own, for example with AGENTD_HOME",
        )
    return _folder(path, uid)


def _folder(path: Path, uid: int, *, or_root: bool = False) -> str:
    return _place(path, uid, _OTHERS, or_root=or_root)


def _place(path: Path, uid: int, loose: int, *, or_root: bool = False) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""  # creating or using it reports the error
    _require_owner(path, found, uid, or_root=or_root)
    return _tighten_mode(path, found, loose if found.st_uid == uid else _OTHERS_WRITE, uid)


def _require_owner(path: Path, found: os.stat_result, uid: int, *, or_root: bool) -> None:
    if found.st_uid != uid and not (or_root and found.st_uid == _ROOT):
        raise ConfigError(
            f"{path} belongs to {_name(found.st_uid)}, and agentd runs as {_name(uid)}",
            cure=(
                "run agentd as its owner, or make it yours: "
                f"{shlex.join(['chown', _name(uid), str(path)])}"
            ),
        )


def _tighten_mode(path: Path, found: os.stat_result, loose: int, uid: int) -> str:
    """Remove the `loose` bits from the mode; return a sentence about the change, "" if the mode had
    none of them. Raises ConfigError.
    """
    told = _as_text(path, found, loose)
    if not told:
        return ""
    cure = shlex.join(["chmod", "go=" if loose == _OTHERS else "go-w", str(path)])
    if found.st_uid != uid:
        raise ConfigError(told, cure=cure)
    wanted = stat.S_IMODE(found.st_mode) & ~loose
    # Through a descriptor: another file could take the place of the path between two look-ups.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not os.path.samestat(os.fstat(descriptor), found):
            raise ConfigError(f"{path} was replaced while it was looked at", cure="start again")
        with suppress(OSError):
            os.fchmod(descriptor, wanted)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & loose:
            raise ConfigError(
                f"{told}, and the file system does not take another one",
                cure=f"mount it with umask=077, or keep it elsewhere: {cure} has no effect",
            )
    finally:
        os.close(descriptor)
    return f"{told}; it is {wanted:04o} now"


def _as_text(path: Path, found: os.stat_result, loose: int) -> str:
    mode = stat.S_IMODE(found.st_mode)
    if not mode & loose:
        return ""
    can = "change" if mode & _OTHERS_WRITE else "read"
    return f"{path} has mode {mode:04o}, so that others can {can} it"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
