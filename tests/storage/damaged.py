"""A state database that is damaged in one of many ways, what a start makes of it, and a judge of
that.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentd.core.alert import NewAlert
from agentd.core.erasure import Erasure
from agentd.core.errors import StateMissing, StorageError
from agentd.core.message import Text, ToolResult, ToolUse, encode_blocks
from agentd.core.transcript import DAMAGED, NewRow, Row, RowRole
from agentd.core.turn import Turn, TurnRequest
from agentd.storage.damages import Damages
from agentd.storage.masking import Masking
from agentd.storage.migrations import STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.proofs import key_of, ring_of
from agentd.storage.proving import RowCheck
from agentd.storage.rescue import make_sound
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock
from tests.storage.test_proofs import nobody

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
KEYS = ("main", "chat:a", "chat:b", "group:club")

RECOVERY_SECONDS = 60

Rows = Mapping[tuple[str, int], str]
Stored = tuple[int, int, str]  # session, number, blocks
_STORED = "SELECT session_id, seq, blocks FROM rows"


def recoverer() -> str:
    """A sqlite3 program whose `.recover` works, which not every system's does; "" for none."""
    program = os.environ.get("AGENTD_SQLITE3") or shutil.which("sqlite3") or ""
    if not program:
        return ""
    asked = ["CREATE TABLE t (x)", "INSERT INTO t VALUES ('found')", ".recover"]
    done = subprocess.run([program, ":memory:", *asked], capture_output=True)
    return program if b"'found'" in done.stdout else ""


SQLITE = recoverer()


@dataclass(frozen=True)
class Home:
    """The files of a daemon that was killed, and every row that was acknowledged by then."""

    folder: Path
    rows: Rows
    stored: frozenset[Stored]

    @property
    def database(self) -> Path:
        return self.folder / "state.db"


@dataclass
class Verdict:
    """What came of one kind of damage after the other."""

    rounds: int = 0
    silent: list[str] = field(default_factory=list)  # rows lost or changed without a word
    unsalvaged: list[str] = field(default_factory=list)  # rows that another reading finds
    failed: list[str] = field(default_factory=list)  # starts that ended otherwise than they should
    told: Counter[str] = field(default_factory=Counter)
    independent: int = 0  # rows that the other reading found

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds: silent {len(self.silent)}, not salvaged "
            f"{len(self.unsalvaged)} of {self.independent} that sqlite3 .recover reads, failed "
            f"{len(self.failed)}; {dict(self.told)}"
        )


async def a_home(root: Path, *, is_young: bool = False) -> Home:
    """Conversations as they are: long and short rows, calls and results, masked words, a message
    that waits, alerts; the newer half of it in the write-ahead log alone, all of it in a young one.
    """
    clock, chance = FakeClock(), random.Random(1)
    path = root / "live" / "state.db"
    folder = root / "killed"
    folder.mkdir(parents=True)
    path.parent.mkdir()
    async with Database.open(path, STATE) as db:
        sessions, outbox = SqliteSessions(db, clock), SqliteOutbox(db, clock)
        if is_young:
            await db.read(lambda c: c.execute("PRAGMA wal_autocheckpoint = 0").fetchall())
        for number in range(90):
            key = chance.choice(KEYS)
            await a_turn(sessions, key, number, chance)
            await outbox.put(NewAlert(f"alert {number}", "job", f"{number:064x}", ("main",)))
            await clock.advance(timedelta(minutes=5).total_seconds())
            if number == 40 and not is_young:
                await Masking(db, nobody).erase(Erasure(sentences=("secret 7",)))
                await db.read(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        await sessions.receive(TurnRequest("chat:a", "waits", "waits"))
        rows = await all_rows(sessions)
        stored = await db.read(lambda c: frozenset(map(tuple, c.execute(_STORED))))
        for part in (path, path.with_name("state.db-wal"), ring_of(path), key_of(path)):
            shutil.copy(part, folder / part.name)
    return Home(folder, rows, stored)


async def a_turn(sessions: SqliteSessions, key: str, number: int, chance: random.Random) -> None:
    size = chance.choice((3, 30, 300, 3000))
    text = f"message {number}, secret {number % 9} " + "word " * size
    receipt = await sessions.receive(TurnRequest(key, text, f"m{number}"))
    await sessions.begin(receipt.turn_id)
    if number % 3 == 0:
        call = ToolUse(f"c{number}", "memory_read", {"path": f"{number}.md"})
        await sessions.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, (call,), "offline"))
        result = ToolResult(f"c{number}", "line " * size)
        await sessions.append(receipt.turn_id, NewRow(RowRole.USER, (result,)))
    answer = NewRow(RowRole.ASSISTANT, (Text(f"answer {number}"),), "offline")
    await sessions.finish(receipt.turn_id, Turn(key, f"m{number}"), (answer,))


async def all_rows(sessions: SqliteSessions) -> dict[tuple[str, int], str]:
    return {
        (info.key, row.seq): spelled(row)
        for info in await sessions.sessions()
        for row in await sessions.rows(info.key)
        if row.tag != DAMAGED
    }


def spelled(row: Row) -> str:
    return f"{row.role} {row.at} {row.source} {encode_blocks(row.blocks)}"


def _noise(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at : at + 4096] = chance.randbytes(len(data[at : at + 4096]))


def _page(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data)) // 4096 * 4096
    data[at : at + 4096] = chance.randbytes(len(data[at : at + 4096]))


