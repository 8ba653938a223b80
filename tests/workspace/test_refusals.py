"""What the operating system says, in words that help."""

import errno
import os

import pytest

from agentd.core.errors import AgentdError, FileMissing, FileUnreadable, PathRefused, WorkspaceError
from agentd.workspace.os_errors import translate_os_errors


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (errno.ENOENT, FileMissing, "there is no"),
        (errno.ENOTDIR, FileMissing, "there is no"),
        (errno.ELOOP, PathRefused, "symbolic link"),
        (errno.EXDEV, PathRefused, "symbolic link"),
        (errno.ENXIO, PathRefused, "no regular file"),
        (errno.EISDIR, PathRefused, "no regular file"),
        (errno.ENAMETOOLONG, PathRefused, "too long"),
        (errno.EACCES, FileUnreadable, "no permission"),
        (errno.EROFS, WorkspaceError, "read-only"),
        (errno.ENOSPC, WorkspaceError, "disk is full"),
        (errno.EIO, WorkspaceError, "cannot be used"),
    ],
)
def test_each_fault_names_the_file_and_a_cure(
    code: int, error: type[AgentdError], words: str
) -> None:
    with pytest.raises(error, match=words) as raised, translate_os_errors("a/b.md"):
        raise OSError(code, os.strerror(code), "/somewhere/secret")
    assert type(raised.value) is error
    assert "a/b.md" in raised.value.message
    assert "/somewhere" not in raised.value.message
    assert raised.value.cure


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(PathRefused, match="mine"), translate_os_errors("a"):
        raise PathRefused("mine")
