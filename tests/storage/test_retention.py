"""Retention erases what may go, all of it, and never anything else."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from agentd.core import failpoints
from agentd.core.failpoints import FailpointError
from agentd.core.message import Text, ToolResult, ToolUse
from agentd.core.transcript import NO_MEMORY, Coverage, History, NewRow, Row, RowRole
from agentd.core.turn import MAIN, Origin, SessionKey, StopReason, Turn, TurnRequest, Usage
from agentd.storage import retention
from agentd.storage.codec import stamp
from agentd.storage.migrations import STATE
from agentd.storage.retention import SqliteRetention
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock

KEEP = timedelta(days=30)
GROUP = SessionKey("group:birds")
CANARY = "zitronenfalter"


@dataclass
class House:
    """A state database with a clock."""

    db: Database
    clock: FakeClock

    def __post_init__(self) -> None:
        self.sessions = SqliteSessions(self.db, self.clock)
        self.retention = SqliteRetention(self.db)
        self.said = 0

    @property
    def before(self):
        return self.clock.now() - KEEP

    async def turn(self, session=MAIN, text="", *, tools=0, ends=True, **more) -> int:
        self.said += 1
        text = text or f"words {self.said}"
        receipt = await self.sessions.receive(TurnRequest(session, text, f"m{self.said}", **more))
        await self.sessions.begin(receipt.turn_id)
        for n in range(tools):
            call = ToolUse(f"c{self.said}.{n}", "memory_read", {})
            await self.sessions.append(receipt.turn_id, NewRow(RowRole.ASSISTANT, (call,)))
            result = ToolResult(call.id, "found")
            await self.sessions.append(receipt.turn_id, NewRow(RowRole.USER, (result,)))
        if ends:
            answer = f"answer to {text}"
            turn = Turn(session, f"m{self.said}", answer, StopReason.END_TURN, Usage())
            row = NewRow(RowRole.ASSISTANT, (Text(answer),))
            await self.sessions.finish(receipt.turn_id, turn, (row,))
        return receipt.turn_id

    async def rows(self, session=MAIN) -> tuple[Row, ...]:
        return await self.sessions.rows(session)

    async def cover(self, session=MAIN, *, ok=True, reason="stored") -> None:
        history = await self.sessions.load(session)
        last = _last(history)
        if last > history.covered_to:
            coverage = Coverage(history.covered_to + 1, last, ok, reason)
            await self.sessions.cover(session, coverage)

    async def cut(self, session=MAIN, at: int | None = None, summary="they talked") -> None:
        """Let the context begin at row `at`, or behind everything."""
        history = await self.sessions.load(session)
        keep = _last(history) + 1 if at is None else at
        await self.sessions.swap(session, history.generation, keep, summary)

    def later(self, days: float = 40) -> None:
        self.clock.jump(timedelta(days=days))

    async def expire(self) -> None:
        found = await self.retention.survey(self.before)
        await self.retention.remove(self.before, found.sessions)

    def bytes_of(self, word: str) -> int:
        files = self.db.path.parent.iterdir()
        return sum(file.read_bytes().count(word.encode()) for file in files)

    async def count(self, table: str) -> int:
        found = await self.db.read(
            lambda conn: conn.execute(f"SELECT count(*) FROM {table}").fetchone()
        )
        return int(found[0])


def _last(history: History) -> int:
    return history.rows[-1].seq if history.rows else 0


@pytest.fixture
async def house(state_db, clock):
    return House(state_db, clock)


async def test_what_was_cut_and_saved_goes_with_all_its_bytes_and_the_rest_keeps_its_numbers(house):
    for n in range(3):
        await house.turn(text=f"{CANARY} {n}", tools=2)
    await house.cover()
    await house.cut()
    house.later()
    await house.turn(text="fresh")
    assert house.bytes_of(CANARY)
    found = await house.retention.survey(house.before)
    assert (found.sessions, found.rows, found.kept) == ((MAIN,), 18, {})
    await house.retention.remove(house.before, found.sessions)
    assert house.bytes_of(CANARY) == 0
    rows = await house.rows()
    assert [(row.seq, row.text) for row in rows] == [
        (19, "they talked"),
        (20, "fresh"),
        (21, "answer to fresh"),
    ]
    assert (await house.sessions.sessions())[0].title == "fresh"
    assert await house.count("turns") == 1
    assert (await house.sessions.notice(MAIN, "told", "alert")).seq == 22
    assert (await house.retention.survey(house.before)).rows == 0


@pytest.mark.parametrize("reason", ["timeout", "disabled", "wrote_nothing"])
async def test_what_no_flush_has_saved_stays_and_is_counted_by_its_reason(house, reason):
    await house.turn(text="lost once, kept for ever")
    await house.cover(ok=False, reason=reason)
    await house.turn(text="never even offered")
    await house.cut()
    house.later()
    found = await house.retention.survey(house.before)
    assert (found.rows, found.kept) == (0, {reason: 2, "not_covered": 2})
    before = await house.rows()
    await house.retention.remove(house.before, [MAIN])
    assert await house.rows() == before


async def test_a_group_that_writes_no_memories_is_forgotten_too(house):
    await house.turn(GROUP)
    await house.cover(GROUP, ok=False, reason=NO_MEMORY)
    await house.cut(GROUP, summary="")
    house.later()
    await house.expire()
    assert await house.rows(GROUP) == ()
    assert (await house.sessions.load(GROUP)).rows == ()
    assert (await house.sessions.sessions())[0].title == ""
    await house.turn(GROUP, text="again")
    assert [row.seq for row in await house.rows(GROUP)] == [3, 4]


async def test_the_context_stays_whatever_its_age_with_the_turn_in_which_it_begins(house):
    await house.turn(tools=1)
    await house.turn(tools=1)
    await house.cover()
    await house.cut(at=7)  # the second turn's answer to its tool call
    context = await house.sessions.load(MAIN)
    house.later(400)
    await house.expire()
    assert [row.seq for row in await house.rows()] == [5, 6, 7, 8, 9]
    assert await house.sessions.load(MAIN) == context


async def test_a_turn_that_began_in_time_stays_whole(house):
    await house.turn(ends=False)
    house.later(10)
    receipt = await house.sessions.receive(TurnRequest(MAIN, "words 1", "m1"))
    turn = Turn(MAIN, "m1", "late", StopReason.END_TURN, Usage())
    await house.sessions.finish(
        receipt.turn_id, turn, (NewRow(RowRole.ASSISTANT, (Text("late"),)),)
    )
    await house.cover()
    await house.cut(summary="")
    house.later(25)
    await house.expire()
    assert len(await house.rows()) == 2, "its question is old enough, its answer is not"
    house.later(6)
    await house.expire()
    assert await house.rows() == ()


async def test_a_turn_that_has_not_ended_stays_even_if_it_was_cut(house):
    await house.turn(tools=1, ends=False)
    await house.cover()
    await house.cut(summary="")
    house.later()
    await house.expire()
    assert len(await house.rows()) == 3
    assert len(await house.sessions.pending()) == 1


async def test_a_message_id_is_known_as_long_as_its_rows(house):
    await house.turn()
    await house.cover()
    await house.cut()
    house.later(29)
    await house.expire()
    again = await house.sessions.receive(TurnRequest(MAIN, "words 1", "m1"))
    assert again.ended is not None
    house.later(2)
    await house.expire()
    anew = await house.sessions.receive(TurnRequest(MAIN, "words 1", "m1"))
    assert anew.turn_id > again.turn_id
    assert anew.ended is None


async def test_records_of_silent_turns_go_unless_a_flush_may_need_them(house):
    await house.turn()
    await house.turn(text="beat", origin=Origin.HEARTBEAT)
    await house.turn(text="flush", origin=Origin.FLUSH)
    running = await house.turn(text="running", origin=Origin.JOB, ends=False)
    house.later()
    assert (await house.retention.survey(house.before)).silent == 1, "nothing followed the flush"
    await house.cover()
    found = await house.retention.survey(house.before)
    assert (found.silent, found.sessions) == (2, ())
    await house.retention.remove(house.before, ())
    assert await house.count("turns") == 2
    assert [turn.turn_id for turn in await house.sessions.pending()] == [running]
    assert len(await house.rows()) == 2, "nothing of it was cut"


async def test_a_fork_keeps_what_its_source_has_lost(house):
    await house.turn(text=CANARY)
    await house.cover()
    await house.sessions.fork(MAIN, SessionKey("chat:copy"))
    await house.cut()
    house.later()
    await house.expire()
    assert [row.text for row in await house.rows()] == ["they talked"]
    assert CANARY in (await house.rows(SessionKey("chat:copy")))[0].text


async def test_more_rows_than_a_page_holds_go_in_several_transactions(house):
    count = retention.PAGE // 2 + 3
    for _ in range(count):
        await house.turn()
    await house.cover()
    await house.cut(summary="")
    house.later()
    commits = house.db.commits
    await house.expire()
    assert await house.rows() == ()
    assert await house.count("turns") == 0
    assert house.db.commits - commits >= 2


async def test_what_a_crash_cut_short_is_erased_by_the_next_run(tmp_path, clock):
    path = tmp_path / "state" / "state.db"
    async with Database.open(path, STATE) as db:
        house = House(db, clock)
        for _ in range(3):
            await house.turn(text=CANARY)
        await house.cover()
        await house.cut(summary="")
        house.later()
        failpoints.arm("store.deleted:1:raise")
        with pytest.raises(FailpointError):
            await house.expire()
        assert house.bytes_of(CANARY), "the test could not fail"
        assert path.with_name("state.db-unclean").exists()
    async with Database.open(path, STATE) as db:
        house = House(db, clock)
        assert house.bytes_of(CANARY) == 0
        assert await house.rows() == ()
        await house.expire()
        assert not path.with_name("state.db-unclean").exists()


# What follows compares with a judge of its own, over conversations that nobody would think of.


@dataclass(frozen=True)
class Known:
    """A session before anything is erased."""

    rows: Sequence[Row]
    coverages: Sequence[Coverage]
    context_from: int
    open_turns: frozenset[int]
    before: str

    def may_go(self, row: Row) -> bool:
        if stamp(row.at) >= self.before or row.seq >= self.context_from:
            return False
        if row.turn_id in self.open_turns:
            return False
        if row.role in (RowRole.NOTICE, RowRole.SUMMARY):
            return True
        return any(
            c.first <= row.seq <= c.last and (c.ok or c.reason == NO_MEMORY) for c in self.coverages
        )

    def must_go(self) -> set[int]:
        """Rows of turns all of whose rows may go."""
        turns = {row.turn_id for row in self.rows} - {None}
        whole = {t for t in turns if all(self.may_go(r) for r in self.rows if r.turn_id == t)}
        return {row.seq for row in self.rows if row.turn_id in whole}

    def violations(self, left: Sequence[Row]) -> list[str]:
        kept = {row.seq: row for row in left}
        gone = [row for row in self.rows if row.seq not in kept]
        found = [f"row {row.seq} must stay" for row in gone if not self.may_go(row)]
        found += [f"row {seq} must go" for seq in sorted(self.must_go() & kept.keys())]
        found += [f"row {r.seq} changed" for r in self.rows if kept.get(r.seq, r) != r]
        half = {row.turn_id for row in gone} & {row.turn_id for row in left} - {None}
        return found + [f"turn {turn} is torn" for turn in half]


async def known(house: House, session: SessionKey) -> Known:
    return Known(
        await house.rows(session),
        await house.sessions.coverages(session),
        (await house.sessions.load(session)).context_from,
        frozenset(turn.turn_id for turn in await house.sessions.pending()),
        stamp(house.before),
    )


def steps_of(chance: random.Random, count: int) -> list[tuple[str, Any]]:
    """Something that happens to a session, many times."""
    values: dict[str, Callable[[], Any]] = {
        "turn": lambda: chance.randrange(4),
        "cover": lambda: chance.choice(["stored", "no_reply", "timeout", NO_MEMORY]),
        "cut": lambda: chance.choice([None, *range(1, 9)]),
        "notice": lambda: None,
        "later": lambda: chance.randrange(1, 25),
    }
    names = chance.choices(list(values), weights=[6, 4, 4, 1, 3], k=count)
    return [(name, values[name]()) for name in names]


async def live(house: House, steps: Sequence[tuple[str, Any]], session: SessionKey) -> None:
    await house.sessions.create(session)
    for step, value in steps:
        if step == "turn":
            await house.turn(session, tools=value)
        elif step == "cover":
            await house.cover(session, ok=value in ("stored", "no_reply"), reason=value)
        elif step == "cut":
            history = await house.sessions.load(session)
            end = _last(history) + 1
            at = end if value is None else min(history.context_from + value, end)
            if at > history.context_from:
                await house.cut(session, at)
        elif step == "notice":
            await house.sessions.notice(session, "told", "alert")
        else:
            house.later(value)


@pytest.mark.parametrize("seed", range(25))
async def test_nothing_in_a_context_and_nothing_unsaved_is_ever_erased(house, seed):
    chance = random.Random(seed)
    await live(house, steps_of(chance, 40), MAIN)
    await live(house, steps_of(chance, 15), GROUP)
    if chance.random() < 0.5:
        await house.turn(ends=False)
    told = {key: await known(house, key) for key in (MAIN, GROUP)}
    contexts = [await house.sessions.load(key) for key in told]
    found = await house.retention.survey(house.before)
    await house.retention.remove(house.before, found.sessions)
    gone = 0
    for key, session in told.items():
        left = await house.rows(key)
        assert session.violations(left) == []
        gone += len(session.rows) - len(left)
    assert gone == found.rows
    assert [await house.sessions.load(key) for key in told] == contexts
    again = await house.retention.survey(house.before)
    assert (again.rows, again.silent, again.kept) == (0, 0, found.kept)


@pytest.mark.parametrize(
    ("sabotage", "told"),
    [
        ("DELETE FROM rows WHERE at < ?", ["row 4 must stay", "row 5 must stay"]),
        ("DELETE FROM rows WHERE at < ? AND seq = 1", ["row 2 must go", "turn 1 is torn"]),
        ("DELETE FROM rows WHERE at < ? AND seq > 99", ["row 1 must go", "row 2 must go"]),
        ("UPDATE rows SET seq = 100 + seq WHERE at < ?", ["row 4 must stay", "row 5 must stay"]),
    ],
)
async def test_the_judge_of_these_tests_finds_what_is_wrong(house, sabotage, told):
    await house.turn()
    await house.cover()
    await house.cut()
    await house.turn()
    await house.cover(ok=False, reason="timeout")
    await house.cut()
    house.later()
    session = await known(house, MAIN)
    await house.db.write(lambda conn: _spoil(conn, sabotage, stamp(house.before)))
    found = session.violations(await house.rows())
    assert set(told) <= set(found)


def _spoil(conn: sqlite3.Connection, statement: str, before: str) -> None:
    conn.execute(statement, (before,))
