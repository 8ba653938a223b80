-- What is known about the user, written by SqliteFacts. Its home is memory/facts.md: rows of facts can be
-- made from it again. `session` and `seq` name the row of a transcript that a fact was said in.
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
) STRICT;
CREATE INDEX facts_by_session ON facts (session) WHERE session <> '';

-- Up to which row facts were read from a session. Written by SqliteFacts.
CREATE TABLE fact_marks (
    session TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When a fact was said, each time. Written by SqliteFacts.
CREATE TABLE fact_sightings (
    id INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX fact_sightings_once ON fact_sightings (fact_id, at, session, seq);
CREATE INDEX fact_sightings_by_session ON fact_sightings (session) WHERE session <> '';

-- Keyed hashes of what was forgotten, written by SqliteFacts.
CREATE TABLE fact_tombstones (
    digest BLOB PRIMARY KEY,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The vectors of what facts say, written by SqliteFacts, by the model that made them.
CREATE TABLE fact_vectors (
    fact_id TEXT NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (fact_id, model)
) STRICT;

-- Facts whose lines are gone from the file, too many at once. Written by SqliteFacts.
CREATE TABLE fact_parked (
    position INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL
) STRICT;

-- What the user answered when a fact was proposed for MEMORY.md or USER.md. Written by SqliteFacts.
CREATE TABLE fact_answers (
    fact_id TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    accepted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is still to be erased everywhere, written by SqliteFacts. `needles` are the very words, so a row goes as soon as it can.
CREATE TABLE fact_erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    needles TEXT NOT NULL
) STRICT;
