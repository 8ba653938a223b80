-- Where the text of a row comes from: who wrote it, and ` tainted` behind it. Written by SqliteSessions.
ALTER TABLE rows ADD COLUMN source TEXT NOT NULL DEFAULT 'agent';
ALTER TABLE silent_rows ADD COLUMN source TEXT NOT NULL DEFAULT 'agent';

-- The spans of a waiting message that its sender marked as not his own words, as JSON; emptied like
-- `text`. Written by SqliteSessions.
ALTER TABLE turns ADD COLUMN quoted TEXT NOT NULL DEFAULT '[]';

-- What the user said in his own sessions is his; in all others it is not.
UPDATE rows SET source = 'owner' WHERE opens_turn = 1;
UPDATE rows SET source = iif(opens_turn, 'other tainted', 'agent tainted')
WHERE tag = 'tainted' OR role IN ('user', 'assistant') AND session_id IN (
    SELECT id FROM sessions
    WHERE key <> 'main' AND key NOT GLOB 'chat:*' AND key NOT GLOB 'heartbeat:*'
);
UPDATE silent_rows SET source = 'agent tainted' WHERE tag = 'tainted';

-- What was imported stands before all else of its session, and its answers name no provider. But for the
-- user's own messages it is tainted; a call and its result stand together.
UPDATE rows SET source = 'agent tainted' FROM (
    SELECT session_id, max(seq) AS last FROM rows
    WHERE turn_id IS NULL AND (tag = 'import' OR role = 'assistant' AND provider = '')
    GROUP BY session_id
) AS imported
WHERE rows.session_id = imported.session_id AND rows.seq <= imported.last + 1
    AND rows.turn_id IS NULL AND rows.opens_turn = 0 AND (rows.role <> 'notice' OR rows.tag = 'import');

-- What a turn made of text from outside.
UPDATE rows SET source = 'agent tainted' FROM (
    SELECT turn_id, min(seq) AS first FROM rows
    WHERE turn_id IS NOT NULL AND tag = 'tainted' GROUP BY turn_id
) AS told
WHERE rows.turn_id = told.turn_id AND rows.seq > told.first AND rows.role = 'assistant';

-- That tag has said what the column says now.
UPDATE rows SET tag = '' WHERE tag = 'tainted';
UPDATE silent_rows SET tag = '' WHERE tag = 'tainted';
