"""Reading, listing and changing the user's files."""

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.core import failpoints
from agentd.core.errors import (
    EditConflict,
    FileMissing,
    FileUnreadable,
    PathRefused,
    WorkspaceError,
)
from agentd.core.failpoints import FailpointError
from agentd.core.ports import Workspace
from agentd.core.tool import FileAction, FileIntent
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import FileView, Reader
from agentd.testing import FakeClock
from agentd.workspace.files import Files

_TODAY = "memory/2026-11-21.md"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _change(
    files: Files, path: str, action: FileAction, text: str, reader: Reader
) -> FileIntent:
    async with files.lock(path):
        intent = await files.plan(path, action, text.encode())
        await files.apply(intent, reader)
    return intent


def test_files_are_a_workspace(home) -> None:
    workspace: Workspace = home.files()
    assert workspace.problems() == ()


async def test_a_file_is_read_with_its_canonical_path_and_digest(home, owner) -> None:
    home.put({"projects/boat.md": "teak\n"})
    view = await home.files().read(" projects//./boat.md", owner)
    assert (view.path, view.text, view.digest) == ("projects/boat.md", "teak\n", _digest("teak\n"))


async def test_daily_is_another_name_for_the_folder_of_daily_notes(home, owner) -> None:
    home.put(
        {
            _TODAY: "a",
            "daily/2020-01-01.md": "old",
        }
    )
    files = home.files()
    found = {"2026-11-21": "memory", "2020-01-01": "daily"}
    for day, folder in found.items():
        assert files.canonical(f"daily/{day}.md") == f"memory/{day}.md"
        for spelled in ("daily", "memory"):
            assert (await files.read(f"{spelled}/{day}.md", owner)).path == f"{folder}/{day}.md"
            intent = await files.plan(f"{spelled}/{day}.md", FileAction.APPEND, b"x")
            assert intent.path == f"{folder}/{day}.md"
            assert await files.has_seen(f"{spelled}/{day}.md", intent.before, owner)
    assert (await files.plan("daily/1999-01-01.md", FileAction.WRITE, b"")).path == (
        "memory/1999-01-01.md"
    )
    assert next(e.path for e in await files.tree("daily", 1, owner)) == "daily/2020-01-01.md"


async def test_a_note_below_the_alias_is_read_beside_one_of_the_same_day(home, owner) -> None:
    home.put({"memory/2026-11-20.md": "own", "daily/2026-11-20.md": "alias"})
    files = home.files()
    own, alias = await files.look(["memory/2026-11-20.md", "daily/2026-11-20.md"], owner)
    assert (own.path, own.text) == ("memory/2026-11-20.md", "own")
    assert (alias.path, alias.text) == ("daily/2026-11-20.md", "alias")
    plan = await files.plan("daily/2026-11-20.md", FileAction.WRITE, b"new")
    assert plan.path == "daily/2026-11-20.md"
    await files.read("daily/2026-11-20.md", owner)
    assert await files.has_seen("daily/2026-11-20.md", plan.before, owner)
    assert not await files.has_seen("memory/2026-11-20.md", own.digest, owner)


async def test_the_alias_lists_the_daily_notes_where_it_is_no_folder(home, owner) -> None:
    home.put({_TODAY: "a"})
    assert [e.path for e in await home.files().tree("daily", 1, owner)] == [_TODAY]


@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        ("Asia/Tokyo", datetime(2026, 11, 21, 15, 0, tzinfo=UTC), "2026-11-22"),
        (
            "America/New_York",
            datetime(2026, 11, 1, 3, 59, tzinfo=UTC),
            "2026-10-31",
        ),  # before DST ends
        ("America/New_York", datetime(2026, 11, 2, 4, 59, tzinfo=UTC), "2026-11-01"),  # after it
        ("Europe/Berlin", datetime(2026, 3, 29, 22, 0, tzinfo=UTC), "2026-03-30"),
        ("Pacific/Kiritimati", datetime(2026, 12, 31, 10, 0, tzinfo=UTC), "2027-01-01"),
    ],
)
def test_today_is_the_owners_day(home, zone: str, now: datetime, day: str) -> None:
    home.clock = FakeClock(now, zone)
    assert home.files().daily_note() == f"memory/{day}.md"
    assert home.files(daily_dir="journal/days").daily_note() == f"journal/days/{day}.md"


