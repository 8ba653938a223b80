BEGIN TRANSACTION;
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    text TEXT NOT NULL,
    origin TEXT NOT NULL,
    recipient TEXT NOT NULL,
    digest TEXT NOT NULL,
    acked INTEGER NOT NULL DEFAULT 0
, tainted INTEGER NOT NULL DEFAULT 0, severity TEXT NOT NULL DEFAULT 'info') STRICT;
INSERT INTO "alerts" VALUES(1,'2026-11-20T09:00:01.000000+00:00','water','job','','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',0,0,'info');
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
, forced INTEGER NOT NULL DEFAULT 0, entries TEXT NOT NULL DEFAULT '[]', repeats INTEGER) STRICT;
INSERT INTO "beats" VALUES(1,'2026-11-20T09:00:01.000000+00:00',NULL,'quiet','ack','',0,0.0,'f',0,'[]',NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    intent TEXT,
    data BLOB,
    output TEXT,
    UNIQUE (turn_id, call_id)
) STRICT;
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
INSERT INTO "charges" VALUES(1,'2026-11-20T09:00:01.000000+00:00','main','user','m','[10,5,0,0]',15,0.1);
CREATE TABLE coverages (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    ok INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
INSERT INTO "coverages" VALUES(1,1,1,2,1,'','2026-11-20T09:00:03.000000+00:00');
CREATE TABLE deletions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL
) STRICT;
CREATE TABLE deliveries (
    alert_id INTEGER NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    sink TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at TEXT NOT NULL, tried_at TEXT, error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (alert_id, sink)
) STRICT;
INSERT INTO "deliveries" VALUES(1,'main','sent',0,'2026-11-20T09:00:01.000000+00:00',NULL,'');
CREATE TABLE fact_answers (
    fact_id TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    accepted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE fact_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    op TEXT NOT NULL,
    new TEXT NOT NULL,
    before TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE fact_erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    needles TEXT NOT NULL
) STRICT;
CREATE TABLE fact_evidence (
    id INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    is_context INTEGER NOT NULL
) STRICT;
INSERT INTO "fact_evidence" VALUES(1,'k3f9','2026-11-20T09:00:01.000000+00:00','main',1,0,0,0);
CREATE TABLE fact_marks (
    session TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "fact_marks" VALUES('main',2);
CREATE TABLE fact_parked (
    position INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL
) STRICT;
CREATE TABLE fact_tombstones (
    digest BLOB PRIMARY KEY,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "fact_tombstones" VALUES(X'67676767676767676767676767676767','2026-11-20T09:00:01.000000+00:00');
CREATE TABLE fact_vectors (
    fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (fact_id, model)
) STRICT;
CREATE TABLE facts (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    category TEXT NOT NULL,
    source TEXT NOT NULL,
    confidence REAL NOT NULL,
    valid_from TEXT NOT NULL,
    noted_at TEXT NOT NULL,
    status TEXT NOT NULL,
    valid_to TEXT,
    superseded_by TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    triple TEXT
, replaces TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "facts" VALUES('k3f9','Tea is green.','preference','explicit',0.9,'2026-11-20','2026-11-20T09:00:01.000000+00:00','ended',NULL,'','main',1,NULL,'');
CREATE TABLE graph_earlier (
    at TEXT NOT NULL
) STRICT;
CREATE TABLE graph_programs (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE graph_records (
    episode BLOB PRIMARY KEY,
    teller TEXT NOT NULL,
    at TEXT NOT NULL,
    said TEXT NOT NULL,
    receipt TEXT NOT NULL
) STRICT;
CREATE TABLE graph_shares (
    position INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    episode BLOB NOT NULL,
    fact TEXT NOT NULL,
    salt TEXT NOT NULL,
    is_sent INTEGER NOT NULL
) STRICT;
CREATE TABLE graph_withdrawn (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE heartbeat (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    next_due TEXT,
    paused_until TEXT
) STRICT;
INSERT INTO "heartbeat" VALUES(1,'2026-11-20T09:00:09.000000+00:00',NULL);
CREATE TABLE images (
    row_id INTEGER NOT NULL REFERENCES rows (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (row_id, sha256)
) STRICT, WITHOUT ROWID;
INSERT INTO "images" VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
CREATE TABLE items (
    hash TEXT PRIMARY KEY,
    first_seen TEXT NOT NULL,
    last_done TEXT
) STRICT;
INSERT INTO "items" VALUES('h','2026-11-20T09:00:00.000000+00:00',NULL);
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
INSERT INTO "job_runs" VALUES(1,1,'2026-11-20T09:00:01.000000+00:00','2026-11-20T09:00:01.000000+00:00',NULL,'alert','','water',0,0.0);
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
INSERT INTO "jobs" VALUES(1,'water the plants','{"every":"1d","anchor":"2026-11-20T09:00:00+00:00"}','remind','main','once','','user','2026-11-20T09:00:00.000000+00:00',NULL,'2026-11-20T09:00:09.000000+00:00',0);
CREATE TABLE proof (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    commits INTEGER NOT NULL,
    sealed INTEGER NOT NULL,
    key_id BLOB
) STRICT;
INSERT INTO "proof" VALUES(1,0,0,NULL);
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
    blocks TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'agent', digest BLOB,
    UNIQUE (session_id, seq)
) STRICT;
INSERT INTO "rows" VALUES(1,1,1,1,'user',1,'2026-11-20T09:00:01.000000+00:00','',NULL,'','[{"type":"text","text":"Buy tea"}]','owner',NULL);
INSERT INTO "rows" VALUES(2,1,2,1,'assistant',0,'2026-11-20T09:00:02.000000+00:00','anthropic','[10,5,0,0]','','[{"type":"text","text":"Noted."}]','agent',NULL);
INSERT INTO "rows" VALUES(3,1,3,NULL,'notice',0,'2026-11-20T09:00:03.000000+00:00','',NULL,'alert:1','[{"type":"text","text":"An alert"}]','agent',NULL);
INSERT INTO "rows" VALUES(4,1,4,NULL,'summary',0,'2026-11-20T09:00:04.000000+00:00','',NULL,'','[{"type":"text","text":"They want tea."}]','agent',NULL);
INSERT INTO "rows" VALUES(5,2,1,3,'user',1,'2026-11-20T09:00:01.000000+00:00','',NULL,'','[{"type":"text","text":"Hello from the club"}]','other tainted',NULL);
CREATE TABLE services (
    name TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT;
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
, mode TEXT NOT NULL DEFAULT 'auto', model TEXT NOT NULL DEFAULT '', effort TEXT NOT NULL DEFAULT '', summary_failures INTEGER NOT NULL DEFAULT 0, summary_failure TEXT NOT NULL DEFAULT '', summary_retry_at TEXT, excerpted INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "sessions" VALUES(1,'main','Buy tea','','2026-11-20T09:00:00.000000+00:00','2026-11-20T09:00:05.000000+00:00',4,2,0,0,1,'',0,0,0,'',0,'auto','','',0,'',NULL,0);
INSERT INTO "sessions" VALUES(2,'group:club','','','2026-11-20T09:00:00.000000+00:00','2026-11-20T09:00:05.000000+00:00',1,1,0,0,1,'',0,0,0,'',0,'auto','','',0,'',NULL,0);
CREATE TABLE silent_rows (
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL,
    at TEXT NOT NULL,
    provider TEXT NOT NULL,
    usage TEXT,
    tag TEXT NOT NULL,
    blocks TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'agent',
    PRIMARY KEY (turn_id, seq)
) STRICT;
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
    outcome TEXT, images TEXT NOT NULL DEFAULT '[]', quoted TEXT NOT NULL DEFAULT '[]', redacted INTEGER NOT NULL DEFAULT 0, patience INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, message_id)
) STRICT;
INSERT INTO "turns" VALUES(1,1,'m1','user','main',NULL,NULL,'c',1,'','done',1,'2026-11-20T09:00:00.000000+00:00','2026-11-20T09:00:01.000000+00:00','{"text":"Noted.","stop_reason":"end_turn","usage":[10,5,0,0],"tool_calls":[],"cost_usd":0.1,"failure":null}','[]','[]',0,0);
INSERT INTO "turns" VALUES(2,1,'m2','user','main',NULL,NULL,'c',1,'And now?','received',0,'2026-11-20T09:00:04.000000+00:00',NULL,NULL,'[]','[]',0,0);
INSERT INTO "turns" VALUES(3,2,'m3','user','main',NULL,NULL,'c',0,'','done',1,'2026-11-20T09:00:00.000000+00:00','2026-11-20T09:00:01.000000+00:00','{"text":"Noted.","stop_reason":"end_turn","usage":[10,5,0,0],"tool_calls":[],"cost_usd":0.1,"failure":null}','[]','[]',0,0);
CREATE TABLE watches (
    entry TEXT PRIMARY KEY,
    calls TEXT NOT NULL DEFAULT '[]',
    looked_at TEXT,
    told TEXT NOT NULL DEFAULT '',
    told_at TEXT,
    failing_since TEXT,
    failure TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX turns_open ON turns (id) WHERE ended_at IS NULL;
CREATE INDEX turns_from_owner ON turns (id) WHERE from_owner = 1;
CREATE INDEX rows_of_turn ON rows (turn_id, seq) WHERE turn_id IS NOT NULL;
CREATE INDEX rows_opening ON rows (session_id, seq) WHERE opens_turn = 1;
CREATE INDEX coverages_of_session ON coverages (session_id, id);
CREATE INDEX charges_by_time ON charges (at, origin, total_tokens, cost_usd);
CREATE INDEX beats_running ON beats (id) WHERE outcome IS NULL;
CREATE INDEX jobs_to_come ON jobs (id) WHERE next_due IS NOT NULL;
CREATE UNIQUE INDEX job_slots ON job_runs (job_id, due) WHERE until IS NULL AND due IS NOT NULL;
CREATE INDEX job_runs_of_job ON job_runs (job_id, id);
CREATE INDEX job_runs_running ON job_runs (id) WHERE outcome IS NULL;
CREATE INDEX alerts_by_digest ON alerts (digest, at);
CREATE INDEX alerts_unacked ON alerts (id) WHERE acked = 0;
CREATE INDEX deliveries_pending ON deliveries (due_at, alert_id) WHERE state = 'pending';
CREATE INDEX turns_with_images ON turns (id) WHERE images <> '[]';
CREATE INDEX images_by_digest ON images (sha256);
CREATE INDEX facts_by_session ON facts (session) WHERE session <> '';
CREATE UNIQUE INDEX fact_evidence_once ON fact_evidence (fact_id, at, session, seq, begins, is_context);
CREATE INDEX fact_evidence_by_session ON fact_evidence (session, seq) WHERE session <> '';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('turns',3);
INSERT INTO "sqlite_sequence" VALUES('beats',1);
INSERT INTO "sqlite_sequence" VALUES('jobs',1);
INSERT INTO "sqlite_sequence" VALUES('job_runs',1);
INSERT INTO "sqlite_sequence" VALUES('alerts',1);
COMMIT;
