"""A state database that is damaged, emptied or gone, at the next start."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.core.errors import StateMissing, StorageCorrupt, StorageError
from agentd.core.message import Text
from agentd.core.transcript import DAMAGED, NewRow, RowRole
from agentd.storage.damages import Damages
from agentd.storage.files import SoundnessLook, look
from agentd.storage.migrations import STATE
from agentd.storage.rescue import begin_anew, is_used, make_sound
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
COUNT = 60


def said(number):
    return NewRow(RowRole.USER, (Text(f"message {number} " + "word " * (number % 7) * 90),))


async def fill(path, clock):
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        await sessions.add_rows("chat:a", [(said(n), clock.now()) for n in range(COUNT)])
        return await sessions.rows("chat:a")


async def found(path, clock):
    async with Database.open(path, STATE) as db:
        return await SqliteSessions(db, clock).rows("chat:a")


def sound(path, used=True):
    return make_sound(path, STATE, NOW, used=lambda: used)


def codes(path):
    return [problem.code for problem in Damages(path).problems()]


def root_of(path, name):
    """The first page of a table or index."""
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)
        ).fetchone()[0]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "state.db"


async def test_a_whole_database_is_left_as_it_is(path, clock):
    rows = await fill(path, clock)
    before = path.read_bytes()
    assert sound(path).is_complete
    assert path.read_bytes() == before
    assert (await found(path, clock), codes(path)) == (rows, [])


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_page_of_noise_is_noticed_and_all_else_is_salvaged(path, clock, at):
    rows = await fill(path, clock)
    if at == 2:
        at = root_of(path, "rows") - 1
    data = bytearray(path.read_bytes())
    data[4096 * at : 4096 * (at + 1)] = bytes((7 * n + n // 251) % 256 for n in range(4096))
    path.write_bytes(data)
    with pytest.raises(StorageCorrupt):  # as it was without the salvage, or silence
        async with Database.open(path, STATE) as db:
            await db.read(lambda conn: conn.execute("SELECT * FROM sessions, rows").fetchall())
    sound(path)
    assert codes(path) == ["state_salvaged"]
    (damage,) = Damages(path).all()
    assert (damage.folder / "state.db").read_bytes() == data
    assert str(damage.folder) in damage.problem.cure
    kept = {(row.seq, row.text) for row in rows}
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        keys = [info.key for info in await sessions.sessions() if info.key != "main"]
        left = {(row.seq, row.text) for row in await sessions.rows(keys[0])}
    assert left == kept
    assert look(path, STATE) == SoundnessLook()


async def test_an_index_that_lies_is_damage_too(path, clock):
    await fill(path, clock)
    root = root_of(path, "sqlite_autoindex_sessions_1")
    data = bytearray(path.read_bytes())
    page = data[4096 * (root - 1) : 4096 * root]
    place = page.index(b"chat:a")
    data[4096 * (root - 1) + place + 5] ^= 1
    path.write_bytes(data)
    assert "index" in look(path, STATE).damage
    sound(path)
    assert len(await found(path, clock)) == COUNT


async def test_a_row_of_which_damage_made_another_kind_is_salvaged_with_a_mark(path, clock):
    await fill(path, clock)
    data = bytearray(path.read_bytes())
    places = [at for at in range(len(data)) if data.startswith(b"user", at)]
    # In the header of a record: a text of four bytes becomes a number of eight, so all behind it
    # moves.
    head = next(at for at in range(places[0] - 30, places[0]) if data[at] == 13 + 2 * len("user"))
    data[head] = 6
    path.write_bytes(data)
    sound(path)
    assert codes(path) == ["state_salvaged"]
    async with Database.open(path, STATE) as db:
        rows = [
            row
            for info in await SqliteSessions(db, clock).sessions()
            for row in await SqliteSessions(db, clock).rows(info.key)
        ]
        assert len(rows) == COUNT
        assert sum(row.tag == DAMAGED for row in rows) == 1
        assert [problem.code for problem in db.problems()] == ["row_damaged"]


async def test_a_row_that_damage_gave_the_number_of_another_is_salvaged_as_well(path, clock):
    before = await fill(path, clock)
    data = bytearray(path.read_bytes())
    text = data.index(b"message 5 ")
    first = text - text % 4096
    pointers = range(
        first + 8, first + 8 + 2 * int.from_bytes(data[first + 3 : first + 5], "big"), 2
    )
    cells = (first + int.from_bytes(data[at : at + 2], "big") for at in pointers)
    cell = max(at for at in cells if at < text)
    number = cell + (2 if data[cell] & 0x80 else 1)  # behind the size, a varint
    data[number] += 1
    path.write_bytes(data)
    sound(path)
    assert codes(path) == ["state_salvaged"]
    after = await found(path, clock)
    assert [(row.seq, row.blocks) for row in after] == [(row.seq, row.blocks) for row in before]


@pytest.mark.parametrize("odd", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["rows.key", "state.db-acknowledged", "state.db-journal"])
async def test_what_is_no_file_in_the_place_of_one_beside_it_is_named(path, clock, name, odd):
    await fill(path, clock)
    (path.parent / name).unlink(missing_ok=True)
    odd(path.parent / name)
    with pytest.raises(
        StorageError, match=f"{name} cannot be used: it is no regular file"
    ) as caught:
        sound(path)
    assert "move it away" in caught.value.cure


@pytest.mark.parametrize("used", [True, False])
async def test_a_missing_database_is_refused_where_one_was_used(path, clock, used):
    if not used:
        assert sound(path, used=False).damage == ""
        assert not path.exists()
        return
    with pytest.raises(StateMissing) as caught:
        sound(path)
    assert caught.value.exit_code == 78
    assert "init --new-state" in caught.value.cure
    assert "restore" in caught.value.cure
    assert begin_anew(path, STATE, NOW) == []
    sound(path)
    with pytest.raises(StorageError, match="is there"):
        begin_anew(path, STATE, NOW)


async def test_an_emptied_database_is_told_and_what_its_log_holds_is_salvaged(path, clock):
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        await sessions.add_rows("chat:a", [(said(n), clock.now()) for n in range(COUNT)])
        rows = await sessions.rows("chat:a")
        log = path.with_name("state.db-wal").read_bytes()
    path.write_bytes(b"")
    path.with_name("state.db-wal").write_bytes(log)
    sound(path)
    assert codes(path) == ["state_salvaged"]
    assert await found(path, clock) == rows
    path.write_bytes(b"")
    sound(path)
    assert codes(path) == ["state_salvaged"] * 2


def test_an_empty_file_of_a_first_start_that_was_killed_is_nothing(path):
    path.write_bytes(b"")
    sound(path, used=False)
    assert codes(path) == []


async def test_somebody_elses_database_stays_untouched(path):
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE theirs (x)")
        conn.commit()
    before = path.read_bytes()
    with pytest.raises(StorageCorrupt, match="not one of agentd's"):
        sound(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("when", ["before it was whole", "before the move", "within the move"])
async def test_a_salvage_that_was_cut_goes_on_at_the_next_start(path, clock, when):
    rows = await fill(path, clock)
    good = path.read_bytes()
    begin = 4096 * (root_of(path, "items") - 1)
    path.write_bytes(good[:begin] + b"\xff" * 4096 + good[begin + 4096 :])
    folder = path.with_name("state.db.damaged-1")
    folder.mkdir()
    if when == "before it was whole":
        (folder / "salvaged.db.part").write_bytes(good[:5000])
    else:
        (folder / "salvaged.db").write_bytes(good)
        if when == "within the move":
            path.rename(folder / "state.db")
    sound(path)
    assert (folder / "state.db").exists()
    assert await found(path, clock) == rows


async def test_a_version_that_was_flipped_in_the_header_is_damage_and_a_newer_one_is_not(
    path, clock
):
    rows = await fill(path, clock)
    data = bytearray(path.read_bytes())
    data[62] ^= 4
    path.write_bytes(data)
    sound(path)
    assert (await found(path, clock), codes(path)) == (rows, ["state_salvaged"])
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE newer (x)")
        conn.execute("PRAGMA user_version = 99")
        conn.commit()
    with pytest.raises(StorageError, match="version 99"):
        sound(path)


def test_what_agentd_keeps_or_marks_tells_that_it_was_there(tmp_path):
    state, workspace = tmp_path / "state", tmp_path / "workspace"
    (workspace / "memory").mkdir(parents=True)
    state.mkdir()
    (workspace / "memory" / "2026-11-24.md").write_text("bought tea\n")
    assert not is_used(state, workspace)
    note = workspace / "memory" / "facts.md"
    note.write_text("- Tea is green. <!-- agentd: id=k3f9 -->\n")
    assert is_used(state, workspace)
    note.unlink()
    (state / "index.db").touch()
    assert is_used(state, workspace)


def test_reading_all_of_it_ends_when_its_time_is_over(path):
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript("".join(STATE.steps))
        conn.execute(f"PRAGMA application_id = {STATE.application_id}")
        conn.execute(f"PRAGMA user_version = {len(STATE.steps)}")
        made = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000)"
        conn.execute(f"{made} INSERT INTO items SELECT i || 'x', '', '' FROM n")
        conn.commit()
    assert not look(path, STATE, 0.01).is_complete
    assert look(path, STATE, 60).is_complete
