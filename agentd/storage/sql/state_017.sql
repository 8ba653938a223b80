-- When the pause of the heartbeat was asked for: a time later than now tells that the clock was ahead then.
ALTER TABLE heartbeat ADD COLUMN paused_at TEXT;
