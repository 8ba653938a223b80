"""Waking up by itself: when, what for, and what to make of the reply."""
