"""Sinks that carry an alert to the user."""
