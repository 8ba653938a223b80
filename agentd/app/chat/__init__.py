"""The chat in a terminal: what is typed, and what is shown."""
