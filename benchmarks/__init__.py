"""What agentd costs: start, memory, CPU per turn, bytes per prompt, and what it does when idle."""
