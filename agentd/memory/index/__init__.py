"""Notes and conversations as chunks, and the search that finds them."""
