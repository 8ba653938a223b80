"""The command line. Command bodies import what they need, so that `agentd --help` stays instant."""
