"""Finds text that wants to steer the agent, in files that go into prompts. Pure."""