async def test_of_a_damaged_file_the_rest_can_be_read_and_no_byte_is_lost(home, owner) -> None:
    (home.root / "MEMORY.md").write_bytes(data := b"tea\ncaf\xe9\n\xff")
    files = home.files()
    view = await files.read_damaged("MEMORY.md", owner)
    assert view.text.startswith("tea\ncaf")
    assert view.text.encode(errors="surrogateescape") == data
    assert [problem.code for problem in files.problems()] == ["file_unreadable"]
    (home.root / "MEMORY.md").write_text("tea", encoding="utf-16")
    with pytest.raises(FileUnreadable, match="is not UTF-8"):
        await files.read_damaged("MEMORY.md", owner)
    with pytest.raises(FileMissing):
        await files.read_damaged("USER.md", owner)


async def test_a_file_that_cannot_be_read_is_named_until_it_can(home, owner) -> None:
    (home.root / "MEMORY.md").write_bytes(b"caf\xe9")
    files = home.files()
    with pytest.raises(FileUnreadable, match=r"MEMORY\.md is not UTF-8") as error:
        await files.read("MEMORY.md", owner)
    assert "iconv" in error.value.cure
    [problem] = files.problems()
    assert problem.code == "file_unreadable"
    assert "MEMORY.md" in problem.text
    assert await files.exists("MEMORY.md", owner)
    home.put({"MEMORY.md": "café"})
    assert (await files.read("MEMORY.md", owner)).text == "café"
    assert files.problems() == ()


@pytest.mark.parametrize("encoding", ["latin1", "utf-16", "utf-32"])
@pytest.mark.parametrize("path", ["a.md", "memory/my dir/it's $(x).md"])
async def test_the_cure_of_a_file_in_another_encoding_keeps_its_words(
    home, owner, path: str, encoding: str
) -> None:
    note = home.root / path
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_bytes("café\n".encode(encoding))
    files = home.files()
    with pytest.raises(FileUnreadable, match="is not UTF-8 text") as error:
        await files.read(path, owner)
    _, command = error.value.cure.split("with: ")
    done = subprocess.run(["sh", "-c", command], cwd="/", capture_output=True, check=True)
    assert done.stdout == b""
    assert (await files.read(path, owner)).text == "café\n"
    assert files.problems() == ()


@pytest.mark.parametrize("path", ["a.md", "memory/my dir/it's.md"])
async def test_bytes_that_are_no_text_are_moved_and_not_converted(home, owner, path: str) -> None:
    note = home.root / path
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_bytes(data := b"caf\xe9\0\1")
    with pytest.raises(FileUnreadable, match="is no text: byte 4 is 0x00") as error:
        await home.files().read(path, owner)
    assert "iconv" not in error.value.cure
    _, command = error.value.cure.split("read: ")
    subprocess.run(["sh", "-c", command], cwd="/", check=True)
    assert not note.exists()
    assert note.with_name(f"{note.name}.bin").read_bytes() == data


async def test_only_the_owner_is_told_where_a_broken_file_stands(home, owner, group) -> None:
    (home.root / "shared").mkdir()
    (home.root / "shared" / "a.md").write_bytes(b"caf\xe9")
    files = home.files()
    with pytest.raises(FileUnreadable) as error:
        await files.read("shared/a.md", group)
    assert str(home.root) not in f"{error.value} {error.value.cure}"
    for reader in (owner, group):  # who reads it later takes nothing from the cure
        with pytest.raises(FileUnreadable):
            await files.read("shared/a.md", reader)
        (problem,) = files.problems()
        assert str(home.root) in problem.cure


