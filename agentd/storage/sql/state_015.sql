-- Sessions that were deleted while their words may still stand elsewhere. Written by SqliteSessions.
CREATE TABLE deletions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL
) STRICT;
