-- The services that have answered, by a digest of their configuration: written once by SqliteServiceRecord.
CREATE TABLE services (
    name TEXT PRIMARY KEY,
    at TEXT NOT NULL
) STRICT;

-- How long a message waits, from when it was received, if the model's service is away; in seconds.
ALTER TABLE turns ADD COLUMN patience INTEGER NOT NULL DEFAULT 0;
