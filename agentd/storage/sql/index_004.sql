-- The concept graph, made from the text under memory/graph/. All times are microseconds since 1970 in
-- UTC, all hashes 32 bytes. Rows name each other by numbers, which are small and near each other; the
-- hash of a thing stands in its own table alone. Concepts as all their mentions together tell them.
-- Written by SqliteGraph.
CREATE TABLE graph_concepts (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    label TEXT NOT NULL,
    confidence REAL NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;
CREATE INDEX graph_concepts_by_label ON graph_concepts (label);

-- What an episode's record said of a concept, so that it goes with the episode; the episode is 0 where
-- the concept stood by itself. The facts of a concept lead to its mentions. Written by SqliteGraph.
CREATE TABLE graph_mentions (
    episode INTEGER NOT NULL,
    concept INTEGER NOT NULL,
    confidence REAL NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (episode, concept)
) STRICT, WITHOUT ROWID;

-- The other spellings that a mention gave; `folded` is the name without case, to find it by. Written by
-- SqliteGraph.
CREATE TABLE graph_aliases (
    concept INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    PRIMARY KEY (concept, episode, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_aliases_by_name ON graph_aliases (folded);

-- When and where things were said. Written by SqliteGraph.
CREATE TABLE graph_contexts (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    said INTEGER NOT NULL,
    source TEXT NOT NULL,
    scope TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL
) STRICT;

-- The names of the facts' predicates. Written by SqliteGraph.
CREATE TABLE graph_predicates (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- What was said, and what its episodes come to. `stands` says whether one of them does not fade, and
-- `rank` orders facts of the same kind, whatever time it is: for one that stands it is the confidence
-- with nothing faded, for one that fades the time at which its episodes together will have faded below
-- 0.01. Denials that fade are left out, so it is a bound. `newest` is when it was said last, `scope`
-- that of all its episodes, null where there are several. A fact of one episode that no promotion counts
-- holds what that is worth, so that it is read as one row; else the columns from `confidence` on are
-- null. Written by SqliteGraph.
CREATE TABLE graph_facts (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    subject INTEGER NOT NULL,
    predicate INTEGER NOT NULL,
    object INTEGER NOT NULL,
    stands INTEGER NOT NULL,
    rank REAL NOT NULL,
    newest INTEGER NOT NULL,
    scope TEXT,
    confidence REAL,
    denied INTEGER,
    since INTEGER,
    until INTEGER,
    observed INTEGER
) STRICT;
CREATE INDEX graph_facts_by_subject ON graph_facts (subject, stands, rank, newest, predicate, scope);
CREATE INDEX graph_facts_by_object ON graph_facts (object, stands, rank, newest, predicate, scope);
CREATE INDEX graph_facts_by_predicate ON graph_facts (predicate, stands, rank, newest, scope);

-- Each saying of a fact. `said`, `source` and `scope` are its context's, `since` when it began to fade,
-- `until` when it will have faded below 0.01, null where it stands. `observed` is how many sayings it
-- counts, `promoted` whether another counts it. Written by SqliteGraph.
CREATE TABLE graph_episodes (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    fact INTEGER NOT NULL,
    context INTEGER NOT NULL,
    confidence REAL NOT NULL,
    created INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    refs TEXT NOT NULL,
    said INTEGER NOT NULL,
    source TEXT NOT NULL,
    scope TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    observed INTEGER NOT NULL,
    promoted INTEGER NOT NULL
) STRICT;
CREATE INDEX graph_episodes_of_fact ON graph_episodes (fact);
CREATE INDEX graph_episodes_of_context ON graph_episodes (context);

-- Which episodes a promotion counts, by their hashes; they may have been swept since. Written by
-- SqliteGraph.
CREATE TABLE graph_promoted (
    episode BLOB NOT NULL,
    promotion BLOB NOT NULL,
    PRIMARY KEY (episode, promotion)
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_promoted_by ON graph_promoted (promotion);

-- The consolidations that were done. Written by SqliteGraph.
CREATE TABLE graph_consolidations (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    promoted INTEGER NOT NULL,
    swept INTEGER NOT NULL
) STRICT;
