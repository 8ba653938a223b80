-- What ranking asks of a text beside its terms, read off once. Written by SqliteChunks; empty for chunks
-- that were indexed before there was this column.
ALTER TABLE chunks ADD COLUMN traits BLOB NOT NULL DEFAULT x'';
