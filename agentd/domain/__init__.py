"""Frozen values every layer shares; no I/O."""
