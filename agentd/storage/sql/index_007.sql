-- The last lines of a long file are found without a look at those before them: it grows there.
DROP INDEX chunks_of_file;
CREATE INDEX chunks_of_file ON chunks (file_id, start_line);
