"""The `.0` language: graphs of pure operations, read, checked and executed."""
