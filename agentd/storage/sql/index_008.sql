-- Where chunks are in their files, apart from their content: a line that comes or goes moves all chunks
-- after it, and these rows have only a few bytes. Written by SqliteChunks.
CREATE TABLE chunk_lines (
    id INTEGER PRIMARY KEY,  -- that of the chunk
    file_id INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL
) STRICT;
INSERT INTO chunk_lines SELECT id, file_id, start_line, end_line FROM chunks;
DROP INDEX chunks_of_file;
ALTER TABLE chunks DROP COLUMN start_line;
ALTER TABLE chunks DROP COLUMN end_line;
CREATE INDEX chunks_of_file ON chunk_lines (file_id, start_line);
