"""A new workspace."""

import os
import re
from pathlib import Path

import pytest

from agentd.core import failpoints
from agentd.workspace.template import NAMES, create

_SOURCE = Path(__file__).parents[2] / "workspace_template"
_TOOLS = {"memory_search", "memory_read", "memory_write", "memory_tree", "notify"}


def test_what_others_keep_beside_a_new_workspace_stays(tmp_path: Path) -> None:
    for name in (".ws.new", "ws.new", ".ws"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.md").write_text("mine")
    create(tmp_path / "ws", _SOURCE)
    assert len(list(tmp_path.glob("*/mine.md"))) == 3


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_new_workspace_has_nine_files_and_a_memory_folder(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        written = create(tmp_path / "a" / "ws", _SOURCE)
    finally:
        os.umask(before)
    root = tmp_path / "a" / "ws"
    assert len(NAMES) == 9
    assert set(written) == {*NAMES, "memory/README.md", "shared/README.md"}
    assert {p.name for p in root.iterdir()} == {*NAMES, "memory", "shared"}
    for path in [root, *root.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert create(root, _SOURCE) == ()


def test_a_crash_leaves_no_half_of_a_workspace(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    failpoints.arm("file.replaced:4:raise")
    with pytest.raises(failpoints.FailpointError):
        create(root, _SOURCE)
    assert not root.exists()
    assert set(create(root, _SOURCE)) == {*NAMES, "memory/README.md", "shared/README.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["ws"]


def test_nothing_of_the_users_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("mine")
    (tmp_path / "TOOLS.md").write_text("")
    (tmp_path / "USER.md").symlink_to("nowhere.md")
    written = create(tmp_path, _SOURCE)
    assert (tmp_path / "SOUL.md").read_text() == "mine"
    assert (tmp_path / "TOOLS.md").read_text() == ""
    assert (tmp_path / "USER.md").is_symlink()
    assert not {"SOUL.md", "TOOLS.md", "USER.md"} & set(written)


@pytest.mark.parametrize("known", ["AGENTS.md", "SOUL.md", "USER.md"])
def test_the_first_conversation_is_held_once(tmp_path: Path, known: str) -> None:
    create(tmp_path, _SOURCE)
    (tmp_path / "BOOTSTRAP.md").unlink()
    for name in {"AGENTS.md", "SOUL.md", "USER.md"} - {known}:
        (tmp_path / name).unlink()
    assert "BOOTSTRAP.md" not in create(tmp_path, _SOURCE)
    for name in ("AGENTS.md", "SOUL.md", "USER.md"):
        (tmp_path / name).unlink()
    assert "BOOTSTRAP.md" in create(tmp_path, _SOURCE)


def test_the_templates_name_only_what_agentd_has() -> None:
    shipped = {*NAMES, "YYYY-MM-DD.md"}
    for path in _SOURCE.rglob("*.md"):
        text = path.read_text()
        assert set(re.findall(r"[\w-]+\.md\b", text)) <= shipped
        assert set(re.findall(r"\bmemory_\w+|\bnotify\b", text)) <= _TOOLS
        assert text.endswith("\n")
        assert max(map(len, text.splitlines())) <= 112


def test_the_shipped_checklist_holds_nothing_to_do() -> None:
    lines = (_SOURCE / "HEARTBEAT.md").read_text().splitlines()
    assert all(re.fullmatch(r"(#.*|<!--.*-->|)", line) for line in lines)
