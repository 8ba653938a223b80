"""The concept graph: content-addressed concepts and facts, remembered, recalled and exchanged."""
