"""What is no file stands in the place of the index: it is moved aside whole, and never deleted."""

from __future__ import annotations

import os

import pytest

from agentd.core.errors import StorageError
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.sqlite import Database

KINDS = ["directory", "pipe", "link", "broken link"]


def put(kind, path):
    elsewhere = path.with_name("elsewhere")
    if kind == "directory":
        path.mkdir()
        (path / "mine.txt").write_text("mine")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere)
        if kind == "link":
            elsewhere.write_text("mine")
            elsewhere.chmod(0o644)


def is_whole(kind, path):
    elsewhere = path.with_name("elsewhere")
    match kind:
        case "directory":
            return (path / "mine.txt").read_text() == "mine"
        case "pipe":
            return path.is_fifo()
        case "link":
            kept = elsewhere.stat().st_mode & 0o777, elsewhere.read_text()
            return path.is_symlink() and kept == (0o644, "mine")
    return path.is_symlink() and not elsewhere.exists()


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_start_moves_it_aside(tmp_path, kind, suffix):
    path, aside = tmp_path / "index.db", tmp_path / f"index.db.corrupt-1{suffix}"
    put(kind, tmp_path / f"index.db{suffix}")
    async with Database.open(path, INDEX) as db:
        (problem,) = db.problems()
        assert problem.code == "index_rebuilt"
        assert f"index.db{suffix} is no file of its own" in problem.text
        await SqliteChunks(db).erase(())
        assert is_whole(kind, aside)
    assert path.is_file()
    assert not path.is_symlink()


async def test_a_second_one_takes_the_next_name(tmp_path):
    path = tmp_path / "index.db"
    for _ in range(2):
        path.unlink(missing_ok=True)
        put("broken link", path)
        async with Database.open(path, INDEX):
            pass
    assert (tmp_path / "index.db.corrupt-1").is_symlink()
    assert (tmp_path / "index.db.corrupt-2").is_symlink()


async def test_a_broken_link_that_takes_its_place_meanwhile_is_kept(tmp_path):
    path = tmp_path / "index.db"
    async with Database.open(path, INDEX) as db:
        path.unlink()
        put("broken link", path)
        await db.verify()
        assert [problem.code for problem in db.problems()] == ["index_restored"]
    assert (tmp_path / "index.db.corrupt-1").is_symlink()


async def test_what_cannot_be_made_again_is_not_moved(tmp_path):
    path = tmp_path / "state.db"
    path.mkdir()
    with pytest.raises(StorageError):
        async with Database.open(path, STATE):
            pass
    assert path.is_dir()
