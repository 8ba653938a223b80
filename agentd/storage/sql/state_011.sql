-- A keyed digest of what a row says and where it stands. Written by SqliteSessions and Masking.
ALTER TABLE rows ADD COLUMN digest BLOB;

-- One row: how many transactions were acknowledged, whether all rows have their digests, and by which key.
-- Written by Guard.
CREATE TABLE proof (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    commits INTEGER NOT NULL,
    sealed INTEGER NOT NULL,
    key_id BLOB
) STRICT;
INSERT INTO proof (id, commits, sealed) VALUES (1, 0, 0);
