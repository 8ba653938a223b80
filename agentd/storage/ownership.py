"""Whether the places of a daemon are its user's alone: owners are checked, loose modes are mended."""

from __future__ import annotations

import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

from agentd.core.errors import ConfigError
from agentd.core.paths import Places

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


def secure_places(
    places: Places, uid: int, *, config_is_elsewhere: bool = False
) -> tuple[str, ...]:
    """Look at what is there of the places, and close what the user himself has left open to others;
    what was closed, a sentence each. A configuration that was named on the command line is mended,
    the folder around it is left alone.

    Raises ConfigError for what belongs to somebody else, or cannot be closed.
    """
    mended = [configuration(places.config_file, uid, mend=True)]
    if not config_is_elsewhere:
        mended.append(_folder(places.config_file.parent, uid, or_root=True))
    mended.append(_folder(places.state_dir, uid))
    with suppress(FileNotFoundError):
        mended.append(runtime_folder(places.socket.parent, uid))
    return tuple(filter(None, mended))


def secure_contents(places: Places, uid: int) -> tuple[str, ...]:
    """Do what `secure_places` does for what the daemon is about to open: the workspace, wherever the
    configuration wants it, and the databases and keys of the state. Of a workspace others may read what
    its folder's mode lets them, and change nothing.
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
    """Raises ConfigError for what is there and belongs to somebody else, as `secure_contents` does."""
    with suppress(OSError):
        _require_owner(path, path.stat(), uid, or_root=False)


def configuration(path: Path, uid: int, *, mend: bool) -> str:
    """What is wrong with the modes of the configuration, or was if it is to be mended; "" for nothing.
    Root's own may be readable by all. Raises ConfigError for a file of somebody else.
    """
    try:
        found = path.stat()
    except OSError:
        return ""  # reading it tells
    _require_owner(path, found, uid, or_root=True)
    loose = _OTHERS if found.st_uid == uid else _OTHERS_WRITE
    return _tighten_mode(path, found, loose, uid) if mend else _as_text(path, found, loose)


def runtime_folder(path: Path, uid: int) -> str:
    """Close the folder that the socket stands in; what was wrong with it. A link in its place is not
    followed: whoever put it there chooses whose socket clients find, and which folder is changed.

    Raises ConfigError for a link, and for a folder that is shared with others or theirs;
    FileNotFoundError.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise ConfigError(
            f"the socket's directory {path} is a symbolic link",
            cure=f"look where it leads, then remove it: rm {path}",
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
        return ""  # making or using it tells
    _require_owner(path, found, uid, or_root=or_root)
    return _tighten_mode(path, found, loose if found.st_uid == uid else _OTHERS_WRITE, uid)


def _require_owner(path: Path, found: os.stat_result, uid: int, *, or_root: bool) -> None:
    if found.st_uid != uid and not (or_root and found.st_uid == _ROOT):
        raise ConfigError(
            f"{path} belongs to {_name(found.st_uid)}, and agentd runs as {_name(uid)}",
            cure=f"run agentd as its owner, or make it yours: chown {_name(uid)} {path}",
        )


def _tighten_mode(path: Path, found: os.stat_result, loose: int, uid: int) -> str:
    """Take these bits from the mode; what it was, "" if it had none of them. Raises ConfigError."""
    told = _as_text(path, found, loose)
    if not told:
        return ""
    cure = f"chmod {'go=' if loose == _OTHERS else 'go-w'} {path}"
    if found.st_uid != uid:
        raise ConfigError(told, cure=cure)
    wanted = stat.S_IMODE(found.st_mode) & ~loose
    # Through a descriptor: between two look-ups of the path another file could take its place.
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
