"""Translates the operating system's errors about a file into agentd's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from agentd.core.errors import FileMissing, FileUnreadable, PathRefused, WorkspaceError


def missing(path: str) -> FileMissing:
    """Return the error for an absent file, which is also given for one that must not be seen."""
    return FileMissing(
        f"there is no {path!r} here", cure="memory_tree (`agentd memory tree`) shows what there is"
    )


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Turn each OSError of the body into the WorkspaceError about `path` that corresponds to it."""
    try:
        yield
    except OSError as error:
        raise _translate(error, path) from error


def _translate(error: OSError, path: str) -> WorkspaceError:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return missing(path)
        case errno.ELOOP | errno.EXDEV:
            return PathRefused(
                f"{path} goes through a symbolic link", cure="put the file itself in its place"
            )
        case errno.EISDIR | errno.ENXIO | errno.ENODEV:
            return PathRefused(f"{path} is no regular file", cure="name a text file")
        case errno.ENAMETOOLONG:
            return PathRefused(f"{path} is too long a name", cure="choose a shorter name")
        case errno.EACCES | errno.EPERM:
            return FileUnreadable(
                f"agentd has no permission for {path}",
                cure="give the file to the user that runs agentd: chown it, chmod 600",
            )
        case errno.EROFS:
            return WorkspaceError(
                f"{path} cannot be changed: the file system is mounted read-only",
                cure="mount the workspace writable; chatting and reading go on meanwhile",
            )
        case errno.ENOSPC | errno.EDQUOT:
            return WorkspaceError(
                f"{path} was not written: the disk is full",
                cure=(
                    "free some space (`df`), or delete files where inodes are used up (`df "
                    "-i`), then try again"
                ),
            )
    return WorkspaceError(
        f"{path} cannot be used: {error.strerror}", cure="look at the disk and its mount"
    )