async def test_a_broken_file_that_is_listed_no_more_is_no_problem_any_more(home, owner) -> None:
    home.put({"memory/graph/a.0": "x", "b.md": "y"})
    broken = "memory/graph/b.0", "memory/graph/deep/c.0", "b.md"
    for path in broken:
        (home.root / path).parent.mkdir(exist_ok=True)
        (home.root / path).write_bytes(b"\xff")
    files = home.files()
    await files.look(broken, owner)
    await files.tree("memory/graph", 1, owner)
    assert len(files.problems()) == 3
    for path in broken:
        (home.root / path).unlink()
    await files.tree("memory/graph", 1, owner)
    assert [problem.text.split()[0] for problem in files.problems()] == ["b.md", broken[1]]
    await files.tree("", 9, owner)
    assert files.problems() == ()


async def test_a_broken_file_that_went_away_is_no_problem_any_more(home, owner) -> None:
    (home.root / "x.md").write_bytes(b"\xff")
    files = home.files()
    with pytest.raises(FileUnreadable):
        await files.read("x.md", owner)
    (home.root / "x.md").unlink()
    with pytest.raises(FileMissing):
        await files.read("x.md", owner)
    assert files.problems() == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_without_permission_is_unreadable_and_not_missing(home, owner) -> None:
    home.put({"x.md": "x"})
    (home.root / "x.md").chmod(0)
    with pytest.raises(FileUnreadable, match="permission"):
        await home.files().read("x.md", owner)


async def test_a_file_too_large_is_refused_with_its_size(home, owner) -> None:
    (home.root / "big.md").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(FileUnreadable, match="1,048,577 bytes"):
        await home.files().read("big.md", owner)
    with pytest.raises(FileUnreadable, match="262,145 bytes"):
        await home.files().plan("new.md", FileAction.WRITE, b"x" * (256 * 1024 + 1))


async def test_the_page_of_facts_may_be_large(home, owner) -> None:
    files, text = home.files(), "x" * (3 << 20)
    for size in (2 << 20, 3 << 20):
        async with files.lock("memory/facts.md"):
            intent = await files.plan("memory/facts.md", FileAction.WRITE, text[:size].encode())
            await files.apply(intent, owner)
    assert (await files.read("memory/facts.md", owner)).text == text
    assert await files.inspect(intent) == "after"
    assert [v.size for v in (await files.history("memory/facts.md"))[1]] == [3 << 20, 2 << 20]
    (home.root / "big.md").write_bytes(b"x" * (1 << 20))
    with pytest.raises(FileUnreadable, match="big"):
        await home.files().plan("big.md", FileAction.APPEND, b"x")


async def test_the_text_of_the_graph_may_be_large(home, owner) -> None:
    home.put({"memory/graph/2026-11-22.0": "x" * (3 << 20)})
    assert len((await home.files().read("memory/graph/2026-11-22.0", owner)).text) == 3 << 20


async def test_a_missing_workspace_says_so(home, owner) -> None:
    home.root.rmdir()
    with pytest.raises(WorkspaceError, match="is not there"):
        await home.files().read("x.md", owner)


async def test_looking_for_what_is_not_there_leaves_no_garbage(home, owner) -> None:
    files = home.files()

    async def look() -> None:
        assert (await files.snapshot(["a.md", "b.md"], owner))[1] == {"a.md", "b.md"}
        (found,) = await files.look(["c.md"], owner)
        assert isinstance(found, FileMissing)

    async def read() -> None:
        with suppress(FileMissing):
            await files.read("c.md", owner)

    await look()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            await look()
            await read()
        assert gc.collect() < 20
    finally:
        gc.enable()


# Seeing before changing


