-- The terms of all chunks in eight parts, by the chunk's id: a full-text table keeps the terms of a
-- deleted chunk until it is written anew as a whole. Written by SqliteChunks.
DROP TABLE vocabulary_all;
DROP TABLE words_all;
CREATE VIRTUAL TABLE words_0 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_0 USING fts5vocab (words_0, 'row');
INSERT INTO words_0 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 0;
CREATE VIRTUAL TABLE words_1 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_1 USING fts5vocab (words_1, 'row');
INSERT INTO words_1 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 1;
CREATE VIRTUAL TABLE words_2 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_2 USING fts5vocab (words_2, 'row');
INSERT INTO words_2 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 2;
CREATE VIRTUAL TABLE words_3 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_3 USING fts5vocab (words_3, 'row');
INSERT INTO words_3 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 3;
CREATE VIRTUAL TABLE words_4 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_4 USING fts5vocab (words_4, 'row');
INSERT INTO words_4 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 4;
CREATE VIRTUAL TABLE words_5 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_5 USING fts5vocab (words_5, 'row');
INSERT INTO words_5 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 5;
CREATE VIRTUAL TABLE words_6 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_6 USING fts5vocab (words_6, 'row');
INSERT INTO words_6 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 6;
CREATE VIRTUAL TABLE words_7 USING fts5 (
    terms, content = 'chunks', content_rowid = 'id', detail = none,
    tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE vocabulary_7 USING fts5vocab (words_7, 'row');
INSERT INTO words_7 (rowid, terms) SELECT id, terms FROM chunks WHERE id % 8 = 7;

-- The parts from which chunks were deleted since they were last written anew. Written by SqliteChunks.
CREATE TABLE words_deleted (
    part INTEGER PRIMARY KEY
) STRICT;
