"""Databases of every earlier version, as dumps, opened by this one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.core.fact import FactStatus
from agentd.storage.beats import SqliteBeats
from agentd.storage.damages import Damages
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.job_store import SqliteJobStore
from agentd.storage.migrations import STATE, check_shape
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.proving import RowCheck
from agentd.storage.rescue import make_sound
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database

SCHEMAS = Path(__file__).parent / "schemas"
VERSIONS = sorted(int(path.stem.removeprefix("state_")) for path in SCHEMAS.glob("*.sql"))
NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
FACTS_SINCE, IMAGES_SINCE = 4, 3


def made(path: Path, version: int) -> None:
    """The database that the dump of a version tells."""
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript((SCHEMAS / f"state_{version:03}.sql").read_text(encoding="utf-8"))
        conn.execute(f"PRAGMA application_id = {STATE.application_id}")
        conn.execute(f"PRAGMA user_version = {version}")
        conn.commit()


def test_every_version_before_this_one_has_its_dump():
    assert set(range(1, len(STATE.steps))) <= set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_database_of_a_former_version_is_opened_with_all_it_holds(tmp_path, clock, version):
    path = tmp_path / "state.db"
    made(path, version)
    make_sound(path, STATE, NOW, used=lambda: True)
    assert Damages(path).all() == ()
    async with Database.open(path, STATE) as db:
        await db.read(lambda conn: check_shape(conn, STATE))
        sessions = SqliteSessions(db, clock)
        rows = await sessions.rows("main")
        assert [row.text for row in rows] == ["Buy tea", "Noted.", "An alert", "They want tea."]
        assert [row.source.tainted for row in rows] == [False] * 4
        assert (await sessions.rows("group:club"))[0].source.tainted
        (waiting,) = await sessions.pending()
        assert waiting.request.text == "And now?"
        assert [info.key for info in await sessions.sessions()] == ["group:club", "main"]
        assert [c.last for c in await sessions.coverages("main")] == [2]
        assert await RowCheck(db, clock).look() == 0
        assert db.problems() == ()
        (alert,) = await SqliteOutbox(db, clock).alerts(9)
        assert alert.text == "water"
        (job,) = await SqliteJobStore(db, clock).jobs()
        assert job.what.text == "water the plants"
        assert len(await SqliteBeats(db, clock).beats(9)) == 1
        facts = await SqliteFacts(db).facts()
        known = [(fact.id, fact.status) for fact in facts]
        assert known == ([("k3f9", FactStatus.ENDED)] if version >= FACTS_SINCE else [])
        if version >= IMAGES_SINCE:
            assert await sessions.images() == {"a" * 64}
        ok = await db.read(lambda conn: conn.execute("PRAGMA integrity_check").fetchone()[0])
        assert ok == "ok"
