"""`_agentd/memory/history` and `restore`: what a file was, over real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentd.core.errors import EditConflict, InvalidRequest, NotFound, PathRefused
from agentd.core.tool import FileAction
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import Author, Reader
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.history import HISTORY, HistoryCommands
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

OWNER = Reader(MAIN, SessionKind.OWNER)


@pytest.fixture
async def files(tmp_path: Path) -> Files:
    (tmp_path / "ws").mkdir()
    files = Files(tmp_path / "ws", WorkspaceSettings(), FakeClock(), {}, tmp_path / "versions")
    for text in ("tea\n", "tea\nmilk\n"):
        async with files.lock("a.md"):
            plan = await files.plan("a.md", FileAction.WRITE, text.encode())
            await files.apply(plan, OWNER, Author("model", "chat:1", "call-1"))
    return files


async def ask(files: Files, method: str, **params: Any) -> Any:
    return await methods(HISTORY, HistoryCommands(files))[f"_agentd/memory/{method}"](params, None)


async def test_versions_come_newest_first_with_their_author(files: Files) -> None:
    told = await ask(files, "history", path="./a.md")
    assert (told["path"], told["changed_by_hand"]) == ("a.md", False)
    newest, oldest = told["versions"]
    assert (newest["version"], newest["by"], newest["session"], newest["call"]) == (
        2,
        "model",
        "chat:1",
        "call-1",
    )
    assert (newest["current"], oldest["current"]) == (True, False)
    assert newest["digest"] == told["digest"]
    assert "text" not in told


async def test_one_version_is_shown_or_compared(files: Files) -> None:
    assert (await ask(files, "history", path="a.md", show=1))["text"] == "tea\n"
    difference = (await ask(files, "history", path="a.md", diff=2))["text"]
    assert difference.splitlines()[-2:] == [" tea", "+milk"]
    assert (await ask(files, "history", path="a.md", diff=1))["text"].splitlines()[-1] == "+tea"


async def test_a_restored_version_is_the_newest(files: Files) -> None:
    told = await ask(files, "restore", path="a.md", version=1)
    assert (told["version"], told["bytes"]) == (3, 4)
    assert (await files.read("a.md", OWNER)).text == "tea\n"
    assert (await ask(files, "history", path="a.md"))["versions"][0]["by"] == "restore"


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("history", {"path": "none.md"}, NotFound),
        ("history", {"path": "../a.md"}, PathRefused),
        ("history", {"path": "a.md", "show": 9}, NotFound),
        ("history", {"path": "a.md", "show": 1, "diff": 1}, InvalidRequest),
        ("restore", {"path": "a.md", "version": 9}, NotFound),
        ("restore", {"path": "a.md", "version": 1, "digest": "0" * 64}, EditConflict),
        ("restore", {"path": "@work/a.md", "version": 1}, PathRefused),
    ],
)
async def test_what_cannot_be_done_is_refused(
    files: Files, method: str, params: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await ask(files, method, **params)
    assert (await files.read("a.md", OWNER)).text == "tea\nmilk\n"
