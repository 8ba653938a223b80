"""Deciding when and how the context shrinks."""
