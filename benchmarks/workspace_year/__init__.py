"""A year of one invented person's notes and talks, and questions whose answering lines are
known.
"""
