"""What was stored is proven row by row, what was acknowledged commit by commit."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime

import pytest

from agentd.core.erasure import Erasure
from agentd.core.errors import StorageError
from agentd.core.message import Text, ToolResult, ToolUse
from agentd.core.transcript import DAMAGED, NewRow, RowRole
from agentd.core.turn import TurnRequest
from agentd.storage.damages import Damages
from agentd.storage.masking import Masking
from agentd.storage.migrations import STATE
from agentd.storage.proofs import SLOT, SLOTS, Commit, Ring, commits_in, key_of, ring_of
from agentd.storage.proving import RowCheck
from agentd.storage.rescue import make_sound
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
ROWS = (
    NewRow(RowRole.USER, (Text("look at the note"),)),
    NewRow(RowRole.ASSISTANT, (ToolUse("c1", "memory_read", {"path": "a.md"}),), "anthropic"),
    NewRow(RowRole.USER, (ToolResult("c1", "it says tea"),)),
    NewRow(RowRole.ASSISTANT, (Text("The note says tea."),), "anthropic"),
)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "state.db"


async def fill(path, clock):
    async with Database.open(path, STATE) as db:
        await SqliteSessions(db, clock).add_rows("chat:a", [(row, clock.now()) for row in ROWS])


def change(path, statement, *values):
    """What damage does: behind agentd's back, and without the key."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute(statement, values)


@asynccontextmanager
async def nobody(keys):
    """No index stands beside these databases."""
    yield


def codes(source):
    return [problem.code for problem in source.problems()]


@pytest.mark.parametrize(
    "column", ["blocks", "source", "at", "role", "session_id", "seq", "tag", "digest"]
)
async def test_a_row_that_is_not_what_was_stored_is_said_and_never_shown(path, clock, column):
    await fill(path, clock)
    if column == "session_id":
        change(
            path,
            "INSERT INTO sessions (id, key, created_at, updated_at) VALUES (9, 'chat:b', '', '')",
        )
    new = {
        "blocks": "replace(blocks, 'tea', 'gin')",
        "source": "'owner'",
        "at": "'2020-01-01T00:00:00+00:00'",
        "role": "'user'",
        "session_id": "9",
        "seq": "7",
        "tag": "'x'",
        "digest": "NULL",
    }[column]
    change(path, f"UPDATE rows SET {column} = {new} WHERE seq = 4")
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        key = "chat:b" if column == "session_id" else "chat:a"
        row = (await sessions.rows(key))[-1]
        assert (row.role, row.tag) == (RowRole.NOTICE, DAMAGED)
        assert "tea" not in row.text
        assert "gin" not in row.text
        (problem,) = db.problems()
        assert (problem.code, f"{key} {row.seq}" in problem.text) == ("row_damaged", True)


async def test_text_that_damage_has_made_no_unicode_keeps_nothing_else_from_being_read(path, clock):
    await fill(path, clock)
    change(path, "UPDATE rows SET blocks = CAST(x'5b22ff225d' AS TEXT) WHERE seq = 4")
    change(path, "UPDATE sessions SET created_at = CAST(x'ff' AS TEXT)")
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        assert [row.tag for row in await sessions.rows("chat:a")] == ["", "", "", DAMAGED]
        assert await RowCheck(db, clock).look() == 1
        assert [info.created_at.year for info in await sessions.sessions()][-1] in {1970, 2026}
        assert len((await sessions.load("chat:a")).rows) == 4


async def test_without_the_proof_a_changed_row_passes_in_silence(path, clock):
    await fill(path, clock)
    change(path, "UPDATE rows SET blocks = replace(blocks, 'tea', 'gin') WHERE seq = 4")
    async with Database.open(path, STATE, checks=False) as db:
        row = (await SqliteSessions(db, clock).rows("chat:a"))[-1]
        assert row.text == "The note says gin."
        assert db.problems() == ()


@pytest.mark.parametrize(("seq", "left"), [(2, ToolResult), (3, ToolUse)])
async def test_a_prompt_holds_no_call_that_lost_its_result_to_damage(path, clock, seq, left):
    await fill(path, clock)
    change(path, "UPDATE rows SET tag = 'x' WHERE seq = ?", seq)
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        blocks = [b for row in (await sessions.load("chat:a")).rows for b in row.blocks]
        assert not [b for b in blocks if isinstance(b, ToolUse | ToolResult)]
        exported = [b for row in await sessions.rows("chat:a") for b in row.blocks]
        assert [type(b) for b in exported if not isinstance(b, Text)] == [left]


