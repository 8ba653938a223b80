"""What agentd knows about its user: learning, changing its mind, forgetting."""