async def test_only_what_a_session_has_read_counts_as_seen(home, owner) -> None:
    home.put({"a.md": "one"})
    files = home.files()
    other = Reader(SessionKey("chat:2"), SessionKind.OWNER)
    assert not await files.has_seen("a.md", _digest("one"), owner)
    assert await files.has_seen("absent.md", "", owner)
    await files.read("a.md", owner)
    assert await files.has_seen("a.md", _digest("one"), owner)
    assert not await files.has_seen("a.md", _digest("two"), owner)
    assert not await files.has_seen("a.md", _digest("one"), other)


async def test_after_a_change_the_session_has_seen_the_result(home, owner) -> None:
    files = home.files()
    await _change(files, "a.md", FileAction.WRITE, "one", owner)
    assert await files.has_seen("a.md", _digest("one"), owner)
    await _change(files, "a.md", FileAction.APPEND, "two", owner)
    assert await files.has_seen("a.md", _digest("one\ntwo"), owner)


async def test_a_file_is_as_left_until_others_touch_it(home, owner) -> None:
    files = home.files()
    home.put({"other.md": "one"})

    async def change(action: FileAction, data: bytes = b"") -> None:
        await files.apply(await files.plan("memory/a.md", action, data), owner)

    note = home.root / "memory/a.md"
    assert not files.is_as_left(note)
    await change(FileAction.WRITE, b"one\n")
    assert files.is_as_left(note)
    assert not files.is_as_left(home.root / "other.md")
    assert not files.is_as_left(home.root.parent / "memory/a.md")
    note.write_text("another\n")
    assert not files.is_as_left(note)
    await change(FileAction.APPEND, b"three\n")
    assert files.is_as_left(note)
    os.utime(note, ns=(1, 1))
    assert not files.is_as_left(note)
    await change(FileAction.DELETE)
    assert not files.is_as_left(note)
    for n in range(100):
        intent = await files.plan(f"{n}.md", FileAction.WRITE, b"one")
        await files.apply(intent, owner)
        assert files.is_as_left(home.root / f"{n}.md")


async def test_an_append_to_an_unread_file_does_not_show_it(home, owner) -> None:
    home.put({"a.md": "unread\n"})
    files = home.files()
    await _change(files, "a.md", FileAction.APPEND, "x\n", owner)
    assert not await files.has_seen("a.md", _digest("unread\nx\n"), owner)


# Changes


