-- How many keys of a message were not kept: it cannot run again from what is stored.
ALTER TABLE turns ADD COLUMN redacted INTEGER NOT NULL DEFAULT 0;
