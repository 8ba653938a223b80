"""Everything of the user's as plain files, from a real daemon."""

from __future__ import annotations

import csv
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, a_shell


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        shell.wake()
        shell.ok("send", "remember that the sled is red")
        shell.ok("memory", "write", "the skids are waxed")
        shell.ok("send", "hello", "--session", "group:sledders")
        shell.json("alerts", "test")
        shell.ok("heartbeat", "run", "--force")
        shell.ok("jobs", "add", "wax the sled", "--every", "2h")
        (shell.workspace / "picture.bin").write_bytes(b"\x00\xff")
        (shell.workspace / "link.md").symlink_to("/etc/hostname")
        yield shell


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_a_folder_holds_all_that_is_the_users(shell: Shell) -> None:
    done = shell.json("export", "out")
    found = files(shell.root / "out")
    assert (done["files"], done["bytes"]) == (len(found), sum(map(len, found.values())))
    assert found["workspace/picture.bin"] == b"\x00\xff"
    assert "workspace/link.md" not in found
    assert (done["links"], done["left_out"]) == (1, ["link.md"])
    assert "without 1 link (link.md)" in shell.ok("export", "again").out
    assert "without 1 link (link.md)" in shell.ok("backup", "again.tar.gz").out
    assert b"- the sled is red" in found["workspace/memory/facts.md"]
    [note] = [data for name, data in found.items() if name.startswith("workspace/memory/2")]
    assert b"the skids are waxed" in note
    assert found["sessions/main.jsonl"].decode() == shell.ok("sessions", "export", "main").out
    assert "sessions/group:sledders.jsonl" in found
    [alert] = found["alerts.jsonl"].splitlines()
    assert "test alert" in json.loads(alert)["text"]
    assert json.loads(found["beats.jsonl"].splitlines()[-1])["outcome"] == "quiet"
    assert json.loads(found["jobs.jsonl"])["text"] == "wax the sled"
    rows = list(csv.DictReader(found["costs.csv"].decode().splitlines()))
    assert {row["session"] for row in rows} >= {"main", "group:sledders"}
    assert found["config.toml"] == (shell.root / "config.toml").read_bytes()


def test_what_is_written_is_for_its_owner_alone(shell: Shell) -> None:
    shell.ok("export", "private")
    root = shell.root / "private"
    assert {path.stat().st_mode & 0o777 for path in [root, *root.rglob("*")]} == {0o700, 0o600}
    assert (root.stat().st_mode & 0o777) == 0o700


def test_an_archive_holds_the_same(shell: Shell) -> None:
    shell.ok("export", "folder")
    shell.ok("export", "all.tar")
    archive = shell.root / "all.tar"
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as tar:
        held = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}  # type: ignore[union-attr]  # all are files
        assert {member.mode for member in tar.getmembers()} == {0o600}
    assert held == files(shell.root / "folder")


def test_nothing_is_overwritten_and_nothing_half_done_stays(shell: Shell) -> None:
    (shell.root / "mine").mkdir()
    (shell.root / "mine" / "file").write_text("x")
    (shell.root / "mine.tar").write_text("x")
    before = sorted(path.name for path in shell.root.iterdir())
    assert shell("export", "mine").code == 2
    assert shell("export", "mine.tar").code == 2
    assert shell("export", "no/such/place").code == 1
    assert sorted(path.name for path in shell.root.iterdir()) == before
    assert (shell.root / "mine" / "file").read_text() == "x"


def test_the_workspace_of_another_daemon_is_not_taken_for_this_ones(shell: Shell) -> None:
    (shell.root / "elsewhere").mkdir()
    (shell.root / "other.toml").write_text(f'[workspace]\npath = "{shell.root}/elsewhere"\n')
    refused = shell("export", "wrong", "--config", "other.toml")
    assert refused.code == 2
    assert "workspace" in refused.err
    assert not (shell.root / "wrong").exists()
