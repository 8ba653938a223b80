"""A backup is whole or refused, and restoring it never costs what is there."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tarfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentd import backup
from agentd.cli.app import app
from agentd.domain.fact import Category, Fact, FactSource, FactStatus, FactWrite
from agentd.errors import AgentdError, AlreadyRunning, InvalidRequest, StorageCorrupt
from agentd.memory.facts.known import Digests
from agentd.paths import Places, daemon_places
from agentd.restoring import restore
from agentd.storage.facts import SqliteFacts
from agentd.storage.graves import graves_in
from agentd.storage.lock import state_lock
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


async def database(path: Path) -> Path:
    async with Database.open(path.with_name("live.db"), STATE) as db:
        await db.write(lambda conn: conn.execute("CREATE TABLE proof AS SELECT 'kept' AS word"))
        await db.copy(path)
    return path


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    """A backup of a small home."""
    home = tmp_path / "old"
    (home / "workspace" / "memory").mkdir(parents=True)
    (home / "workspace" / "memory" / "2026-11-20.md").write_text("a note\n")
    (home / "workspace" / ".agentd-12.tmp").write_text("half")
    (home / "workspace" / "link.md").symlink_to("/etc/passwd")
    (home / "versions").mkdir()
    (home / "versions" / "v1").write_text("an old version")
    (home / "blobs" / "ab").mkdir(parents=True)
    (home / "blobs" / "ab" / "abc").write_bytes(b"an image")
    (home / "blobs" / "ab" / ".agentd-1.tmp").write_bytes(b"half of one")
    (home / "facts.key").write_bytes(b"a key")
    (home / "config.toml").write_text("[log]\nkeep = 7\n")
    copy = await database(home / "state.db")
    places = ("config.toml", "workspace", "versions", "blobs", "facts.key")
    contents = backup.Contents(copy, *(home / name for name in places))
    told = backup.write(contents, tmp_path / "b.tar.gz", NOW)
    assert told["files"] == 6
    return tmp_path / "b.tar.gz"


def home(tmp_path: Path) -> Places:
    return daemon_places({"AGENTD_HOME": str(tmp_path / "new")})


def put(archive: Path, places: Places, *, force: bool = False) -> dict[str, object]:
    return restore(archive, places, {}, NOW, force=force)


def word(places: Places) -> str:
    conn = sqlite3.connect(places.state_dir / "state.db")
    try:
        return conn.execute("SELECT word FROM proof").fetchone()[0]
    finally:
        conn.close()


async def test_a_backup_holds_everything_and_is_the_owners_alone(archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o600
    assert set(backup.verify(archive)["files"]) == {
        *("state/state.db", "config.toml", "workspace/memory/2026-11-20.md", "state/versions/v1"),
        *("state/blobs/ab/abc", "state/facts.key"),
    }
    assert [p.name for p in archive.parent.iterdir() if p.name.startswith(".")] == []


async def test_it_comes_back_in_an_empty_place(archive: Path, tmp_path: Path) -> None:
    places = home(tmp_path)
    assert put(archive, places)["aside"] == []
    assert word(places) == "kept"
    assert (places.workspace / "memory" / "2026-11-20.md").read_text() == "a note\n"
    assert (places.state_dir / "blobs" / "ab" / "abc").read_bytes() == b"an image"
    assert (places.state_dir / "versions" / "v1").read_text() == "an old version"
    assert (places.state_dir / "facts.key").read_bytes() == b"a key"
    assert places.config_file.read_text() == "[log]\nkeep = 7\n"
    for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert not list(places.state_dir.glob(".restore*"))


async def test_what_is_there_is_moved_aside_only_when_forced_and_never_deleted(
    archive: Path, tmp_path: Path
) -> None:
    places = home(tmp_path)
    put(archive, places)
    (places.workspace / "mine.md").write_text("mine\n")
    with pytest.raises(AgentdError) as caught:
        put(archive, places)
    assert "--force" in caught.value.cure
    assert (places.workspace / "mine.md").read_text() == "mine\n"
    aside = put(archive, places, force=True)["aside"]
    assert not (places.workspace / "mine.md").exists()
    old = next(Path(path) for path in aside if "workspace" in path)
    assert (old / "mine.md").read_text() == "mine\n"
    assert word(places) == "kept"


async def remembering(state: Path, *texts: str, key: bytes = b"k" * 32) -> None:
    """A state directory with facts, f0 and on."""
    state.mkdir(parents=True)
    (state / "facts.key").write_bytes(key)
    async with Database.open(state / "state.db", STATE) as db:
        facts = tuple(known(f"f{n}", text) for n, text in enumerate(texts))
        await SqliteFacts(db).write(FactWrite(facts))


def known(fact_id: str, text: str) -> Fact:
    return Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)


async def facts_of(state: Path) -> list[tuple[str, FactStatus]]:
    async with Database.open(state / "state.db", STATE) as db:
        return [(fact.text, fact.status) for fact in await SqliteFacts(db).facts()]


@pytest.mark.parametrize(
    ("key", "forgotten"), [(b"k" * 32, 1), (b"x" * 32, None)], ids=["the same key", "another key"]
)
async def test_what_was_forgotten_since_is_forgotten_in_what_comes_back(
    tmp_path: Path, key: bytes, forgotten: int | None
) -> None:
    rex, tea = "The user's dog is called Rex.", "The user likes tea."
    old, places = tmp_path / "old", home(tmp_path)
    await remembering(old, rex, tea)
    names = ("config.toml", "workspace", "versions", "blobs", "facts.key")
    contents = backup.Contents(old / "state.db", *(old / name for name in names))
    backup.write(contents, tmp_path / "facts.tar.gz", NOW)
    await remembering(places.state_dir, rex, tea, key=key)
    async with Database.open(places.state_dir / "state.db", STATE) as db:
        digests = {Digests(key).of(rex)}
        await SqliteFacts(db).bury(["f0"], [*digests], NOW)
    told = put(tmp_path / "facts.tar.gz", places, force=True)
    assert told["forgotten"] == forgotten
    first = ("", FactStatus.FORGOTTEN) if forgotten else (rex, FactStatus.ACTIVE)
    assert await facts_of(places.state_dir) == [first, (tea, FactStatus.ACTIVE)]
    assert (graves_in(places.state_dir / "state.db") == digests) is bool(forgotten)
    assert (rex.encode() in (places.state_dir / "state.db").read_bytes()) is not bool(forgotten)


@pytest.mark.parametrize("present", [None, b"no database"])
async def test_it_is_said_when_nobody_can_tell_what_was_forgotten(
    archive: Path, tmp_path: Path, present: bytes | None
) -> None:
    places = home(tmp_path)
    if present:
        places.state_dir.mkdir(parents=True)
        (places.state_dir / "state.db").write_bytes(present)
    assert put(archive, places, force=True)["forgotten"] is None


async def test_a_restore_does_not_claim_what_it_cannot_know(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "new"))
    told = CliRunner().invoke(app, ["restore", str(archive)]).output
    assert "6 files restored" in told
    assert "if something was, it is known again" in told


async def test_nothing_is_restored_below_a_running_daemon(archive: Path, tmp_path: Path) -> None:
    places = home(tmp_path)
    with state_lock(places.state_dir), pytest.raises(AlreadyRunning):
        put(archive, places)
    assert not places.config_file.exists()


async def test_the_workspace_goes_where_the_restored_configuration_wants_it(
    archive: Path, tmp_path: Path
) -> None:
    places = home(tmp_path)
    elsewhere = tmp_path / "elsewhere" / "ws"
    restore(archive, places, {"AGENTD__WORKSPACE__PATH": str(elsewhere)}, NOW, force=False)
    assert (elsewhere / "memory" / "2026-11-20.md").exists()
    assert not places.workspace.exists()


def rewritten(archive: Path, changes: dict[str, bytes | None]) -> Path:
    """The archive with other bytes for some entries, None leaves one out."""
    entries = dict(backup.read(archive)) | changes
    target = archive.with_name("changed.tar.gz")
    with tarfile.open(target, "w:gz") as tar:
        for name, data in entries.items():
            if data is not None:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, BytesIO(data))
    return target


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"config.toml": b"[log]\nkeep = 8\n"}, id="changed"),
        pytest.param({"workspace/memory/2026-11-20.md": None}, id="missing"),
        pytest.param({"workspace/more.md": b"x"}, id="added"),
        pytest.param({"manifest.json": None}, id="no manifest"),
        pytest.param({"workspace/../../evil": b"x"}, id="leads out"),
        pytest.param({"/etc/evil": b"x"}, id="absolute"),
    ],
)
async def test_an_archive_that_is_not_what_was_written_changes_nothing(
    archive: Path, tmp_path: Path, changes: dict[str, bytes | None]
) -> None:
    places = home(tmp_path)
    with pytest.raises(AgentdError):
        put(rewritten(archive, changes), places)
    assert [p.name for p in (tmp_path / "new").rglob("*")] == ["state", "agentd.lock"]


async def test_a_cut_file_and_no_file_are_refused(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(AgentdError, match="no whole backup"):
        put(archive, home(tmp_path))
    with pytest.raises(AgentdError, match="there is no"):
        put(tmp_path / "absent", home(tmp_path))


async def test_a_damaged_database_is_neither_backed_up_nor_restored(
    archive: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.db"
    data = bytearray((await database(tmp_path / "copy.db")).read_bytes())
    data[4096:8192] = os.urandom(4096)
    bad.write_bytes(data)
    contents = backup.Contents(bad, *[tmp_path / "no"] * 5)
    with pytest.raises(StorageCorrupt):
        backup.write(contents, tmp_path / "bad.tar.gz", NOW)
    assert not (tmp_path / "bad.tar.gz").exists()
    manifest = backup.verify(archive)
    manifest["files"][backup.DATABASE] = hashlib.sha256(data).hexdigest()
    changed = rewritten(
        archive, {backup.DATABASE: bytes(data), backup.MANIFEST: json.dumps(manifest).encode()}
    )
    with pytest.raises(StorageCorrupt):
        put(changed, home(tmp_path))


async def test_an_existing_file_is_never_replaced(archive: Path, tmp_path: Path) -> None:
    before = archive.read_bytes()
    copy = await database(tmp_path / "copy.db")
    contents = backup.Contents(copy, *[tmp_path / "no"] * 5)
    with pytest.raises(InvalidRequest, match="exists already"):
        backup.write(contents, archive, NOW)
    assert archive.read_bytes() == before
    with pytest.raises(AgentdError, match="cannot be written"):
        backup.write(contents, tmp_path / "no" / "b.tar.gz", NOW)
