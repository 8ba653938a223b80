-- What a beat was: whether gates were passed by force, which dated entries were due (their hashes as JSON,
-- never their words), and the alert that its own was a repetition of. Written by SqliteBeats.
ALTER TABLE beats ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE beats ADD COLUMN entries TEXT NOT NULL DEFAULT '[]';
ALTER TABLE beats ADD COLUMN repeats INTEGER;
