"""The user's files: layout, safe access, injection."""
