"""The command line. Each line loads the module of its own command, and `agentd --help` none."""
