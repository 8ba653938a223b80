"""One word of one row is damaged, in tables that no proofs guard: it costs that row and is told."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.automation.alerts.dispatch import Dispatcher
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.jobs import JobLine
from agentd.automation.jobs.runs import Reminders
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.alert import Alert, DeliveryState, NewAlert, Recipients
from agentd.core.beat import Reason
from agentd.core.errors import StorageError
from agentd.core.fact import Category, Fact, FactSource, FactWrite
from agentd.core.job import At, Ending, JobKind, JobOutcome, JobReason, JobStep, NewJob
from agentd.core.turn import MAIN, Origin, Usage
from agentd.storage.beats import SqliteBeats
from agentd.storage.fact_store import SqliteFacts, bury_again
from agentd.storage.job_store import SqliteJobStore
from agentd.storage.ledger import SqliteLedger
from agentd.storage.outbox import SqliteOutbox

HOUR = timedelta(hours=1)


async def damage(db, sql):
    def change(conn):
        assert conn.execute(sql).rowcount == 1

    await db.write(change)


def told(store):
    return [problem.text.rpartition(": ")[2] for problem in store.problems()]


@pytest.fixture
async def jobs(state_db, clock):
    store = SqliteJobStore(state_db, clock)
    for text in ("cat", "pills", "bread"):
        await store.add(NewJob(text, At(clock.now() + HOUR)), clock.now() + HOUR, most=9)
    return store


DAMAGES = (
    "misfire = 'oncd'",
    "kind = 'remine'",
    "session = 'isolatee'",
    "schedule = '{\"at\": '",
    'schedule = \'{"bt": "2026-11-21"}\'',
    "schedule = '[]'",
    'schedule = \'{"every": "5x", "anchor": "2026-11-21T00:00:00+00:00"}\'',
)


@pytest.mark.parametrize("damaged", DAMAGES)
async def test_the_other_reminders_are_told(state_db, jobs, clock, damaged):
    outbox = SqliteOutbox(state_db, clock)
    reminders = Reminders(jobs, clock, lambda: None, Recipients(("main",)))
    line = JobLine(JobKind.REMIND, JobsSettings(), jobs, SchedulerTriggers(), clock, reminders)
    assert jobs.problems() == ()
    await damage(state_db, f"UPDATE jobs SET {damaged} WHERE id = 2")
    clock.jump(2 * HOUR)
    await line.tick()
    assert [alert.text for alert in await outbox.alerts(9)] == ["bread", "cat"]
    assert told(jobs) == ["job 2"]


async def test_a_damaged_job_is_named_and_can_be_removed(state_db, jobs):
    await damage(state_db, "UPDATE jobs SET misfire = 'oncd' WHERE id = 2")
    with pytest.raises(StorageError, match="job 2 cannot be read"):
        await jobs.get(2)
    removed = await jobs.remove(2)
    assert (removed.id, removed.what.text, removed.next_due) == (2, "pills", None)
    assert jobs.problems() == ()


async def test_a_damaged_run_leaves_the_others_in_the_history(state_db, jobs):
    done = Ending(JobOutcome.QUIET, JobReason.ACK)
    for number in (1, 2):
        await jobs.record(JobStep(number, None, None), done)
    await damage(state_db, "UPDATE job_runs SET outcome = 'quies' WHERE id = 1")
    assert [run.job_id for run in await jobs.runs(9)] == [2]
    assert told(jobs) == ["run 1"]


class Sink:
    name = "phone"

    def __init__(self) -> None:
        self.got: list[Alert] = []
        self.full = asyncio.Event()

    async def send(self, alert: Alert) -> None:
        self.got.append(alert)
        if len(self.got) == 3:
            self.full.set()


async def test_an_alert_of_unknown_weight_is_delivered_as_urgent(state_db, clock):
    outbox, sink = SqliteOutbox(state_db, clock), Sink()
    for number in range(3):
        await outbox.put(NewAlert(f"alert {number}", "job", f"d{number}", ("phone",)))
    await damage(state_db, "UPDATE alerts SET severity = 'infn' WHERE id = 1")
    task = asyncio.create_task(Dispatcher(outbox, [sink], clock).run())
    await asyncio.wait({task, asyncio.create_task(sink.full.wait())}, return_when="FIRST_COMPLETED")
    task.cancel()
    await asyncio.wait({task})
    assert [(one.text, str(one.severity)) for one in sink.got] == [
        ("alert 0", "urgent"),
        ("alert 1", "info"),
        ("alert 2", "info"),
    ]


async def test_a_delivery_of_unknown_state_is_listed_as_failed(state_db, clock):
    outbox = SqliteOutbox(state_db, clock)
    for number in range(2):
        await outbox.put(NewAlert(f"alert {number}", "job", f"d{number}", ("phone",)))
    await damage(state_db, "UPDATE deliveries SET state = 'pendinh' WHERE alert_id = 1")
    new, old = await outbox.alerts(9)
    assert new.handovers[0].state is DeliveryState.PENDING
    assert old.handovers[0].state is DeliveryState.FAILED
    assert "damaged" in old.handovers[0].error


def a_fact(number, clock, text=""):
    text = text or f"fact {number}"
    now = clock.now()
    return Fact(f"id{number}", text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, now, now)


@pytest.mark.parametrize("column", ["category", "source", "status"])
async def test_the_other_facts_are_known(state_db, clock, column):
    facts = SqliteFacts(state_db)
    await facts.write(FactWrite(tuple(a_fact(number, clock) for number in range(3))))
    assert len(await facts.facts()) == 3
    await damage(state_db, f"UPDATE facts SET {column} = 'persoxal' WHERE id = 'id1'")
    for store in (facts, SqliteFacts(state_db)):
        assert [fact.id for fact in await store.facts()] == ["id0", "id2"]
        assert told(store) == ["fact id1"]
    await facts.write(FactWrite((a_fact(1, clock),)))
    assert len(await facts.facts()) == 3
    assert facts.problems() == ()


async def test_what_is_damaged_is_forgotten_after_a_restore_no_less(state_db, clock):
    facts = SqliteFacts(state_db)
    await facts.write(FactWrite((a_fact(1, clock, "The user is ill."),)))
    await damage(state_db, "UPDATE facts SET category = 'persoxal' WHERE id = 'id1'")
    count = bury_again(state_db.path, frozenset({b"The user is ill."}), str.encode, clock.now())
    rows = await state_db.read(lambda conn: conn.execute("SELECT text FROM facts").fetchall())
    assert (count, [row["text"] for row in rows]) == (1, [""])


async def test_a_damaged_charge_counts_but_is_not_listed(state_db, clock):
    ledger = SqliteLedger(state_db, clock)
    for _ in range(2):
        await ledger.charge(MAIN, Origin.USER, "m", Usage(1, 1), 1.0)
    await damage(state_db, "UPDATE charges SET origin = 'usfr' WHERE id = 1")
    assert len(await ledger.entries()) == 1
    assert await ledger.breakdown(clock.now()) == ((MAIN, Origin.USER, 2, 1.0),)
    assert await ledger.spending(clock.now()) == (4, 2.0)
    assert told(ledger) == ["charge 1"]


async def test_a_damaged_beat_leaves_the_others_in_the_list(state_db, clock):
    beats = SqliteBeats(state_db, clock)
    for _ in range(2):
        await beats.skip_beat(None, None, Reason.BUDGET)
    await damage(state_db, "UPDATE beats SET outcome = 'skippee' WHERE id = 1")
    assert len(await beats.beats(9)) == 1
    assert told(beats) == ["beat 1"]
