-- How much an alert matters: info, warning or urgent.
ALTER TABLE alerts ADD COLUMN severity TEXT NOT NULL DEFAULT 'info';

-- When a sink was last tried, and why that failed; '' where it did not.
ALTER TABLE deliveries ADD COLUMN tried_at TEXT;
ALTER TABLE deliveries ADD COLUMN error TEXT NOT NULL DEFAULT '';