async def test_rows_nobody_has_asked_for_are_looked_at_too(path, clock):
    await fill(path, clock)
    async with Database.open(path, STATE) as db:
        assert await RowCheck(db, clock).look() == 0
    change(path, "UPDATE rows SET blocks = replace(blocks, 'tea', 'gin')")
    async with Database.open(path, STATE) as db:
        assert db.problems() == ()
        assert await RowCheck(db, clock).look() == 2
        assert codes(db) == ["row_damaged"]
        await SqliteSessions(db, clock).delete("chat:a")
        assert await RowCheck(db, clock).look() == 0


async def test_what_agentd_masks_and_copies_itself_stays_proven(path, clock):
    await fill(path, clock)
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        await sessions.fork("chat:a", "chat:b")
        await Masking(db, nobody).erase(Erasure(sentences=("The note says tea.",)))
        assert await RowCheck(db, clock).look() == 0
        assert "tea." not in "".join(row.text for row in await sessions.rows("chat:b"))
        assert db.problems() == ()


async def test_a_copy_of_a_damaged_row_is_damaged(path, clock):
    await fill(path, clock)
    change(path, "UPDATE rows SET blocks = replace(blocks, 'tea', 'gin') WHERE seq = 4")
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        await sessions.fork("chat:a", "chat:b")
        assert [row.tag for row in await sessions.rows("chat:b")] == ["", "", "", DAMAGED]


async def test_a_lost_key_is_told_once_and_rows_get_new_digests(path, clock):
    await fill(path, clock)
    key_of(path).write_bytes(bytes(32))
    make_sound(path, STATE, NOW, used=lambda: True)
    assert codes(Damages(path)) == ["rows_key_lost"]
    async with Database.open(path, STATE) as db:
        assert await RowCheck(db, clock).look() == 0
    make_sound(path, STATE, NOW, used=lambda: True)
    assert codes(Damages(path)) == ["rows_key_lost"]
    assert (key_of(path).stat().st_mode & 0o777, len(key_of(path).read_bytes())) == (0o600, 32)


