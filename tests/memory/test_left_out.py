"""Notes that cannot be searched: each is named once, by what is wrong with it, until that is
over.
"""

from __future__ import annotations

import os
import socket

import pytest

from agentd.memory.index.indexer import Indexer
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

MIB = 1024 * 1024
WRONG = {
    "large.md": "large.md is too large: 1,048,577 bytes, the limit is 1,048,576",
    "latin.md": "latin.md is not UTF-8 text: byte 3 is 0xe9",
    "link.md": "link.md is a symbolic link, no file: it is never read",
    "pipe.md": "pipe.md is a named pipe, no file: it is never read",
    "socket.md": "socket.md is a socket, no file: it is never read",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    (tmp_path / "good.md").write_text("needle")
    (tmp_path / "large.md").write_bytes(b"x" * (MIB + 1))
    (tmp_path / "latin.md").write_bytes("café".encode("latin1"))
    (tmp_path / "link.md").symlink_to("good.md")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.md")
    return Files(tmp_path, WorkspaceSettings(), FakeClock(), {}, None)


async def test_a_note_that_cannot_be_searched_is_named_once_and_by_what_it_is(
    files, tmp_path, index, store
):
    indexer = Indexer(index, files, store, FakeClock())

    async def told():
        await indexer.sync()
        return [problem.text for problem in (*files.problems(), *indexer.problems())]

    assert await told() == await told() == list(WRONG.values())
    assert list(index.entries) == ["good.md"]
    (tmp_path / "latin.md").unlink()
    os.mkfifo(tmp_path / "latin.md")
    (tmp_path / "large.md").write_text("small")
    (tmp_path / "link.md").unlink()
    (tmp_path / "link.md").write_bytes(b"\xff")
    pipe = "latin.md is a named pipe, no file: it is never read"
    link = "link.md is not UTF-8 text: byte 0 is 0xff"
    assert await told() == [pipe, link, WRONG["pipe.md"], WRONG["socket.md"]]
    for path in WRONG:
        (tmp_path / path).unlink()
    assert await told() == []


async def test_folders_that_are_too_deep_are_named(index, store, tmp_path):
    files = Files(tmp_path, WorkspaceSettings(), FakeClock(), {"disk": tmp_path / "a"}, None)
    indexer = Indexer(index, files, store, FakeClock())
    deepest = "/".join(["a"] * 31)
    (tmp_path / deepest).mkdir(parents=True)
    (tmp_path / deepest / "found.md").write_text("needle")
    await indexer.sync()
    assert indexer.problems() == ()
    for n in range(22):
        (tmp_path / deepest / f"b{n:02}").mkdir()
    (tmp_path / deepest / "b00/lost.md").write_text("needle")
    await indexer.sync()
    assert f"{deepest}/found.md" in index.entries
    texts = [problem.text for problem in indexer.problems()]
    assert texts[0] == f"{deepest}/b00/ is 32 folders deep: nothing in it is searched"
    assert len(texts) == 21
    assert texts[-1] == "2 more folders are as deep"
