"""Files that only grow: whole, in order, for the owner alone, and never through a link."""

from __future__ import annotations

import pytest

from agentd.core.errors import FileUnreadable, WorkspaceError
from agentd.workspace.changes import OWN_BYTES
from agentd.workspace.logfiles import LogFiles
from agentd.workspace.versions import Versions

LOG = "memory/graph/chain.txt"


@pytest.fixture
def files(tmp_path):
    return LogFiles(tmp_path)


async def test_what_is_appended_stands_behind_what_was_there(files, tmp_path):
    assert await files.read(LOG) is None
    for part in (b"one\n", b"two\n"):
        await files.append(LOG, part)
    assert await files.read(LOG) == b"one\ntwo\n"
    assert (tmp_path / LOG).stat().st_mode & 0o777 == 0o600


async def test_a_file_is_replaced_as_a_whole(files, tmp_path):
    for data in (b"long before", b"short"):
        await files.replace(LOG, data)
        assert await files.read(LOG) == data
    assert [one.name for one in (tmp_path / "memory/graph").iterdir()] == ["chain.txt"]


async def test_a_link_is_neither_read_nor_written(files, tmp_path):
    (tmp_path / "other").write_bytes(b"secret")
    (tmp_path / "memory/graph").mkdir(parents=True)
    (tmp_path / LOG).symlink_to(tmp_path / "other")
    for work in (files.read(LOG), files.append(LOG, b"x")):
        with pytest.raises(WorkspaceError):
            await work
    assert (tmp_path / "other").read_bytes() == b"secret"


async def test_a_file_that_is_too_large_is_not_read(files, tmp_path):
    await files.append(LOG, b"x")
    with (tmp_path / LOG).open("r+b") as file:
        file.truncate(OWN_BYTES + 1)
    with pytest.raises(FileUnreadable, match="too large"):
        await files.read(LOG)


async def test_lines_from_outside_are_known_before_they_stand_in_the_file(tmp_path):
    versions = Versions(tmp_path / "versions")
    files = LogFiles(tmp_path / "workspace", versions)
    (tmp_path / "workspace/memory").mkdir(parents=True)
    (tmp_path / "workspace/memory/graph").write_text("a file where the folder is to be")
    with pytest.raises(WorkspaceError):
        await files.replace(LOG, b"own\ntheirs\n", {b"theirs"})
    assert versions.outside(LOG, [b"own", b"theirs"]) == [False, True]


async def test_only_the_lines_from_outside_that_the_file_has_now_are_known_as_such(tmp_path):
    versions = Versions(tmp_path / "versions")
    files = LogFiles(tmp_path / "workspace", versions)
    (tmp_path / "workspace").mkdir()
    lines = [b"own", b"theirs", b"newer"]
    await files.replace(LOG, b"own\ntheirs\n", {b"theirs"})
    assert versions.outside(LOG, lines) == [False, True, False]
    await files.replace(LOG, b"own\nnewer\n", {b"newer"})
    assert versions.outside(LOG, lines) == [False, False, True]
    await files.delete(LOG)
    assert not any(versions.outside(LOG, lines))
