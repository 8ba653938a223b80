-- What the concept graph cannot derive from facts: what other agents said, one row for each saying as `.0c`
-- text, and what was promoted (then nobody tells it). `receipt` names its entry in the chain, or is ''.
-- Written by SqliteGraphRecords, as all of these.
CREATE TABLE graph_records (
    episode BLOB PRIMARY KEY,
    teller TEXT NOT NULL,
    at TEXT NOT NULL,
    said TEXT NOT NULL,
    receipt TEXT NOT NULL
) STRICT;

-- Under which names others sent what is not to come in again: it was taken back, or forgotten here.
CREATE TABLE graph_withdrawn (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Which facts are shared in which space, and as what; `fact` is '' where that was taken back.
CREATE TABLE graph_shares (
    position INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    episode BLOB NOT NULL,
    fact TEXT NOT NULL,
    salt TEXT NOT NULL,
    is_sent INTEGER NOT NULL
) STRICT;

-- What programs of the `.0` language keep between their runs.
CREATE TABLE graph_programs (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row once the text of earlier releases was taken in.
CREATE TABLE graph_earlier (
    at TEXT NOT NULL
) STRICT;
