"""The search engine that lives in memory: what is indexed, as arrays, and how it is ranked."""
