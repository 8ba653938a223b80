"""`python -m agentd` and the `agentd` command."""

from __future__ import annotations

from agentd.cli.foreground import main

if __name__ == "__main__":
    main()
