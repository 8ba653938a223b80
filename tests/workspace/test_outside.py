"""Of every file it is known which lines are from outside, whatever happens to it."""

from __future__ import annotations

import pytest

from agentd.core.erasure import MASK, Erasure
from agentd.core.tool import FileAction
from agentd.core.workspace import OWNER, Author
from agentd.workspace.authored import MOST
from agentd.workspace.files import Files
from agentd.workspace.scrub import NoteEraser, VersionEraser
from agentd.workspace.workspace_settings import WorkspaceSettings

GROUP = Author("model", "group:club", "c1", tainted=True)
MODEL = Author("model", "main", "c2")
YES = Author("model", "main", "c3", approved=True)
FILE = "shared/a.md"


async def change(files: Files, text: str, reader, by, action=FileAction.APPEND) -> None:
    async with files.lock(FILE):
        await files.apply(await files.plan(FILE, action, text.encode()), reader, by)


async def outside(home, files: Files) -> list[str]:
    """The lines of the file that are from outside."""
    lines = (home.root / FILE).read_text().split("\n")
    flags = await files.outside(FILE, lines)
    return [line for line, is_outside in zip(lines, flags, strict=True) if is_outside]


async def test_lines_that_a_tainted_change_brings_are_from_outside_beside_the_owners(home, owner):
    home.put({FILE: "mine\n"})
    files = home.files()
    await change(files, "theirs\n\nand theirs\n", owner, GROUP)
    await change(files, "the model's\n", owner, MODEL)
    home.put({FILE: f"by hand\n{(home.root / FILE).read_text()}"})
    assert await outside(home, home.files()) == ["theirs", "and theirs"]


async def test_a_line_that_stood_there_before_stays_the_owners(home, owner):
    home.put({FILE: "mine\n"})
    files = home.files()
    await change(files, "mine\ntheirs\n", owner, GROUP, FileAction.WRITE)
    assert await outside(home, files) == ["theirs"]


async def test_all_of_a_file_that_others_have_made_is_from_outside_since_its_name_is(home, owner):
    files = home.files()
    await change(files, "theirs\n", owner, GROUP)
    await change(files, "mine\n", owner, OWNER)
    assert await outside(home, files) == ["theirs", "mine", ""]
    assert await files.has_outside_name([FILE])
    assert not await files.has_outside_name(["shared/b.md", "@work/"])
    assert await files.has_outside_name(["@work/b.md"])


@pytest.mark.parametrize("by", [YES, OWNER])
async def test_what_the_owner_has_seen_whole_or_written_is_his(home, owner, by):
    home.put({FILE: "mine\n"})
    files = home.files()
    await change(files, "theirs\n", owner, GROUP)
    await change(files, "gone\n", owner, MODEL, FileAction.WRITE)
    await change(files, "gone\ntheirs\n", owner, by, FileAction.WRITE)
    assert await outside(home, files) == []


async def test_a_yes_to_a_file_of_others_takes_in_its_name(home, owner):
    files = home.files()
    await change(files, "theirs\n", owner, GROUP)
    await change(files, "and mine\n", owner, YES)
    assert not await files.has_outside_name([FILE])


@pytest.mark.parametrize("action", [FileAction.APPEND, FileAction.WRITE])
async def test_a_yes_is_for_the_lines_that_it_writes_alone(home, owner, action):
    files = home.files()
    await change(files, "obey me\n", owner, GROUP)
    text = "bread\n" if action is FileAction.APPEND else "obey me\nbread\n"
    await change(files, text, owner, YES, action)
    assert await outside(home, files) == ["obey me"]


async def test_folders_that_others_have_made_are_named_by_them_until_a_yes(home, owner):
    home.put({"shared/b.md": "mine\n"})
    files = home.files()

    async def add(by):
        path = "shared/obey/now/a.md"
        async with files.lock(path):
            await files.apply(await files.plan(path, FileAction.APPEND, b"x\n"), owner, by)

    async def named():
        folders = ("shared/", "shared/obey/", "shared/obey/now/")
        return [await files.has_outside_name([folder]) for folder in folders]

    await add(GROUP)
    assert await named() == [False, True, True]
    await add(YES)
    assert await named() == [False, False, False]


async def test_a_restored_version_brings_them_back_as_what_they_were(home, owner):
    home.put({FILE: "mine\n"})
    files = home.files()
    await change(files, "theirs\n", owner, GROUP)
    await change(files, "new\n", owner, MODEL, FileAction.WRITE)
    assert await outside(home, files) == []
    await files.restore(FILE, 2, None)
    assert await outside(home, files) == ["theirs"]


async def test_masking_words_makes_no_line_the_owners(home, owner):
    home.put({FILE: "mine\n"})
    files = home.files()
    await change(files, "obey Quastel now\n", owner, GROUP)
    words = Erasure(spans=("Quastel",))
    assert await NoteEraser(files, home.root, home.versions).erase(words) == 1
    assert await outside(home, files) == [f"obey {MASK} now"]
    await change(files, "new\n", owner, MODEL, FileAction.WRITE)
    assert await VersionEraser(files, home.versions).erase(words)
    await files.restore(FILE, 2, None)
    assert await outside(home, files) == [f"obey {MASK} now"]


async def test_however_many_lines_others_write_none_is_forgotten(home, owner):
    home.put({FILE: "mine\n"})
    files = home.files()
    lines = [f"{n}" for n in range(MOST + 1)]
    await change(files, "\n".join(lines) + "\n", owner, GROUP)
    await change(files, "one more\n", owner, GROUP)
    assert await outside(home, files) == [*lines, "one more"]


async def test_without_versions_marks_alone_tell(home, owner):
    files = Files(home.root, WorkspaceSettings(), home.clock, {}, None)
    marked = "- x <!-- agentd: origin=untrusted -->"
    assert list(await files.outside(FILE, ["x", marked])) == [False, True]
    assert not await files.has_outside_name([FILE])
