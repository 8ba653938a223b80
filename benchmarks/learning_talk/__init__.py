"""Conversations of an invented person: what is told, changed, taken back, and what is none of it."""