def _zeros(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data)) // 4096 * 4096
    data[at : at + 4096] = bytes(len(data[at : at + 4096]))


def _bit(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.randrange(256)


def _bits(data: bytearray, chance: random.Random) -> None:
    for _ in range(20):
        _bit(data, chance)


def _header(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(100)] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _emptied(data: bytearray, chance: random.Random) -> None:
    data.clear()


DAMAGES: Mapping[str, Callable[[bytearray, random.Random], None] | None] = {
    "a bit": _bit,
    "a byte": _byte,
    "20 bits": _bits,
    "4096 random bytes": _noise,
    "a page of noise": _page,
    "a page of zeros": _zeros,
    "the header": _header,
    "cut": _cut,
    "emptied": _emptied,
    "deleted": None,
}


def damage(folder: Path, chance: random.Random) -> str:
    """Damage the database, its log, or both; in words."""
    told = []
    for name in chance.choice((("state.db",), ("state.db-wal",), ("state.db", "state.db-wal"))):
        how = chance.choice(tuple(DAMAGES))
        path, change = folder / name, DAMAGES[how]
        if change is None:
            path.unlink()
        else:
            data = bytearray(path.read_bytes())
            change(data, chance)
            path.write_bytes(data)
        told.append(f"{name} {how}")
    return ", ".join(told)


def recovered(folder: Path) -> set[Stored]:
    """The rows of conversations that sqlite3's own `.recover` reads: session, number and blocks.
    Those that it finds on pages without a table are among them where they have the shape of our
    rows.
    """
    assert SQLITE
    copy = folder.with_name(f"{folder.name}-recover")
    shutil.copytree(folder, copy)
    told = subprocess.run(
        [SQLITE, str(copy / "state.db"), ".recover"], capture_output=True, timeout=RECOVERY_SECONDS
    )
    subprocess.run([SQLITE, str(copy / "read.db")], input=told.stdout, capture_output=True)
    found: set[Stored] = set()
    with closing(sqlite3.connect(copy / "read.db")) as conn:
        conn.text_factory = lambda data: data.decode("utf-8", "replace")
        tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_schema")}
        if "rows" in tables:
            found |= set(conn.execute(_STORED))
        for table in tables:
            if table.startswith("lost_and_found"):
                found |= _lost(conn, table)
    shutil.rmtree(copy)
    return found


def _lost(conn: sqlite3.Connection, table: str) -> set[Stored]:
    columns = [name for _, name, *_ in conn.execute(f"PRAGMA table_info({table})")]
    if "c12" not in columns:
        return set()
    query = f"SELECT c1, c2, c10 FROM {table} WHERE nfield = 13 AND id IS NOT NULL"
    return {(s, q, b) for s, q, b in conn.execute(query) if isinstance(b, str)}


async def campaign(home: Home, seeds: range, *, proofs: bool = True) -> Verdict:
    """Damage the home in one way after the other, start on it, and judge."""
    verdict = Verdict()
    for seed in seeds:
        folder = home.folder.with_name(f"round-{seed}")
        shutil.copytree(home.folder, folder)
        how = f"{seed}: {damage(folder, random.Random(seed))}"
        readable = recovered(folder) if proofs and SQLITE else set()
        try:
            await judge(home, folder, how, readable, verdict, proofs=proofs)
        finally:
            shutil.rmtree(folder)
        verdict.rounds += 1
    return verdict


async def judge(
    home: Home,
    folder: Path,
    how: str,
    readable: set[Stored],
    verdict: Verdict,
    *,
    proofs: bool,
) -> None:
    path, clock = folder / "state.db", FakeClock()
    try:
        if proofs:
            make_sound(path, STATE, NOW, used=lambda: True)
        async with Database.open(path, STATE, checks=proofs) as db:
            sessions = SqliteSessions(db, clock)
            await RowCheck(db, clock).look()
            await sessions.pending()
            for key in KEYS:
                await sessions.load(key)
            left = await all_rows(sessions)
            told = [p.code for p in (*Damages(path).problems(), *db.problems())]
            kept = await db.read(lambda c: set(map(tuple, c.execute(_STORED))))
    except StateMissing:
        verdict.told["state_missing"] += 1
        if "state.db deleted" not in how:
            verdict.failed.append(how)
        return
    except StorageError as error:
        verdict.told[f"refused: {error.code}"] += 1
        if proofs:
            verdict.failed.append(f"{how}: {error.message}")
        return
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        verdict.told["broke"] += 1
        if proofs:
            verdict.failed.append(f"{how}: {error!r}")
        return
    verdict.told.update(set(told) or {"nothing to tell"})
    salvaged = {f"chat:salvaged-{n}" for n in range(1, 99)}  # where a session's own row is lost
    for place, text in left.items():
        if place[0] not in salvaged and home.rows.get(place) != text:
            verdict.silent.append(f"{how}: {place} was changed")
    if not told and (lost := home.rows.keys() - left.keys()):
        verdict.silent.append(f"{how}: {sorted(lost)[:3]} are lost, {len(lost)} in all")
    verdict.independent += len(readable)
    # What spilled over to a page that is damaged is read as this or that: such rows count by their
    # place.
    places = {row[:2] for row in readable} - {row[:2] for row in kept}
    missing = places | {row[:2] for row in (readable & home.stored) - kept}
    verdict.unsalvaged += [f"{how}: {place}" for place in sorted(missing)]
