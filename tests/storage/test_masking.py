"""Forgotten words are masked in all of the state database."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest

from agentd.core.alert import NewAlert, alert_digest
from agentd.core.erasure import MASK, Erasure, PlacedWords, UntracedFact
from agentd.core.errors import Busy
from agentd.core.message import OpaqueBlock, Text, ToolResult, ToolUse
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, Origin, SessionKey, StopReason, Turn, TurnRequest
from agentd.memory.facts.candidates import Survey
from agentd.storage.masked_columns import COLUMNS
from agentd.storage.masking import PAGE, Masking
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.session_store import SqliteSessions
from agentd.testing import FakeClock

WORD = "Quastelbury"
WORDS = Erasure(spans=(WORD,))
CHAT = SessionKey("chat:one")
# Columns of text that are not masked, and why.
WORDLESS = {
    "proof.key_id": "a hash of a key",
    "rows.digest": "a keyed hash, made anew of what is left",
    "sessions.key": "an address",
    "deletions.session": "an address",
    "sessions.cwd": "a folder",
    "sessions.created_at": "a time",
    "sessions.updated_at": "a time",
    "sessions.mode": "a choice",
    "sessions.model": "a choice",
    "sessions.effort": "a choice",
    "sessions.summary_retry_at": "a time",
    "turns.message_id": "an id",
    "turns.origin": "a kind",
    "turns.context": "a kind",
    "turns.model": "a name of a model",
    "turns.tools": "names of tools",
    "turns.client": "a name of a client",
    "turns.state": "a kind",
    "turns.received_at": "a time",
    "turns.ended_at": "a time",
    "turns.images": "digests",
    "turns.quoted": "places in the text",
    "services.name": "a digest",
    "watches.entry": "a digest",
    "watches.looked_at": "a time",
    "watches.told_at": "a time",
    "watches.failing_since": "a time",
    "services.at": "a time",
    "rows.role": "a kind",
    "rows.at": "a time",
    "rows.provider": "a name of a provider",
    "rows.usage": "figures",
    "rows.tag": "a kind",
    "rows.source": "a kind",
    "silent_rows.role": "a kind",
    "silent_rows.at": "a time",
    "silent_rows.provider": "a name of a provider",
    "silent_rows.usage": "figures",
    "silent_rows.tag": "a kind",
    "silent_rows.source": "a kind",
    "coverages.at": "a time",
    "calls.call_id": "an id",
    "calls.intent": "of an open turn: erased when it ends",
    "calls.data": "of an open turn: erased when it ends",
    "charges.at": "a time",
    "charges.session": "an address",
    "charges.origin": "a kind",
    "charges.model": "a name of a model",
    "charges.usage": "figures",
    "heartbeat.next_due": "a time",
    "heartbeat.paused_until": "a time",
    "heartbeat.paused_at": "a time",
    "beats.at": "a time",
    "beats.due": "a time",
    "beats.outcome": "a kind",
    "beats.file_hash": "a digest",
    "beats.entries": "digests",
    "items.hash": "a digest",
    "items.first_seen": "a time",
    "items.last_done": "a time",
    "jobs.schedule": "times",
    "jobs.kind": "a kind",
    "jobs.session": "an address",
    "jobs.misfire": "a kind",
    "jobs.model": "a name of a model",
    "jobs.created_by": "a kind",
    "jobs.created_at": "a time",
    "jobs.call_key": "an id",
    "jobs.next_due": "a time",
    "job_runs.at": "a time",
    "job_runs.due": "a time",
    "job_runs.until": "a time",
    "job_runs.outcome": "a kind",
    "alerts.at": "a time",
    "alerts.origin": "a kind",
    "alerts.recipient": "an address",
    "alerts.digest": "a digest, made anew with the text",
    "alerts.severity": "a kind",
    "deliveries.sink": "a name of a sink",
    "deliveries.state": "a kind",
    "deliveries.due_at": "a time",
    "deliveries.tried_at": "a time",
    "deliveries.error": "words of ours about a sink, never of an alert",
    "images.sha256": "a digest",
    "facts.id": "an id",
    "facts.text": "blanked by its own store",
    "facts.category": "a kind",
    "facts.source": "a kind",
    "facts.valid_from": "a time",
    "facts.noted_at": "a time",
    "facts.status": "a kind",
    "facts.valid_to": "a time",
    "facts.superseded_by": "an id",
    "facts.session": "an address",
    "facts.triple": "blanked by its own store",
    "facts.replaces": "ids",
    "fact_marks.session": "an address",
    "fact_evidence.fact_id": "an id",
    "fact_evidence.at": "a time",
    "fact_evidence.session": "an address",
    "fact_changes.at": "a time",
    "fact_changes.session": "an address",
    "fact_changes.op": "a kind",
    "fact_changes.new": "an id",
    "fact_changes.before": "ids and times",
    "fact_tombstones.digest": "a keyed digest",
    "fact_tombstones.at": "a time",
    "fact_vectors.fact_id": "an id",
    "fact_vectors.model": "a name of a model",
    "fact_vectors.vector": "deleted by its own store",
    "fact_parked.fact_id": "an id",
    "fact_answers.fact_id": "an id",
    "fact_answers.at": "a time",
    "fact_erasures.needles": "deleted when all is erased",
    "graph_records.episode": "a digest",
    "graph_records.teller": "a name of another agent",
    "graph_records.at": "a time",
    "graph_records.said": "what others said: the graph's own eraser",
    "graph_records.receipt": "a digest",
    "graph_withdrawn.name": "an id of others",
    "graph_shares.space": "a name of a space",
    "graph_shares.episode": "a digest",
    "graph_shares.fact": "an id",
    "graph_shares.salt": "random",
    "graph_programs.name": "a name of a program",
    "graph_programs.state": "what programs keep: the graph's own eraser",
    "graph_programs.at": "a time",
    "graph_earlier.at": "a time",
}


def left(folder):
    """In how many files the word stands, in any case."""
    return sum(WORD.lower().encode() in file.read_bytes().lower() for file in folder.iterdir())


class Index:
    """What was taken out of search, and whether that was so while rows were changed."""

    def __init__(self):
        self.gone = []

    @asynccontextmanager
    async def without(self, sessions):
        self.gone.append(list(sessions))
        yield


@pytest.fixture
def index():
    return Index()


@pytest.fixture
def masking(state_db, index):
    return Masking(state_db, index.without)


@pytest.fixture
def sessions(state_db, clock):
    return SqliteSessions(state_db, clock)


def ended(receipt, text=""):
    return Turn(receipt.session, receipt.message_id, text, stop_reason=StopReason.END_TURN)


async def talk(sessions, text, *rows, session=MAIN, answer="fine"):
    receipt = await sessions.receive(TurnRequest(session, text, f"id {text[:9]}"))
    await sessions.begin(receipt.turn_id)
    for row in rows:
        await sessions.append(receipt.turn_id, row)
    last = NewRow(RowRole.ASSISTANT, (Text(answer),))
    await sessions.finish(receipt.turn_id, ended(receipt, answer), [last])


def columns(conn):
    """Every column of text or bytes, as TABLE.COLUMN."""
    tables = conn.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return {
        f"{table['name']}.{column['name']}"
        for table in tables.fetchall()
        for column in conn.execute(f"PRAGMA table_info({table['name']})")
        if column["type"] in ("TEXT", "BLOB", "ANY", "")
    }


async def test_every_column_of_text_is_masked_or_exempt_for_a_reason(state_db):
    there = await state_db.read(columns)
    assert len(there) > 60
    masked = {f"{table}.{column}" for table, names in COLUMNS.items() for column in names}
    assert there - masked - WORDLESS.keys() == set()
    assert not masked & WORDLESS.keys()
    assert masked <= there


async def test_each_masked_column_loses_the_word_down_to_the_bytes(state_db, masking):
    sentence = f"Yes. {WORD.upper()} is it. No."

    def plant(conn):
        conn.execute("PRAGMA foreign_keys = OFF")
        values = {
            "blocks": json.dumps([{"type": "text", "text": sentence}]),
            "output": json.dumps([sentence, False, False]),
            "calls": json.dumps([["list", {"about": "it"}, sentence, "digest", True]]),
            "outcome": json.dumps(
                {"text": sentence, "tool_calls": [sentence], "failure": ["a", sentence, ""]}
            ),
        }
        for table, names in COLUMNS.items():
            needed = {
                row["name"]: "x" if row["type"] == "TEXT" else 1
                for row in conn.execute(f"PRAGMA table_info({table})")
                if row["notnull"] and row["dflt_value"] is None
            }
            row = {**needed, **{name: values.get(name, sentence) for name in names}}
            if table in ("turns", "rows"):
                row |= (
                    {"role": "user", "at": "2026-11-22"} if table == "rows" else {"state": "done"}
                )
            marks = ", ".join("?" * len(row))
            conn.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
            )

    await state_db.write(plant)
    folder = state_db.path.parent
    assert left(folder)
    assert await masking.erase(WORDS) == len(COLUMNS)
    assert left(folder) == 0

    def texts(conn):
        return [
            conn.execute(f"SELECT {name} FROM {table}").fetchone()[0]
            for table, names in COLUMNS.items()
            for name in names
            if name != "title"  # it is cut out of the first row
        ]

    for text in await state_db.read(texts):
        assert f"Yes. {MASK} is it. No." in text
    assert await masking.erase(WORDS) == 0


async def test_one_column_that_is_left_out_is_noticed(state_db, masking, clock):
    """The search for bytes can fail."""
    await SqliteOutbox(state_db, clock).put(NewAlert(f"{WORD}!", "heartbeat", "main", ("main",)))
    await masking.erase(Erasure(spans=("something else",)))
    assert left(state_db.path.parent)


async def test_rows_keep_their_numbers_and_tool_calls_and_lose_what_is_signed(
    state_db, masking, sessions, index
):
    use = ToolUse("t1", "memory_search", {"query": WORD, "limit": 5})
    thought = OpaqueBlock("anthropic", {"type": "thinking", "thinking": "hm", "signature": "abc"})
    await talk(
        sessions,
        f"My cat is {WORD}. Feed it?",
        NewRow(RowRole.ASSISTANT, (thought, Text("I look."), use)),
        NewRow(RowRole.USER, (ToolResult("t1", f"found: {WORD}\nand more"),)),
        NewRow(RowRole.ASSISTANT, (thought, Text("Nothing of it."))),
    )
    await talk(sessions, "hello", session=CHAT)
    before = await sessions.rows(MAIN, 1, 9)
    assert await masking.erase(WORDS) == 3
    after = await sessions.rows(MAIN, 1, 9)
    assert [(r.seq, r.at, r.role, r.turn_id) for r in after] == [
        (r.seq, r.at, r.role, r.turn_id) for r in before
    ]
    assert after[0].blocks == (Text(f"My cat is {MASK}. Feed it?"),)
    masked = ToolUse("t1", "memory_search", {"query": MASK, "limit": 5})
    assert after[1].blocks == (Text("I look."), masked)
    assert after[2].blocks == (ToolResult("t1", f"found: {MASK}\nand more"),)
    assert after[3].blocks == (thought, Text("Nothing of it."))
    assert index.gone == [[MAIN]]
    assert [i.title for i in await sessions.sessions() if i.key == MAIN] == [""]
    await talk(sessions, "And what does a dog eat?")
    assert [i.title for i in await sessions.sessions() if i.key == MAIN] == [
        "And what does a dog eat?"
    ]


async def test_a_title_is_that_of_the_oldest_message_of_which_nothing_was_forgotten(
    masking, sessions
):
    for text in (f"Remember that my cat is {WORD}.", "What does it eat?", "And drink?"):
        await talk(sessions, text)
    await masking.erase(WORDS)
    assert [i.title for i in await sessions.sessions()] == ["What does it eat?"]


async def test_a_title_that_cuts_the_word_in_two_is_taken_anew(state_db, masking, sessions):
    await talk(sessions, "x" * 72 + f" {WORD}")
    title = (await sessions.sessions())[0].title
    assert WORD not in title
    assert "Quast" in title
    await masking.erase(WORDS)
    assert "Quast" not in (await sessions.sessions())[0].title


async def test_a_thought_that_says_it_goes_and_a_row_is_never_empty(state_db, masking, sessions):
    thought = OpaqueBlock("anthropic", {"type": "thinking", "thinking": WORD, "signature": "abc"})
    await talk(sessions, "hello", NewRow(RowRole.ASSISTANT, (thought,)))
    await masking.erase(WORDS)
    assert (await sessions.rows(MAIN, 2, 1))[0].blocks == (Text(MASK),)


async def test_many_rows_are_masked_page_by_page(state_db, masking, sessions):
    for n in range(PAGE // 2 + 20):
        await talk(sessions, f"{n:9} {WORD if n % 50 == 7 else 'other'}")
    assert await masking.erase(WORDS) == len(range(7, PAGE // 2 + 20, 50))
    assert left(state_db.path.parent) == 0


class Counting:
    """A database, and how often it was read."""

    def __init__(self, db):
        self.db, self.reads = db, 0

    def __getattr__(self, name):
        return getattr(self.db, name)

    async def read(self, fn):
        self.reads += 1
        return await self.db.read(fn)


async def looked_through(masking):
    """As forgetting does before it erases."""
    async for _ in masking.texts(Survey([UntracedFact("k3f9", f"The cat is {WORD}.", WORD)])):
        pass


async def test_rows_that_were_looked_through_are_not_read_again(state_db, index, sessions):
    for n in range(5 * PAGE // 2):
        await talk(sessions, f"{n:9} other")
    db = Counting(state_db)
    masking = Masking(db, index.without)
    assert await masking.erase(WORDS) == 0
    all_of_it, db.reads = db.reads, 0
    await looked_through(masking)
    looking, db.reads = db.reads, 0
    assert await masking.erase(WORDS) == 0
    assert all_of_it - db.reads >= 4, "pages of rows; that none was exchanged is one question"
    assert looking >= 5
    await talk(sessions, f"the new one: {WORD}")
    await looked_through(masking)
    await talk(sessions, f"a newer one: {WORD}")
    assert await masking.erase(WORDS) == 2
    assert left(state_db.path.parent) == 0


@pytest.mark.parametrize("spans", [("other words",), (WORD, "other words")])
async def test_words_that_were_not_looked_for_are_found_all_the_same(masking, sessions, spans):
    await talk(sessions, "other words")
    await looked_through(masking)
    assert await masking.erase(Erasure(spans=spans)) == 1


async def test_a_row_with_the_number_of_one_that_was_deleted_is_looked_at(masking, sessions):
    await talk(sessions, "hello")
    await talk(sessions, "hello", session=CHAT)
    await talk(sessions, "hello again", session=CHAT)
    await looked_through(masking)
    await sessions.delete(CHAT)
    await talk(sessions, f"{WORD} it is", session=CHAT)
    assert await masking.erase(WORDS) == 1


async def test_a_mark_among_rows_that_were_looked_through_is_seen(masking, sessions):
    await talk(sessions, "hello there")
    await looked_through(masking)
    mark = PlacedWords("sessions/main.jsonl:1", "there")
    assert await masking.erase(Erasure(spans=(WORD,), marks=(mark,))) == 1


async def test_nothing_is_written_where_nothing_says_it(state_db, masking, sessions):
    await talk(sessions, "hello")
    before = state_db.commits
    assert await masking.erase(WORDS) == 0
    assert state_db.commits == before


async def test_a_turn_that_goes_on_is_waited_for(state_db, masking, sessions):
    receipt = await sessions.receive(TurnRequest(MAIN, f"forget {WORD}", "m1"))
    await sessions.begin(receipt.turn_id)
    with pytest.raises(Busy):
        await masking.erase(WORDS)
    assert left(state_db.path.parent) == 0
    later = await sessions.receive(TurnRequest(CHAT, "hello", "m2"))
    answer = NewRow(RowRole.ASSISTANT, (Text(f"{WORD} is forgotten."),))
    await sessions.finish(receipt.turn_id, ended(receipt, f"{WORD} is forgotten."), [answer])
    await sessions.begin(later.turn_id)  # it began when nothing was left to be read
    assert left(state_db.path.parent)
    assert await masking.erase(WORDS) == 2
    assert left(state_db.path.parent) == 0


async def test_what_is_summarised_meanwhile_is_stale(state_db, masking, sessions):
    await talk(sessions, f"My cat is {WORD}.")
    await talk(sessions, "hello", session=CHAT)
    before = (await sessions.load(MAIN)).generation, (await sessions.load(CHAT)).generation
    await masking.erase(WORDS)
    after = (await sessions.load(MAIN)).generation, (await sessions.load(CHAT)).generation
    assert after[0] > before[0]
    assert after[1] == before[1]


async def test_silent_rows_of_a_cut_turn_are_masked(state_db, masking, sessions):
    asked = TurnRequest(MAIN, f"save {WORD}", "f1", origin=Origin.FLUSH)
    receipt = await sessions.receive(asked)
    await sessions.begin(receipt.turn_id)
    with pytest.raises(Busy):
        await masking.erase(WORDS)
    assert left(state_db.path.parent) == 0


async def test_a_mark_counts_at_its_row_and_in_what_is_kept_of_it(state_db, masking, sessions):
    use = ToolUse("t1", "forget", {"query": "my tea"})
    await talk(sessions, "Tea? Tea!", NewRow(RowRole.ASSISTANT, (use,)), answer="Tea it is.")
    await talk(sessions, "Tea? Tea!", answer="Tea it is.", session=CHAT)
    marks = (
        PlacedWords("sessions/main.jsonl:1", "Tea", 5),
        PlacedWords("sessions/main.jsonl:2", "my tea"),
        PlacedWords("sessions/main.jsonl:3", "Tea"),
        PlacedWords("alerts:1", "Tea"),
    )
    outbox = SqliteOutbox(state_db, FakeClock())
    await outbox.put(NewAlert("Tea!", "heartbeat", alert_digest("Tea!"), ("main",)))
    await outbox.put(NewAlert("Tea?", "heartbeat", alert_digest("Tea?"), ("main",)))
    assert await masking.erase(Erasure(marks=marks)) == 5
    assert [row.blocks for row in await sessions.rows(MAIN, 1, 9)] == [
        (Text(f"Tea? {MASK}!"),),
        (ToolUse("t1", "forget", {"query": MASK}),),
        (Text(f"{MASK} it is."),),
    ]
    assert [row.text for row in await sessions.rows(CHAT, 1, 9)] == ["Tea? Tea!", "Tea it is."]
    receipt = await sessions.receive(TurnRequest(MAIN, "Tea? Tea!", "id Tea? Tea!"))
    assert receipt.ended is not None
    assert receipt.ended.text == f"{MASK} it is."
    alerts = await state_db.read(lambda c: c.execute("SELECT text, digest FROM alerts").fetchall())
    assert [tuple(row) for row in alerts] == [
        (f"{MASK}!", alert_digest(f"{MASK}!")),
        ("Tea?", alert_digest("Tea?")),
    ]
    assert await masking.erase(Erasure(marks=marks)) == 0


async def test_what_says_other_facts_in_a_masked_row_is_found_there_afterwards(
    state_db, masking, sessions, clock
):
    text = f"Yes. My cat is {WORD}, I live in Ulm and like tea."
    await talk(sessions, text)
    spans = {"a": "Yes", "b": f"cat is {WORD}", "c": "I live in Ulm", "d": "like tea"}

    def plant(conn):
        for fact, said in spans.items():
            at = text.index(said)
            conn.execute(
                "INSERT INTO fact_evidence (fact_id, at, session, seq, begins, ends, is_context)"
                " VALUES (?, 'x', 'main', 1, ?, ?, 0)",
                (fact, at, at + len(said)),
            )

    await state_db.write(plant)
    await masking.erase(Erasure(spans=(f"My cat is {WORD}",), marks=(PlacedWords("x:1", "Ulm"),)))
    [row] = await sessions.rows(MAIN, 1, 1)
    assert row.text == f"Yes. {MASK}, I live in Ulm and like tea."
    found = await state_db.read(lambda c: c.execute("SELECT * FROM fact_evidence").fetchall())
    said = {one["fact_id"]: row.text[one["begins"] : one["ends"]] for one in found}
    assert said == {"a": "Yes", "b": MASK, "c": "I live in Ulm", "d": "like tea"}


async def test_what_is_quoted_behind_masked_words_stays_quoted(masking, sessions):
    text = f"I met {WORD}, she wrote: let us meet at nine"
    quoted = ((text.index("let us"), len(text)),)
    request = TurnRequest(MAIN, text, "quoting", quoted=quoted)
    receipt = await sessions.receive(request)
    await sessions.begin(receipt.turn_id)
    await sessions.finish(receipt.turn_id, ended(receipt))
    await masking.erase(WORDS)
    block = (await sessions.rows(MAIN))[0].blocks[0]
    ((start, end),) = block.quoted
    assert block.text[start:end] == "let us meet at nine"
