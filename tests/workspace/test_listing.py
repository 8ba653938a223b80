"""What listings leave out is named, each with its reason, and not too much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

OWNER = Reader(SessionKey("main"), SessionKind.OWNER)
GROUP = Reader(SessionKey("group:a"), SessionKind.GROUP)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "workspace/memory").mkdir(parents=True)
    return tmp_path / "workspace"


@pytest.fixture
def files(root):
    return Files(root, WorkspaceSettings(), FakeClock(), {}, None)


async def texts(files, depth=32):
    await files.tree("", depth, OWNER)
    return [problem.text for problem in files.problems()]


async def test_a_link_to_a_folder_is_named_and_not_followed(files, root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.md").write_text("x")
    (root / "memory/notes").symlink_to(tmp_path / "elsewhere")
    (root / "v1.2").symlink_to(tmp_path / "elsewhere")
    (root / ".hidden").symlink_to(tmp_path / "elsewhere")
    assert [e.path for e in await files.tree("", 32, OWNER)] == ["memory/"]
    assert await texts(files) == [
        "memory/notes is a symbolic link to a folder: nothing in it is ever read",
        "v1.2 is a symbolic link to a folder: nothing in it is ever read",
    ]
    assert all("extra_paths" in problem.cure for problem in files.problems())
    (root / "memory/notes").unlink()
    (root / "v1.2").unlink()
    assert await texts(files) == []


async def test_names_that_no_path_spells_are_named(files, root):
    for name in (b"caf\xe9.md", b"a\nb.md", b"photo\n.jpg", b".\xff.md"):
        Path(os.fsdecode(bytes(root) + b"/" + name)).write_text("x")
    Path(os.fsdecode(bytes(root) + b"/d\xfc")).mkdir()
    assert await texts(files) == [
        "'a\\nb.md' has a control character: it is never read",
        "'caf\\udce9.md' has a name with bytes that are not UTF-8: it is never read",
        "'d\\udcfc' has a name with bytes that are not UTF-8: nothing in it is ever read",
    ]
    for problem in files.problems():
        problem.text.encode()


async def test_many_are_counted(files, root):
    for n in range(30):
        (root / f"a{n:02} .md").symlink_to("x.md")
    found = await texts(files)
    assert len(found) == 21
    assert found[19].startswith("a19 .md is a symbolic link")
    assert found[20] == "10 more files and folders are left out in such ways"
    (root / "a00 .md").unlink()
    assert (await texts(files))[20].startswith("9 more")
    for n in range(1, 30):
        (root / f"a{n:02} .md").unlink()
    assert await texts(files) == []


async def test_a_listing_of_others_does_not_take_them_back(files, root):
    (root / "memory/link.md").symlink_to("x.md")
    before = await texts(files)
    await files.tree("", 32, GROUP)
    assert [problem.text for problem in files.problems()] == before != []
