"""The small client that the command line uses: one JSON object a line over the daemon's socket."""
