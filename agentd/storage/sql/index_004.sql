-- The concept graph, made from the text under memory/graph/. All times are microseconds since 1970 in
-- UTC, all hashes 32 bytes. Concepts as all their mentions together tell them. Written by SqliteGraph.
CREATE TABLE graph_concepts (
    hash BLOB PRIMARY KEY,
    label TEXT NOT NULL,
    confidence REAL NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_concepts_by_label ON graph_concepts (label);

-- What an episode's record said of a concept, so that it goes with the episode; the episode is empty
-- where the concept stood by itself. Written by SqliteGraph.
CREATE TABLE graph_mentions (
    concept BLOB NOT NULL,
    episode BLOB NOT NULL,
    confidence REAL NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (concept, episode)
) STRICT, WITHOUT ROWID;

-- The other spellings that a mention gave; `folded` is the name without case, to find it by. Written by
-- SqliteGraph.
CREATE TABLE graph_aliases (
    concept BLOB NOT NULL,
    episode BLOB NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    PRIMARY KEY (concept, episode, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_aliases_by_name ON graph_aliases (folded);

-- When and where things were said. Written by SqliteGraph.
CREATE TABLE graph_contexts (
    hash BLOB PRIMARY KEY,
    said INTEGER NOT NULL,
    source TEXT NOT NULL,
    scope TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was said; who walks from fact to fact needs the two indexes alone. Written by SqliteGraph.
CREATE TABLE graph_facts (
    hash BLOB PRIMARY KEY,
    subject BLOB NOT NULL,
    predicate TEXT NOT NULL,
    object BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_facts_by_subject ON graph_facts (subject, predicate, object);
CREATE INDEX graph_facts_by_object ON graph_facts (object, predicate, subject);
CREATE INDEX graph_facts_by_predicate ON graph_facts (predicate);

-- Each saying of a fact. `said`, `source` and `scope` are its context's, `since` when it began to fade,
-- `until` when it will have faded below 0.01, null where it stands. `observed` is how many sayings it
-- counts, `promoted` whether another counts it. Written by SqliteGraph.
CREATE TABLE graph_episodes (
    fact BLOB NOT NULL,
    hash BLOB NOT NULL,
    context BLOB NOT NULL,
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
    promoted INTEGER NOT NULL,
    PRIMARY KEY (fact, hash)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX graph_episodes_by_hash ON graph_episodes (hash);
CREATE INDEX graph_episodes_of_context ON graph_episodes (context);
CREATE INDEX graph_episodes_by_end ON graph_episodes (until);

-- Which episodes a promotion counts; they may have been swept since. Written by SqliteGraph.
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
