"""Schemas from an empty file to the present."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from agentd.errors import StorageCorrupt, StorageError
from agentd.storage.migrations import INDEX, STATE, Schema
from agentd.storage.sqlite import Database

FIRST = Schema("toy", 77, ("CREATE TABLE a (x);",))
SECOND = Schema("toy", 77, (*FIRST.steps, "CREATE TABLE b (x); INSERT INTO b VALUES (1);"))
BROKEN = Schema("toy", 77, (*FIRST.steps, "CREATE TABLE b (x); CREATE TABLE a (x);"))


async def tables(db):
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    return await db.read(lambda conn: [row[0] for row in conn.execute(query)])


async def test_missing_steps_run_once(tmp_path):
    async with Database.open(tmp_path / "t.db", FIRST) as db:
        assert await tables(db) == ["a"]
    for _ in range(2):
        async with Database.open(tmp_path / "t.db", SECOND) as db:
            assert await tables(db) == ["a", "b"]
            assert await db.read(lambda c: c.execute("SELECT count(*) FROM b").fetchone()[0]) == 1


async def test_a_step_that_fails_leaves_nothing_behind(tmp_path):
    async with Database.open(tmp_path / "t.db", FIRST):
        pass
    with pytest.raises(StorageError):
        async with Database.open(tmp_path / "t.db", BROKEN):
            pytest.fail("opened")
    async with Database.open(tmp_path / "t.db", FIRST) as db:
        assert await tables(db) == ["a"]


async def test_a_newer_file_is_refused_unchanged(tmp_path):
    async with Database.open(tmp_path / "t.db", SECOND):
        pass
    before = (tmp_path / "t.db").read_bytes()
    with pytest.raises(StorageError) as caught:
        async with Database.open(tmp_path / "t.db", FIRST):
            pytest.fail("opened")
    assert caught.value.cure
    assert (tmp_path / "t.db").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.db"]


@pytest.mark.parametrize("content", [b"no database " * 99, b"SQLite format 3\x00" + b"\x07" * 9000])
async def test_a_damaged_state_file_is_refused_and_kept(tmp_path, content):
    (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(StorageCorrupt) as caught:
        async with Database.open(tmp_path / "state.db", STATE):
            pytest.fail("opened")
    assert "backup" in caught.value.cure
    assert (tmp_path / "state.db").read_bytes() == content


async def test_somebody_elses_database_is_refused(tmp_path):
    async with Database.open(tmp_path / "t.db", FIRST):
        pass
    with pytest.raises(StorageCorrupt):
        async with Database.open(tmp_path / "t.db", STATE):
            pytest.fail("opened")


def test_every_table_says_who_writes_it():
    folder = files("agentd.storage") / "sql"
    scripts = [p.read_text() for p in folder.iterdir() if p.name.endswith(".sql")]
    assert len(scripts) == len(STATE.steps) + len(INDEX.steps)
    for script in scripts:
        for paragraph in script.split("\n\n"):
            assert re.match(r"-- ", paragraph), paragraph
