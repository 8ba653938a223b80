"""A life is that of one file: it survives what agentd writes, and no other file of its name has
it.
"""

from __future__ import annotations

import pytest

from agentd.core.errors import WorkspaceError
from agentd.core.tool import FileAction

NAME = "BOOTSTRAP.md"


@pytest.fixture
def files(home):
    home.put({NAME: "ask\n"})
    return home.files()


async def change(files, owner, action: FileAction, text: str = "") -> None:
    async with files.lock(NAME):
        await files.apply(await files.plan(NAME, action, text.encode()), owner)


async def test_it_goes_on_through_what_agentd_writes(files, home, owner) -> None:
    life = await files.life(NAME)
    assert life
    await change(files, owner, FileAction.WRITE, "asked one thing\n")
    await change(files, owner, FileAction.APPEND, "and another\n")
    assert await files.life(NAME) == life


@pytest.mark.parametrize("texts", [("by hand, into the same file\n",), ("", "filled again\n")])
async def test_it_ends_with_what_others_write_into_the_file(files, home, owner, texts) -> None:
    first = await files.life(NAME)
    for text in texts:
        with (home.root / NAME).open("r+") as file:  # as `cp` does, and many editors
            file.truncate()
            file.write(text)
    await change(files, owner, FileAction.APPEND, "x\n")  # which is no reason to go on with it
    assert await files.life(NAME) not in ("", first)


@pytest.mark.parametrize("empty", ["", " \n\n"])
async def test_it_ends_when_agentd_deletes_or_empties_the_file(files, home, owner, empty) -> None:
    lives = {await files.life(NAME)}
    await change(files, owner, FileAction.DELETE)
    assert await files.life(NAME) == ""
    await change(files, owner, FileAction.WRITE, "again\n")
    lives.add(await files.life(NAME))
    await change(files, owner, FileAction.WRITE, empty)
    assert await files.life(NAME) == ""
    await change(files, owner, FileAction.WRITE, "and again\n")
    lives.add(await files.life(NAME))
    assert len(lives) == 3


async def test_it_ends_with_a_file_that_others_delete_though_nobody_looks(files, home) -> None:
    """Where the file system gives the same number to the next file, too."""
    first = await files.life(NAME)
    for text in ("ask\n", "ask\n", "other\n"):
        (home.root / NAME).unlink()
        (home.root / NAME).write_text(text)
        assert await files.life(NAME) not in ("", first)


async def test_it_ends_when_another_file_is_renamed_into_its_place(files, home, owner) -> None:
    first = await files.life(NAME)
    home.put({"other.md": "ask\n"})
    (home.root / "other.md").rename(home.root / NAME)
    await change(files, owner, FileAction.APPEND, "x\n")  # which is no reason to go on with it
    assert await files.life(NAME) != first


async def test_it_ends_when_somebody_is_seen_to_have_emptied_it(files, home) -> None:
    first = await files.life(NAME)
    (home.root / NAME).write_text("")
    assert await files.life(NAME) == ""
    (home.root / NAME).write_text("ask\n")
    assert await files.life(NAME) not in ("", first)


async def test_a_link_has_none(files, home) -> None:
    (home.root / NAME).unlink()
    (home.root / NAME).symlink_to("/etc/hostname")
    with pytest.raises(WorkspaceError):
        await files.life(NAME)
