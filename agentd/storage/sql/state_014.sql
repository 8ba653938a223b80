-- Entries of HEARTBEAT.md that need tools of others, by the hash of their text: what these answered last, and
-- what the owner was told of them last. `calls` is JSON: [[name, input, answer, digest, repeats] …].
CREATE TABLE watches (
    entry TEXT PRIMARY KEY,
    calls TEXT NOT NULL DEFAULT '[]',
    looked_at TEXT,
    told TEXT NOT NULL DEFAULT '',
    told_at TEXT,
    failing_since TEXT,
    failure TEXT NOT NULL DEFAULT ''
) STRICT;
