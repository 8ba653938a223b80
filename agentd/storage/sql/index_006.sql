-- What was said on a day, to write its text. Written by SqliteGraph.
CREATE INDEX graph_episodes_by_time ON graph_episodes (said);
-- Until now these tables were made from text; from here on they are made from facts.
DELETE FROM graph_concepts;
DELETE FROM graph_mentions;
DELETE FROM graph_aliases;
DELETE FROM graph_contexts;
DELETE FROM graph_predicates;
DELETE FROM graph_facts;
DELETE FROM graph_episodes;
DELETE FROM graph_promoted;
DELETE FROM meta WHERE name = 'graph';
