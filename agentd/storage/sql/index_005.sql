-- All that a walk reads of a fact stands in the index that it is found by: the facts about a concept
-- lie all over the table, but side by side there.
DROP INDEX graph_facts_by_subject;
DROP INDEX graph_facts_by_object;
CREATE INDEX graph_facts_by_subject ON graph_facts (
    subject, stands, rank, newest, predicate, scope,
    object, hash, confidence, denied, since, until, observed
);
CREATE INDEX graph_facts_by_object ON graph_facts (
    object, stands, rank, newest, predicate, scope,
    subject, hash, confidence, denied, since, until, observed
);
