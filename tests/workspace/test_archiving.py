"""Old daily notes: moved byte for byte, never lost, and found as before."""

from __future__ import annotations

import os

import pytest

from agentd.core import failpoints
from agentd.core.erasure import Erasure
from agentd.core.errors import FileMissing
from agentd.core.failpoints import FailpointError
from agentd.core.times import date_in
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import Author, Reader
from agentd.workspace.archiving import Archiving
from agentd.workspace.scrub import NoteEraser
from agentd.workspace.workspace_settings import WorkspaceSettings

OWN = Reader(MAIN, SessionKind.OWNER)
OLD, NEW = "memory/2025-03-01.md", "memory/archive/2025/2025-03-01.md"
ODD = b"# Saturday\r\n\xef\xbb\xbf- t\xe9l\xe9phone \x00\n\nno end"


class Attic:
    """A workspace with its notes, and what moves them."""

    def __init__(self, home, days=30, **settings):
        self.home = home
        self.files = home.files(**settings)
        options = WorkspaceSettings(archive_after_days=days, **settings)
        self.archiving = Archiving(self.files, home.root, home.versions, home.clock, options)

    def note(self, path=OLD, data=b"- we bought the boat\n", hours=2.0):
        file = self.home.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        changed = self.home.clock.now().timestamp() - hours * 3600
        os.utime(file, (changed, changed))
        return file

    def all(self):
        """Every file with its bytes."""
        root = self.home.root
        return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file()}


@pytest.fixture
def attic(home):
    return Attic(home)


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    failpoints.arm("")


async def test_an_old_note_moves_with_every_byte(attic):
    attic.note(data=ODD)
    assert await attic.archiving.tidy() == (NEW,)
    assert attic.all() == {NEW: ODD}
    assert (attic.home.root / NEW).stat().st_mode & 0o777 == 0o600
    assert await attic.archiving.tidy() == ()


async def test_what_a_note_was_stays_known(attic):
    attic.note()
    await attic.archiving.tidy()
    now, versions = await attic.files.history(OLD)
    assert (now, [v.by.kind for v in versions]) == ("", ["archive", "hand"])
    assert await attic.files.version(OLD, versions[-1].number) == b"- we bought the boat\n"
    await attic.files.restore(OLD, versions[-1].number, "")
    assert attic.all()[OLD] == b"- we bought the boat\n"


async def test_only_old_daily_notes_move(attic):
    today = attic.files.today()
    names = [f"memory/{today}.md", "memory/2026-11-01.md", "memory/boat.md", "memory/facts.md",
             "memory/2025-02-30.md", "memory/2025-03-01-boat.md", "2025-03-01.md"]  # fmt: skip
    for name in names:
        attic.note(name)
    assert await attic.archiving.tidy() == ()
    assert sorted(attic.all()) == sorted(names)


async def test_a_note_stays_for_exactly_as_many_days(home):
    attic = Attic(home, days=30)
    assert str(attic.files.today()) == "2026-11-21"
    attic.note("memory/2026-10-22.md")
    assert await attic.archiving.tidy() == ()
    attic.note("memory/2026-10-21.md")
    assert await attic.archiving.tidy() == ("memory/archive/2026/2026-10-21.md",)


async def test_what_prompts_carry_stays_however_early_it_may_go(home):
    attic = Attic(home, days=1, daily_lookback_days=7)
    attic.note("memory/2026-11-14.md")
    assert await attic.archiving.tidy() == ()
    attic.note("memory/2026-11-13.md")
    assert len(await attic.archiving.tidy()) == 1


async def test_nothing_moves_unless_it_is_wanted(home):
    attic = Attic(home, days=0)
    attic.note()
    await attic.archiving.run()
    assert await attic.archiving.tidy() == ()
    assert list(attic.all()) == [OLD]


@pytest.mark.parametrize("sign", [".2025-03-01.md.swp", ".#2025-03-01.md", "#2025-03-01.md#"])
async def test_a_note_that_is_open_in_an_editor_stays(attic, sign):
    note = attic.note()
    (note.parent / sign).symlink_to("nowhere")  # as Emacs has it; others write files
    assert await attic.archiving.tidy() == ()
    (note.parent / sign).unlink()
    assert await attic.archiving.tidy() == (NEW,)


async def test_a_note_that_was_just_changed_stays(attic):
    attic.note(hours=0.5)
    assert await attic.archiving.tidy() == ()
    attic.note(hours=1.1)
    assert await attic.archiving.tidy() == (NEW,)


@pytest.mark.parametrize(
    "point", ["file.temp_written", "file.replaced", "file.replaced:2"], ids=lambda p: p
)
async def test_a_crash_loses_no_byte_and_the_next_look_goes_on(attic, point):
    attic.note(data=ODD)
    failpoints.arm(f"{point if ':' in point else point + ':1'}:raise")
    with pytest.raises(FailpointError):
        await attic.archiving.tidy()
    assert ODD in attic.all().values()
    fresh = Attic(attic.home)
    await fresh.files.clear_strays()
    await fresh.archiving.tidy()
    assert fresh.all() == {NEW: ODD}


async def test_words_added_between_two_looks_come_along(attic):
    attic.note(NEW, b"- one\n")
    attic.note(OLD, b"- one\n- two\n")
    assert await attic.archiving.tidy() == (NEW,)
    assert attic.all() == {NEW: b"- one\n- two\n"}


async def test_two_notes_that_say_different_things_both_stay_and_are_told(attic):
    attic.note(NEW, b"- one\n")
    attic.note(OLD, b"- other\n")
    attic.note("memory/2025-03-02.md")
    assert await attic.archiving.tidy() == ("memory/archive/2025/2025-03-02.md",)
    assert attic.all()[NEW] == b"- one\n"
    assert attic.all()[OLD] == b"- other\n"
    [problem] = attic.archiving.problems()
    assert OLD in problem.text
    assert problem.cure
    (attic.home.root / NEW).unlink()
    await attic.archiving.tidy()
    assert attic.archiving.problems() == ()


async def test_the_archive_is_the_owners_alone(attic, stranger):
    attic.note()
    await attic.archiving.tidy()
    assert attic.files.is_owner_only(NEW)
    with pytest.raises(FileMissing):
        await attic.files.read(NEW, stranger)
    assert (await attic.files.read(NEW, OWN)).text == "- we bought the boat\n"
    assert await attic.files.tree("", 5, stranger) == ()


def test_search_dates_an_archived_note_by_its_day():
    assert str(date_in(NEW)) == "2025-03-01"


async def test_agentds_own_lines_are_still_its_own_and_the_users_his(attic):
    mine, his = b"- the code is 4417\n", b"- my code is 4417\n"
    attic.note(data=his)
    async with attic.files.lock(OLD):
        intent = await attic.files.plan(OLD, FileAction.APPEND, mine)
        await attic.files.apply(intent, OWN, Author("model", "main", "call_1"))
    attic.note(data=his + mine)
    await attic.archiving.tidy()
    eraser = NoteEraser(attic.files, attic.home.root, attic.home.versions)
    assert await eraser.erase(Erasure(spans=("4417",))) == 1
    assert attic.all()[NEW] == his + b"- the code is [forgotten]\n"
