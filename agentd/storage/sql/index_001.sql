-- What is indexed, written by SqliteIndex.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE INDEX files_by_source ON files (source, path);

-- The pieces, written by SqliteIndex. `grams` makes runs of letters without spaces findable.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files (id),
    source TEXT NOT NULL,
    owner_only INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    date TEXT,
    text TEXT NOT NULL,
    grams TEXT NOT NULL
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file_id);
CREATE INDEX chunks_shared ON chunks (id) WHERE owner_only = 0;

-- The words of all chunks for the owner, and of the shared ones alone for everybody else: a word's
-- rarity, and so a score, must not tell others what the owner's chunks say. Written by SqliteIndex.
CREATE VIRTUAL TABLE words_all USING fts5 (
    text, grams, content = 'chunks', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE words_shared USING fts5 (
    text, grams, content = 'chunks', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- How many chunks hold a word; views of the two tables above.
CREATE VIRTUAL TABLE vocabulary_all USING fts5vocab (words_all, 'row');
CREATE VIRTUAL TABLE vocabulary_shared USING fts5vocab (words_shared, 'row');
