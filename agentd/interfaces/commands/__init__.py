"""Every command, declared once: what it takes, what it does, how its result reads."""