async def test_an_append_begins_on_a_line_of_its_own(home, owner) -> None:
    files = home.files()
    first = await _change(files, "daily/2026-11-21.md", FileAction.APPEND, "- a", owner)
    second = await _change(files, _TODAY, FileAction.APPEND, "- b\n", owner)
    await _change(files, _TODAY, FileAction.APPEND, "- c\n", owner)
    assert (home.root / _TODAY).read_text() == "- a\n- b\n- c\n"
    assert (first.path, first.offset, second.offset, second.data) == (_TODAY, 0, 3, b"\n- b\n")
    assert second.before == _digest("- a")
    assert second.after == _digest("- a\n- b\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
async def test_nothing_is_added_to_a_file_whose_encoding_would_swallow_it(
    home, owner, encoding: str
) -> None:
    (home.root / "memory").mkdir(exist_ok=True)
    note = home.root / _TODAY
    note.write_bytes(data := "\ufeffa wish\n".encode(encoding))
    with pytest.raises(FileUnreadable, match="is UTF-16") as error:
        await home.files().plan(_TODAY, FileAction.APPEND, b"a code\n")
    assert "doctor" in error.value.cure
    assert note.read_bytes() == data


async def test_a_change_that_others_overtook_is_a_conflict(home, owner) -> None:
    home.put({"a.md": "one"})
    files = home.files()
    for action in (FileAction.WRITE, FileAction.DELETE):
        intent = await files.plan("a.md", action, b"mine")
        (home.root / "a.md").write_text("theirs")
        with pytest.raises(EditConflict, match=r"a\.md has changed") as error:
            await files.apply(intent, owner)
        assert error.value.cure
        assert (home.root / "a.md").read_text() == "theirs"
        assert await files.inspect(intent) == "other"
        (home.root / "a.md").write_text("one")


async def test_an_append_goes_behind_what_came_between(home, owner) -> None:
    home.put({"a.md": "one\n"})
    files = home.files()
    intent = await files.plan("a.md", FileAction.APPEND, b"mine\n")
    (home.root / "a.md").write_text("one\ntheirs\n")
    assert await files.inspect(intent) == "before"
    await files.apply(intent, owner)
    assert (home.root / "a.md").read_text() == "one\ntheirs\nmine\n"
    assert await files.inspect(intent) == "after"
    assert not await files.has_seen("a.md", _digest("one\ntheirs\nmine\n"), owner)


async def test_an_append_to_a_file_that_shrank_is_a_conflict(home, owner) -> None:
    home.put({"a.md": "one two\n"})
    files = home.files()
    intent = await files.plan("a.md", FileAction.APPEND, b"mine\n")
    (home.root / "a.md").write_text("o")
    with pytest.raises(EditConflict):
        await files.apply(intent, owner)
    assert await files.inspect(intent) == "other"


async def test_a_deleted_file_is_gone_and_kept_as_a_version(home, owner) -> None:
    home.put({"BOOTSTRAP.md": "hello"})
    files = home.files()
    intent = await _change(files, "BOOTSTRAP.md", FileAction.DELETE, "", owner)
    assert await files.inspect(intent) == "after"
    assert not await files.exists("BOOTSTRAP.md", owner)
    with pytest.raises(FileMissing):
        await files.plan("BOOTSTRAP.md", FileAction.DELETE, b"")
    now, versions = await files.history("BOOTSTRAP.md")
    assert (now, [v.digest for v in versions]) == ("", ["", intent.before])
    assert await files.version("BOOTSTRAP.md", 1) == b"hello"


_POINTS = [
    (FileAction.WRITE, "file.temp_written", "before"),
    (FileAction.WRITE, "file.replaced", "after"),
    (FileAction.DELETE, "file.replaced", "after"),
    (FileAction.APPEND, "file.temp_written", "before"),
    (FileAction.APPEND, "file.replaced", "after"),
]


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize(("action", "point", "state"), _POINTS)
async def test_a_cut_change_is_recognised_and_done_once(
    home, owner, action: FileAction, point: str, state: str, existing: bool
) -> None:
    if existing:
        home.put({"a.md": "old\n"})
    elif action is FileAction.DELETE:
        return
    files = home.files()
    intent = await files.plan("a.md", action, b"new\n")
    failpoints.arm(f"{point}:1:raise")
    with pytest.raises(FailpointError):
        await files.apply(intent, owner)
    again = home.files()
    assert await again.inspect(intent) == state
    if state == "before":
        await again.apply(intent, owner)
        assert await again.inspect(intent) == "after"
    now = (home.root / "a.md").read_text() if (home.root / "a.md").exists() else None
    old = "old\n" if existing else ""
    assert (
        now
        == {FileAction.WRITE: "new\n", FileAction.APPEND: f"{old}new\n", FileAction.DELETE: None}[
            action
        ]
    )


@pytest.mark.parametrize("action", [FileAction.WRITE, FileAction.APPEND])
async def test_a_full_disk_changes_nothing_and_leaves_nothing(home, owner, action) -> None:
    home.put({"a.md": "old\n"})
    files = home.files()
    intent = await files.plan("a.md", action, b"new\n")
    failpoints.arm("file.temp_written:1:enospc")
    with pytest.raises(WorkspaceError, match="disk is full") as error:
        await files.apply(intent, owner)
    assert error.value.cure
    assert (home.root / "a.md").read_text() == "old\n"
    assert [p.name for p in (home.root).iterdir()] == ["a.md"]
    assert await files.inspect(intent) == "before"


_KILLED = """
import asyncio, sys
from pathlib import Path
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import FileView, Reader
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

async def main():
    files = Files(Path(sys.argv[1]), WorkspaceSettings(), FakeClock(), {}, None)
    await files.apply(await files.plan("p/a.md", FileAction.WRITE, b"new"), Reader(MAIN, SessionKind.OWNER))

asyncio.run(main())
"""


def _run(script: str, *args: str, **env: str) -> subprocess.Popen[bytes]:
    here = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", script, *args], cwd=here, env={"PYTHONPATH": str(here), **env}
    )