async def killed(path, elsewhere, clock, count=12):
    """The files of a daemon that was killed after so many messages were acknowledged."""
    elsewhere.mkdir()
    copy = elsewhere / path.name
    async with Database.open(path, STATE) as db:
        sessions = SqliteSessions(db, clock)
        await sessions.create("chat:a")
        await db.read(lambda conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        for number in range(count):
            await sessions.receive(TurnRequest("chat:a", f"word {number}", f"m{number}"))
            await sessions.notice("chat:a", f"notice {number}", "")
        for part in (path, path.with_name("state.db-wal"), ring_of(path), key_of(path)):
            shutil.copy(part, elsewhere / part.name)
    return copy


@pytest.mark.parametrize("damage", ["deleted", "emptied", "half", "a flip", "its header"])
@pytest.mark.parametrize("proofs", [True, False])
async def test_an_acknowledged_row_that_the_log_lost_is_named(
    path, tmp_path, clock, damage, proofs
):
    copy = await killed(path, tmp_path / "killed", clock)
    log = copy.with_name("state.db-wal")
    data = bytearray(log.read_bytes())
    if damage == "deleted":
        log.unlink()
    elif damage in {"emptied", "half"}:
        log.write_bytes(data[: len(data) // 2 if damage == "half" else 0])
    else:
        data[len(data) // 2 if damage == "a flip" else 9] ^= 8
        log.write_bytes(data)
    make_sound(copy, STATE, NOW, used=lambda: True, proofs=proofs)
    async with Database.open(copy, STATE, checks=proofs) as db:
        left = len(await SqliteSessions(db, clock).rows("chat:a"))
        assert left < 12
        if not proofs:  # as it was: nobody says a word
            assert codes(Damages(copy)) + codes(db) == []
            return
    (damage_,) = Damages(copy).all()
    assert damage_.problem.code == "acknowledged_lost"
    assert f"chat:a {left + 1}" in damage_.problem.text
    assert "to 12, message" in damage_.problem.text
    make_sound(copy, STATE, NOW, used=lambda: True)
    assert len(Damages(copy).all()) == 1, "it is told once"


async def test_a_log_that_held_all_there_was_is_missed(path, tmp_path, clock):
    elsewhere = tmp_path / "killed"
    elsewhere.mkdir()
    with closing(
        sqlite3.connect(path)
    ) as conn:  # the file of a first life, as earlier versions left it
        conn.execute("PRAGMA journal_mode = WAL")
    shutil.copy(path, elsewhere / path.name)
    make_sound(elsewhere / path.name, STATE, NOW, used=lambda: False)
    assert codes(Damages(elsewhere / path.name)) == []
    make_sound(elsewhere / path.name, STATE, NOW, used=lambda: True)
    assert codes(Damages(elsewhere / path.name)) == ["state_salvaged"]


async def test_the_tables_stand_in_the_file_from_the_first_moment(path):
    async with Database.open(path, STATE):
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as conn:
            assert conn.execute("PRAGMA user_version").fetchone() == (len(STATE.steps),)


async def test_a_kill_that_loses_nothing_is_no_problem(path, tmp_path, clock):
    copy = await killed(path, tmp_path / "killed", clock)
    make_sound(copy, STATE, NOW, used=lambda: True)
    async with Database.open(copy, STATE) as db:
        assert len(await SqliteSessions(db, clock).rows("chat:a")) == 12
    assert codes(Damages(copy)) == []


async def test_a_commit_that_the_ring_has_not_seen_is_no_loss(path, tmp_path, clock):
    copy = await killed(path, tmp_path / "killed", clock)
    ring = ring_of(copy)
    newest = max(commits_in(ring))
    data = bytearray(ring.read_bytes())
    data[newest % SLOTS * SLOT] ^= 1
    ring.write_bytes(data)
    make_sound(copy, STATE, NOW, used=lambda: True)
    assert codes(Damages(copy)) == []


async def test_a_cut_before_the_ring_is_first_written_is_no_loss(path):
    async with Database.open(path, STATE):
        pass
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT commits FROM proof").fetchone() == (1,)
    ring_of(path).unlink()
    make_sound(path, STATE, NOW, used=lambda: True)
    assert codes(Damages(path)) == []


async def test_a_ring_that_is_gone_is_told(path, clock):
    await fill(path, clock)
    ring_of(path).unlink()
    make_sound(path, STATE, NOW, used=lambda: True)
    assert codes(Damages(path)) == ["acknowledged_unknown"]
    await fill_more(path, clock)
    make_sound(path, STATE, NOW, used=lambda: True)
    assert codes(Damages(path)) == ["acknowledged_unknown"]


async def fill_more(path, clock):
    async with Database.open(path, STATE) as db:
        await SqliteSessions(db, clock).notice("chat:a", "more", "")


def test_the_ring_keeps_the_newest_and_leaves_out_what_has_no_room(tmp_path):
    ring = Ring(tmp_path / "ring")
    for number in range(1, SLOTS + 3):
        rows = [(session, 1, 10**9) for session in range(200 if number == SLOTS else 2)]
        ring.keep(Commit(number, rows, (number, number)))
    ring.close()
    found = commits_in(tmp_path / "ring")
    assert (min(found), max(found), len(found)) == (3, SLOTS + 2, SLOTS)
    assert 2 < len(found[SLOTS].rows) < 200
    assert (tmp_path / "ring").stat().st_size == SLOT * SLOTS


async def test_a_write_that_the_disk_refused_is_a_problem_until_one_succeeds(path, clock):
    def refuse(conn):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
        raise error

    await fill(path, clock)
    async with Database.open(path, STATE) as db:
        with pytest.raises(StorageError):
            await db.write(refuse)
        assert codes(db) == ["storage"]
        await SqliteSessions(db, clock).notice("chat:a", "stored", "")
        assert db.problems() == ()


async def test_damage_that_a_turn_meets_stays_a_problem_until_a_start_salvages_it(path, clock):
    await fill(path, clock)
    with closing(sqlite3.connect(path)) as conn:
        (root,) = conn.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'rows'").fetchone()
    async with Database.open(path, STATE) as db:
        data = bytearray(path.read_bytes())
        data[4096 * (root - 1) : 4096 * root] = b"\xff" * 4096
        path.write_bytes(data)
        await db.read(lambda conn: conn.execute("PRAGMA shrink_memory").fetchall())
        sessions = SqliteSessions(db, clock)
        with pytest.raises(StorageError) as caught:
            await sessions.rows("chat:a")
        assert "agentd restart" in caught.value.cure
        await sessions.create("chat:other")
        assert codes(db) == ["storage_corrupt"]
