"""agentd's own methods, `_agentd/*`: one for each command that asks the daemon."""
