-- What the rest was made with, by name: chunker, models. Written by SqliteChunks.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is indexed, written by SqliteChunks.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE INDEX files_by_source ON files (source, path);

-- The pieces, written by SqliteChunks. An id is never used twice: who has seen all up to one asks for
-- those above it. `terms` are the words to find it by, `digest` is that of the text to embed.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file_id INTEGER NOT NULL REFERENCES files (id),
    owner_only INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    date TEXT,
    speaker TEXT NOT NULL,
    context TEXT NOT NULL,
    importance REAL NOT NULL,
    text TEXT NOT NULL,
    terms TEXT NOT NULL,
    digest BLOB NOT NULL
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file_id);
CREATE INDEX chunks_by_digest ON chunks (digest);
CREATE INDEX chunks_shared ON chunks (id) WHERE owner_only = 0;

-- The terms of all chunks for the owner, and of the shared ones alone for everybody else: a word's
-- rarity, and so a score, must not tell others what the owner's chunks say. Written by SqliteChunks.
CREATE VIRTUAL TABLE words_all USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE words_shared USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);

-- How many chunks hold a term; views of the two tables above.
CREATE VIRTUAL TABLE vocabulary_all USING fts5vocab (words_all, 'row');
CREATE VIRTUAL TABLE vocabulary_shared USING fts5vocab (words_shared, 'row');

-- Models that texts were embedded with, written by SqliteChunks.
CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Vectors by model and content: what is embedded once is not embedded again, wherever it turns up.
-- Written by SqliteChunks.
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL REFERENCES models (id),
    digest BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (model_id, digest)
) STRICT;
