"""`python -m agentd` and the `agentd` command."""

from __future__ import annotations

import sys

from agentd.cli import foreground


def main() -> None:
    """Run the command that the arguments name; never returns."""
    words = sys.argv[1:]
    if foreground.is_plain(words):
        foreground.run(foreground.config_of(words))
    from agentd.cli.app import main as commands

    commands()


if __name__ == "__main__":
    main()