async def test_what_a_kill_leaves_behind_is_removed_at_the_next_start(home, owner) -> None:
    home.put({"p/a.md": "old", ".agentd-user.txt": "theirs"})
    with _run(_KILLED, str(home.root), AGENTD_FAILPOINT="file.temp_written") as process:
        assert process.wait(30) == -9
    assert len(list((home.root / "p").iterdir())) == 2
    files = home.files()
    assert [e.path for e in await files.tree("p", 1, owner)] == ["p/a.md"]
    assert await files.clear_strays() == 1
    assert [p.name for p in (home.root / "p").iterdir()] == ["a.md"]
    assert (home.root / "p" / "a.md").read_text() == "old"
    assert (home.root / ".agentd-user.txt").exists()


_APPENDER = """
import asyncio, sys, time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import FileView, Reader
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

class Clock:
    zone = ZoneInfo("UTC")
    def now(self): return datetime.now(UTC)
    def monotonic(self): return time.monotonic()
    async def sleep(self, seconds): await asyncio.sleep(seconds / 10)

async def main():
    files = Files(Path(sys.argv[1]), WorkspaceSettings(), Clock(), {}, None)
    reader = Reader(MAIN, SessionKind.OWNER)
    async def one(i):
        async with files.lock("log.md"):
            intent = await files.plan("log.md", FileAction.APPEND, f"- {sys.argv[2]} {i}".encode())
            await files.apply(intent, reader)
        async with files.lock("count.md"):
            before = int((await files.read("count.md", reader)).text)
            intent = await files.plan("count.md", FileAction.WRITE, str(before + 1).encode())
            await files.apply(intent, reader)
    async with asyncio.TaskGroup() as group:
        for i in range(40):
            group.create_task(one(i))

asyncio.run(main())
"""


async def test_two_processes_that_write_at_once_lose_nothing(home) -> None:
    home.put({"count.md": "0"})
    with _run(_APPENDER, str(home.root), "a") as a, _run(_APPENDER, str(home.root), "b") as b:
        assert a.wait(50) == 0
        assert b.wait(50) == 0
    lines = (home.root / "log.md").read_text().split("\n")
    assert sorted(lines) == sorted(f"- {who} {i}" for who in "ab" for i in range(40))
    assert (home.root / "count.md").read_text() == "80"


# Listing


async def test_the_tree_is_sorted_and_leaves_out_what_cannot_be_read(home, owner) -> None:
    home.put({"b/c/d.md": "4444", "a.md": "1", ".git/config": "x", "b/x.md": ""})
    (home.root / "link.md").symlink_to(home.root / "a.md")
    (home.root / "loop").symlink_to(home.root)
    os.mkfifo(home.root / "pipe")
    (home.root / os.fsdecode(b"\xff.md")).write_text("x")
    (home.root / "back\\slash.md").write_text("x")
    files = home.files()
    shown = [(e.path, e.size, e.is_dir) for e in await files.tree("", 2, owner)]
    assert shown == [("a.md", 1, False), ("b/", 0, True), ("b/c/", 0, True), ("b/x.md", 0, False)]
    assert [e.path for e in await files.tree("b", 9, owner)] == ["b/c/", "b/c/d.md", "b/x.md"]
    assert [e.path for e in await files.tree("", 1, owner)] == ["a.md", "b/"]
    with pytest.raises(FileMissing):
        await files.tree("none", 1, owner)
    with pytest.raises(PathRefused):
        await files.tree("..", 1, owner)


