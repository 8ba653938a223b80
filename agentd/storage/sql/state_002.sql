-- What the user has chosen for a session; "" leaves it to the configuration. Written by SqliteSessions.
ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT 'auto';
ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN effort TEXT NOT NULL DEFAULT '';
