-- The words of the user that say a fact: characters `begins` to `ends` of a row's text. Both are 0 where
-- only the row is known. Written by SqliteFacts.
CREATE TABLE fact_evidence (
    id INTEGER PRIMARY KEY,
    fact_id TEXT NOT NULL,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    is_context INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX fact_evidence_once ON fact_evidence (fact_id, at, session, seq, begins, is_context);
CREATE INDEX fact_evidence_by_session ON fact_evidence (session, seq) WHERE session <> '';
INSERT INTO fact_evidence (fact_id, at, session, seq, begins, ends, is_context)
    SELECT fact_id, at, session, seq, 0, 0, 0 FROM fact_sightings ORDER BY id;
DROP TABLE fact_sightings;

-- What was changed, by ids alone. `before` is JSON: what each fact was that holds no longer. Written by
-- SqliteFacts.
CREATE TABLE fact_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    session TEXT NOT NULL,
    op TEXT NOT NULL,
    new TEXT NOT NULL,
    before TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A fact that nothing took the place of has ended. `replaces` are the ids that a yes to a proposed fact
-- puts aside, with commas between.
ALTER TABLE facts ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
UPDATE facts SET status = 'ended' WHERE status = 'superseded' AND superseded_by = '';
