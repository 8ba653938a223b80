"""Each check of the workspace and the search finds its defect, and says well once it is cured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentd.app.doctor.memory_checks import (
    HiddenTextCheck,
    NotesReadableCheck,
    PromptFilesCheck,
    RequiredFilesCheck,
    SharedFoldersCheck,
)
from agentd.core.turn import MAIN, SessionKey, SessionKind, TurnRequest
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.recall import MemoryRecall
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, MemorySessions
from agentd.workspace.files import Files
from agentd.workspace.injection import CUT, Injection
from agentd.workspace.listing import IRREGULAR
from agentd.workspace.workspace_settings import WorkspaceSettings

NAMES = ("SOUL", "AGENTS", "TOOLS", "IDENTITY", "USER", "MEMORY", "HEARTBEAT")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    """A workspace with all its files and one note, and an index that knows nothing yet."""
    root = tmp_path / "ws"
    (root / "memory").mkdir(parents=True)
    for name in NAMES:
        (root / f"{name}.md").write_text(f"# {name}\n")
    (root / "memory" / "2026-11-20.md").write_text("- the xylophone is in the attic\n")
    clock = FakeClock()
    settings = WorkspaceSettings(max_file_chars=2000)
    files = Files(root, settings, clock, {}, tmp_path / "versions")
    store = MemorySessions(clock)
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(Database.open(tmp_path / "index.db", INDEX))
        index = await stack.enter_async_context(LiveIndex.open(SqliteChunks(db), clock))
        indexer = Indexer(index, files, store, clock)
        recall = MemoryRecall(index, indexer, store, files)
        yield SimpleNamespace(
            root=root,
            files=files,
            index=index,
            indexer=indexer,
            recall=recall,
            store=store,
            injection=Injection(files, settings),
        )


async def test_a_file_that_does_not_fit_is_told_until_it_does(house: SimpleNamespace) -> None:
    check = PromptFilesCheck(house.files, CUT)
    (house.root / "USER.md").write_text("word " * 1000)
    await house.injection.blocks(TurnRequest(MAIN, "", ""))
    found = await check.look()
    assert (found.level, "USER.md" in found.text) == ("warn", True)
    assert "max_file_chars" in found.cure
    (house.root / "USER.md").write_text("short\n")
    await house.injection.blocks(TurnRequest(MAIN, "", ""))
    assert (await check.look()).level == "ok"


async def test_a_note_that_is_no_text_is_told_until_it_is(house: SimpleNamespace) -> None:
    check = NotesReadableCheck(house.files, IRREGULAR)
    assert (await check.look()).level == "ok"
    note = house.root / "memory" / "bad.md"
    note.write_bytes(b"\xff\xfe\x00")
    found = await check.look()
    assert (found.level, "memory/bad.md" in found.text) == ("fail", True)
    assert found.cure
    note.write_text("good\n")
    assert (await check.look()).level == "ok"


async def test_each_note_that_cannot_be_read_has_a_cure_of_its_own(house: SimpleNamespace) -> None:
    memory = house.root / "memory"
    (memory / "a.md").write_text("word " * 1_000_000)
    (memory / "aa.md").write_text("word " * 1_000_000)
    (memory / "b.md").write_bytes(b"caf\xe9")
    (memory / "ba.md").write_text("good\n")
    found = await NotesReadableCheck(house.files, IRREGULAR).look()
    assert found.text == "cannot be read: memory/a.md, memory/aa.md, memory/b.md"
    large, latin = found.cure.split("; ")
    assert large == "memory/a.md, memory/aa.md: split it into smaller files"
    assert latin.startswith("memory/b.md: convert it")
    (memory / "b.md").unlink()
    found = await NotesReadableCheck(house.files, IRREGULAR).look()
    assert found.cure == "split it into smaller files"


async def test_a_note_that_is_a_link_is_told_until_it_is_a_file(house: SimpleNamespace) -> None:
    check = NotesReadableCheck(house.files, IRREGULAR)
    note = house.root / "memory" / "linked.md"
    note.symlink_to(house.root / "USER.md")
    found = await check.look()
    assert (found.level, "memory/linked.md is a symbolic link" in found.text) == ("warn", True)
    assert found.cure
    note.unlink()
    note.write_text("good\n")
    assert (await check.look()).level == "ok"


async def test_a_missing_file_of_the_prompt_is_told_until_it_is_back(
    house: SimpleNamespace,
) -> None:
    check = RequiredFilesCheck(lambda: house.injection.audit(SessionKind.OWNER))
    assert (await check.look()).level == "ok"
    (house.root / "SOUL.md").unlink()
    found = await check.look()
    assert (found.level, "SOUL.md" in found.text) == ("warn", True)
    (house.root / "SOUL.md").write_text("brave\n")
    assert (await check.look()).level == "ok"


async def test_hidden_text_is_told_with_its_place(
    house: SimpleNamespace,
) -> None:
    check = HiddenTextCheck(house.files)
    assert (await check.look()).level == "ok"
    note = house.root / "memory" / "2026-11-20.md"
    note.write_text("- tea\n- pass\u200bword\n")
    (house.root / "talk.md").write_text("pass\u200bword\n")
    found = await check.look()
    assert found.level == "warn"
    assert "memory/2026-11-20.md:2:7" in found.text
    assert "talk.md" not in found.text
    note.write_text("- tea\n")
    assert (await check.look()).level == "ok"


async def test_groups_that_find_nothing_any_more_are_told_of_until_they_find_something(
    house: SimpleNamespace,
) -> None:
    check = SharedFoldersCheck(house.files, house.store.sessions, ("memory", "daily"))
    (house.root / "projects").mkdir()
    (house.root / "projects" / "boat.md").write_text("blue\n")
    (house.root / "README.md").write_text("# This\n")
    assert (await check.look()).level == "ok"  # nobody else is there
    for key in ("group:club", "isolated:task", "chat:1"):
        await house.store.create(SessionKey(key))
    found = await check.look()
    assert found.level == "warn"
    assert found.text.startswith("groups and isolated sessions (there are 2) find")
    assert found.text.endswith("find 0 files; they find nothing of projects/")
    assert "group_paths" in found.cure
    (house.root / "shared").mkdir()
    (house.root / "shared" / "boat.md").write_text("blue\n")
    found = await check.look()
    assert (found.level, "find 1 file;" in found.text) == ("ok", True)
    (house.root / "shared" / "user.md").hardlink_to(house.root / "USER.md")
    found = await check.look()
    assert found.level == "warn"
    assert found.text.endswith("shared/user.md")
