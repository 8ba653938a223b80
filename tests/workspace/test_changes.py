"""A change is made on what was read, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentd.core.errors import EditConflict
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN
from agentd.core.workspace import Author
from agentd.workspace.changes import FileChanges
from agentd.workspace.folder import Folder
from agentd.workspace.versions import Versions, digest_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def test_what_another_program_writes_while_the_new_text_is_synced_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("one\n")

    def passing(point: str) -> None:
        if point == "file.temp_written":
            with file.open("a") as other:
                other.write("two\n")

    changes = FileChanges(Folder(tmp_path, passing=passing), None)
    intent = changes.plan(("a.md",), FileAction.WRITE, b"three\n")
    with pytest.raises(EditConflict):
        changes.apply(("a.md",), intent, NOW, Author("agent", MAIN))
    assert file.read_text() == "one\ntwo\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize("action", [FileAction.WRITE, FileAction.APPEND])
def test_what_a_program_writes_that_had_the_old_file_open_stays(tmp_path: Path, action) -> None:
    file = tmp_path / "ws" / "a.md"
    file.parent.mkdir()
    file.write_text("one\n")
    versions = Versions(tmp_path / "versions")
    with file.open("a") as other:

        def passing(point: str) -> None:
            if point == "file.replaced" and not other.tell() > len("one\n"):
                other.write("two\n")
                other.flush()

        changes = FileChanges(Folder(file.parent, passing=passing), versions)
        intent = changes.plan(("a.md",), action, b"three\n")
        assert not changes.apply(("a.md",), intent, NOW, Author("agent", MAIN))
    before = "one\n" if action is FileAction.APPEND else ""
    assert file.read_text() == f"{before}three\ntwo\n"
    assert [v.by.kind for v in versions.of("a.md", digest_of(file.read_bytes()))] == [
        "hand",
        "agent",
        "hand",
    ]


def test_what_is_saved_just_before_its_deletion_stays(tmp_path: Path) -> None:
    file = tmp_path / "ws" / "a.md"
    file.parent.mkdir()
    file.write_text("one\n")

    class SavedMeanwhile(Versions):
        def begin(self, *change: Any) -> None:
            super().begin(*change)
            with file.open("a") as other:
                other.write("two\n")

    changes = FileChanges(Folder(file.parent), SavedMeanwhile(tmp_path / "versions"))
    intent = changes.plan(("a.md",), FileAction.DELETE, b"")
    with pytest.raises(EditConflict):
        changes.apply(("a.md",), intent, NOW, Author("agent", MAIN))
    assert file.read_text() == "one\ntwo\n"
