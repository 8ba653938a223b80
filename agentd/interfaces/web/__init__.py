"""Pages of the web and searches in it, by ways that lead into no private network."""