async def test_links_and_hidden_files_are_refused_in_every_operation(home, owner) -> None:
    home.put({"a.md": "x", ".env": "KEY"})
    (home.root / "link.md").symlink_to(home.root / "a.md")
    files = home.files()
    for path in ("link.md", ".env"):
        with pytest.raises(PathRefused):
            await files.read(path, owner)
        with pytest.raises(PathRefused):
            await files.plan(path, FileAction.WRITE, b"")
        with pytest.raises(PathRefused):
            await files.plan(path, FileAction.DELETE, b"")
        assert not await files.exists(path, owner)


# Other scopes


async def test_another_scope_is_read_without_its_identity_and_never_written(
    home, owner, stranger, scope: Callable[[Mapping[str, str]], Path]
) -> None:
    identity = [
        "AGENTS.md",
        "soul.md",
        "User.MD",
        "IDENTITY.md",
        "TOOLS.md",
        "BOOTSTRAP.md",
        "HEARTBEAT.md",
    ]
    readable = ["MEMORY.md", "memory/2026-11-20.md", "projects/x.md", "daily/2020-01-01.md"]
    nested = ["sub/AGENTS.md", "sub/ＳＯＵＬ.md"]
    root = scope(dict.fromkeys([*identity, *readable, *nested], "CANARY"))
    files = home.files({"work": root})
    listed = [e.path for e in await files.tree("@work", 9, owner) if not e.is_dir]
    assert listed == sorted(f"@work/{p}" for p in readable)
    assert [e.path for e in await files.tree("", 1, owner)] == ["@work/"]
    for name in readable:
        assert (await files.read(f"@work/{name}", owner)).path == f"@work/{name}"
        assert await files.exists(f"@work/{name}", owner)
        with pytest.raises(PathRefused, match="another workspace"):
            await files.plan(f"@work/{name}", FileAction.APPEND, b"x")
    for name in [*identity, *nested]:
        with pytest.raises(FileMissing):
            await files.read(f"@work/{name}", owner)
        assert not await files.exists(f"@work/{name}", owner)
    for name in [*identity, *readable, *nested, "none.md"]:
        with pytest.raises(FileMissing):
            await files.read(f"@work/{name}", stranger)
        assert not await files.exists(f"@work/{name}", stranger)
    assert await files.tree("", 9, stranger) == ()
    with pytest.raises(FileMissing):
        await files.tree("@work", 1, stranger)
    with pytest.raises(FileMissing):
        await files.read("@unknown/MEMORY.md", owner)
    assert (
        await files.read("@work/daily/2026-11-20.md", owner)
    ).path == "@work/memory/2026-11-20.md"


async def test_what_is_named_like_a_note_and_is_no_file_is_named_until_it_goes(home, owner) -> None:
    files = home.files()
    home.put({"memory/real.md": "x"})
    (home.root / "memory/link.md").symlink_to("/etc/hostname")
    os.mkfifo(home.root / "pipe.md")
    (home.root / "photo.jpg").symlink_to("/etc/hostname")
    listed = [entry.path for entry in await files.tree("", 8, owner)]
    assert not {"memory/link.md", "pipe.md", "photo.jpg"} & set(listed)
    told = [(p.code, p.text.split(" ")[0]) for p in files.problems()]
    assert told == [("file_irregular", "memory/link.md"), ("file_irregular", "pipe.md")]
    (home.root / "memory/link.md").unlink()
    await files.tree("", 1, owner)
    assert len(files.problems()) == 2
    await files.tree("memory", 1, owner)
    assert len(files.problems()) == 1
    (home.root / "pipe.md").unlink()
    (home.root / "pipe.md").write_text("a file now")
    await files.tree("", 8, owner)
    assert files.problems() == ()


