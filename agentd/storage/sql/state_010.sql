-- How summaries of a session have failed, and whether its turns run on a part of a context that is too long.
ALTER TABLE sessions ADD COLUMN summary_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN summary_failure TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN summary_retry_at TEXT;
ALTER TABLE sessions ADD COLUMN excerpted INTEGER NOT NULL DEFAULT 0;
