-- Whether text from outside had a part in an alert. Written by SqliteOutbox, SqliteBeats and SqliteJobs.
ALTER TABLE alerts ADD COLUMN tainted INTEGER NOT NULL DEFAULT 0;
