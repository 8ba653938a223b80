"""Schemas from an empty file to the present."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from agentd.core.errors import StorageCorrupt, StorageError
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


_STEP = next(step for step in STATE.steps if "ADD COLUMN quoted" in step)
_BEFORE = Schema("state", STATE.application_id, STATE.steps[: STATE.steps.index(_STEP)])
_AFTER = Schema("state", STATE.application_id, (*_BEFORE.steps, _STEP))
_NEW = """
INSERT INTO rows (session_id, seq, turn_id, role, opens_turn, at, provider, tag, blocks)
VALUES (?, ?, ?, ?, ?, '', ?, ?, '[]')
"""
_KEPT = (  # key, then role, whether it opens a turn, turn, provider, tag, and what it comes from
    (
        "main",
        ("user", 1, 1, "", "", "owner"),
        ("assistant", 0, 1, "offline", "", "agent"),
        ("user", 0, 1, "", "tainted", "agent tainted"),
        ("assistant", 0, 1, "offline", "", "agent tainted"),
        ("user", 1, 2, "", "", "owner"),
        ("assistant", 0, 2, "offline", "", "agent"),
        ("user", 0, 2, "", "", "agent"),
        ("notice", 0, None, "", "alert", "agent"),
        ("summary", 0, None, "", "", "agent"),
    ),
    (
        "chat:imported",
        ("user", 1, None, "", "", "owner"),
        ("notice", 0, None, "", "import", "agent tainted"),
        ("summary", 0, None, "", "", "agent tainted"),
        ("user", 1, None, "", "tainted", "other tainted"),
        ("assistant", 0, None, "", "", "agent tainted"),
        ("user", 0, None, "", "", "agent tainted"),
        ("user", 1, 3, "", "", "owner"),
        ("assistant", 0, 3, "offline", "", "agent"),
        ("notice", 0, None, "", "alert", "agent"),
    ),
    (
        "chat:forked",
        ("user", 1, None, "", "", "owner"),
        ("assistant", 0, None, "offline", "", "agent"),
        ("user", 0, None, "", "", "agent"),
        ("assistant", 0, None, "offline", "", "agent"),
    ),
    (
        "group:club",
        ("user", 1, 4, "", "", "other tainted"),
        ("assistant", 0, 4, "offline", "", "agent tainted"),
        ("notice", 0, None, "", "alert", "agent"),
    ),
)


async def test_rows_that_are_there_get_the_source_that_can_be_known(tmp_path):
    def fill(conn):
        for turn in range(1, 5):
            conn.execute(
                "INSERT INTO turns VALUES (?, 1, ?, 'user', 'main', NULL, NULL, '', 1, '', "
                "'done', 1, '', '', NULL, '[]')",
                (turn, str(turn)),
            )
        for number, (key, *rows) in enumerate(_KEPT, 1):
            conn.execute(
                "INSERT INTO sessions (id, key, created_at, updated_at) VALUES (?, ?, '', '')",
                (number, key),
            )
            for seq, (role, opens, turn, provider, tag, _) in enumerate(rows, 1):
                conn.execute(_NEW, (number, seq, turn, role, opens, provider, tag))
        conn.execute("INSERT INTO silent_rows VALUES (1, 1, 'user', '', '', NULL, 'tainted', '[]')")

    async with Database.open(tmp_path / "state.db", _BEFORE) as db:
        await db.write(lambda conn: conn.execute("PRAGMA defer_foreign_keys = ON") and fill(conn))
    async with Database.open(tmp_path / "state.db", _AFTER) as db:
        for number, (key, *rows) in enumerate(_KEPT, 1):
            query = f"SELECT source FROM rows WHERE session_id = {number} ORDER BY seq"
            found = await db.read(lambda conn, query=query: [r[0] for r in conn.execute(query)])
            assert found == [row[-1] for row in rows], key
        left = (
            "SELECT (SELECT count(*) FROM rows WHERE tag = 'tainted'), source, tag FROM silent_rows"
        )
        assert await db.read(lambda conn: tuple(conn.execute(left).fetchone())) == (
            0,
            "agent tainted",
            "",
        )
