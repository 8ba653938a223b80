-- Who may find a chunk: '' everybody, 'main' the owner alone, else that session and the owner. Written
-- by SqliteChunks.
ALTER TABLE chunks ADD COLUMN scope TEXT NOT NULL DEFAULT '';
UPDATE chunks SET scope = 'main' WHERE owner_only = 1;
UPDATE chunks SET scope = (
    SELECT substr(path, 10, length(path) - 15) FROM files WHERE id = file_id  -- sessions/KEY.jsonl
) WHERE owner_only = 0 AND file_id IN (SELECT id FROM files WHERE source = 'sessions');
DROP INDEX chunks_shared;
ALTER TABLE chunks DROP COLUMN owner_only;
CREATE INDEX chunks_by_scope ON chunks (scope, id);

-- The terms of the shared chunks, without those of others' sessions, which used to be among them.
-- Written by SqliteChunks.
DROP TABLE vocabulary_shared;
DROP TABLE words_shared;
CREATE VIRTUAL TABLE words_shared USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_shared USING fts5vocab (words_shared, 'row');
INSERT INTO words_shared (rowid, terms) SELECT id, terms FROM chunks WHERE scope = '';
