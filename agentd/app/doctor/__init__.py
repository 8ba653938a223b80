"""The checks of `agentd doctor`. They look and change nothing."""
