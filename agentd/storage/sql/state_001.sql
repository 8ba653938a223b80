-- Written by SqliteSessions. `rows` is the number of the newest row; `turns` counts rows that open one.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL DEFAULT '',
    cwd TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    rows INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    context_tokens INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    context_from INTEGER NOT NULL DEFAULT 1,
    summary TEXT NOT NULL DEFAULT '',
    swapped_at INTEGER NOT NULL DEFAULT 0,
    covered_to INTEGER NOT NULL DEFAULT 0,
    flush_failures INTEGER NOT NULL DEFAULT 0,
    flush_failure TEXT NOT NULL DEFAULT '',
    flush_due INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The inbox, written by SqliteSessions. `id` is the turn's id and its place in the inbox at once:
-- AUTOINCREMENT never hands out a number again. `text` is emptied when the turn has ended.
CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    context TEXT NOT NULL,
    model TEXT,
    tools TEXT,
    client TEXT NOT NULL,
    from_owner INTEGER NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    received_at TEXT NOT NULL,
    ended_at TEXT,
    outcome TEXT,
    UNIQUE (session_id, message_id)
) STRICT;
CREATE INDEX turns_open ON turns (id) WHERE ended_at IS NULL;
CREATE INDEX turns_from_owner ON turns (id) WHERE from_owner = 1;

-- The transcripts, written by SqliteSessions; nothing here is ever changed.
CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    turn_id INTEGER REFERENCES turns (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    opens_turn INTEGER NOT NULL,
    at TEXT NOT NULL,
    provider TEXT NOT NULL,
    usage TEXT,
    tag TEXT NOT NULL,
    blocks TEXT NOT NULL,
    UNIQUE (session_id, seq)
) STRICT;
CREATE INDEX rows_of_turn ON rows (turn_id, seq) WHERE turn_id IS NOT NULL;
CREATE INDEX rows_opening ON rows (session_id, seq) WHERE opens_turn = 1;

-- Rows of silent turns that have not ended, written by SqliteSessions and erased at their end.
CREATE TABLE silent_rows (
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL,
    at TEXT NOT NULL,
    provider TEXT NOT NULL,
    usage TEXT,
    tag TEXT NOT NULL,
    blocks TEXT NOT NULL,
    PRIMARY KEY (turn_id, seq)
) STRICT;

-- What flushes have offered to memory, written by SqliteSessions.
CREATE TABLE coverages (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    ok INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
CREATE INDEX coverages_of_session ON coverages (session_id, id);

-- Tool calls of turns that have not ended, written by SqliteJournal, erased when the turn ends: by
-- then the transcript tells the story. `data` are the bytes of a file change.
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    intent TEXT,
    data BLOB,
    output TEXT,
    UNIQUE (turn_id, call_id)
) STRICT;

-- One row a model call, written by SqliteLedger.
CREATE TABLE charges (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    origin TEXT NOT NULL,
    model TEXT NOT NULL,
    usage TEXT NOT NULL,
    total_tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL
) STRICT;
CREATE INDEX charges_by_time ON charges (at, origin, total_tokens, cost_usd);

-- The one row of the schedule, written by SqliteJobs.
CREATE TABLE heartbeat (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    next_due TEXT,
    paused_until TEXT
) STRICT;
INSERT INTO heartbeat (id) VALUES (1);

-- One row a tick, written by SqliteJobs. A beat without outcome is running.
CREATE TABLE beats (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    due TEXT,
    outcome TEXT,
    reason TEXT,
    text TEXT NOT NULL DEFAULT '',
    tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0,
    file_hash TEXT NOT NULL
) STRICT;
CREATE INDEX beats_running ON beats (id) WHERE outcome IS NULL;

-- Dated checklist items, written by SqliteJobs.
CREATE TABLE items (
    hash TEXT PRIMARY KEY,
    first_seen TEXT NOT NULL,
    last_done TEXT
) STRICT;

-- Jobs, written by SqliteJobBook. `call_key` names the tool call that made one.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL,
    schedule TEXT NOT NULL,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    misfire TEXT NOT NULL,
    model TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    call_key TEXT UNIQUE,
    next_due TEXT,
    runs INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_to_come ON jobs (id) WHERE next_due IS NOT NULL;

-- One row a run, written by SqliteJobBook; one without outcome is running. A row of outcome 'missed'
-- stands for all slots from `due` to `until` and uses none of them.
CREATE TABLE job_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    due TEXT,
    until TEXT,
    outcome TEXT,
    reason TEXT,
    text TEXT NOT NULL DEFAULT '',
    tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX job_slots ON job_runs (job_id, due) WHERE until IS NULL AND due IS NOT NULL;
CREATE INDEX job_runs_of_job ON job_runs (job_id, id);
CREATE INDEX job_runs_running ON job_runs (id) WHERE outcome IS NULL;

-- Alerts, written by SqliteOutbox and, together with the end of a beat or a job, by SqliteJobs and
-- SqliteJobBook.
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    recipient TEXT NOT NULL,
    digest TEXT NOT NULL,
    acked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX alerts_by_digest ON alerts (digest, at);
CREATE INDEX alerts_unacked ON alerts (id) WHERE acked = 0;

-- One row for each sink of an alert, written like `alerts`.
CREATE TABLE deliveries (
    alert_id INTEGER NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    sink TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at TEXT NOT NULL,
    PRIMARY KEY (alert_id, sink)
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (due_at, alert_id) WHERE state = 'pending';