async def test_many_files_are_looked_at_without_being_seen(home, owner) -> None:
    files = home.files()
    home.put({"a.md": "one"})
    (home.root / "b.md").write_bytes(b"\xff")
    found = await files.look(["a.md", "b.md", "c.md"], owner)
    assert isinstance(found[0], FileView)
    assert found[0].text == "one"
    assert [type(error).__name__ for error in found[1:]] == ["FileUnreadable", "FileMissing"]
    assert not await files.has_seen("a.md", found[0].digest, owner)


async def test_a_single_file_elsewhere_is_read_and_nothing_beside_it(
    home, owner, stranger, tmp_path
) -> None:
    folder = tmp_path / "elsewhere"
    (folder / "below").mkdir(parents=True)
    for name in ("plan.md", "secret.md", "below/plan.md"):
        (folder / name).write_text(name)
    files = home.files({"plan": folder / "plan.md", "gone": folder / "gone.md"})
    assert [entry.path for entry in await files.tree("@plan", 9, owner)] == ["@plan/plan.md"]
    assert (await files.read("@plan/plan.md", owner)).text == "plan.md"
    with pytest.raises(FileMissing):
        await files.tree("@gone", 9, owner)
    for path in ("@plan/secret.md", "@plan/below/plan.md", "@plan/below", "@gone/gone.md"):
        with pytest.raises(WorkspaceError):
            await files.read(path, owner)
        assert not await files.exists(path, owner)
    with pytest.raises(FileMissing):
        await files.read("@plan/plan.md", stranger)
    assert await files.tree("@plan/below", 9, owner) == ()


async def test_what_is_named_outside_and_not_there_is_told_once_and_in_its_own_words(
    home, owner, stranger, tmp_path
) -> None:
    (tmp_path / "hosts").write_text("no note")
    named = {"disk": "disk", "plan": "plan.md", "hosts": "hosts"}
    files = home.files({name: tmp_path / path for name, path in named.items()})

    async def look(reader) -> list[tuple[str, str]]:
        for name in named:
            with suppress(WorkspaceError):
                await files.tree(f"@{name}", 9, reader)
            for path in (f"@{name}/MEMORY.md", f"@{name}/plan.md"):
                assert not await files.exists(path, reader)
                await files.snapshot([path], reader)
        assert {problem.code for problem in files.problems()} <= {"scope_unreadable"}
        return [(problem.text, problem.cure.split(" ")[0]) for problem in files.problems()]

    assert await look(stranger) == []
    told = [
        (f"@disk/ is not searched: {tmp_path}/disk is not there", "Mount"),
        (
            (
                f"@hosts/ is not searched: {tmp_path}/hosts is neither a folder nor a "
                "file that ends in .md"
            ),
            "Name",
        ),
        (f"@plan/ is not searched: {tmp_path}/plan.md is not there", "Mount"),
    ]
    assert await look(owner) == told
    assert all("extra_paths" in problem.cure for problem in files.problems())
    (tmp_path / "disk").mkdir()
    assert await look(owner) == told[1:]
    (tmp_path / "plan.md").write_text("x")
    (tmp_path / "hosts").unlink()
    (tmp_path / "hosts").mkdir()
    await files.tree("@plan", 9, owner)
    await files.tree("@hosts", 9, owner)
    assert files.problems() == ()


@pytest.mark.parametrize(("levels", "name"), [(1_200, "d"), (30, "d" * 200)])
async def test_strays_go_beside_folders_that_lie_deeper_than_paths_reach(home, levels, name):
    stray = ".agentd-0123456789abcdef.tmp"
    home.put({f"b/{stray}": "half", "b/a.md": "whole"})
    inner = os.open(home.root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=inner)
        outer, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    try:
        assert await home.files().clear_strays() == 1
    finally:
        subprocess.run(["rm", "-r", home.root / name], check=True)  # deeper than pytest reaches
    assert [path.name for path in (home.root / "b").iterdir()] == ["a.md"]
