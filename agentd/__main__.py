"""`python -m agentd` and the `agentd` command."""

from __future__ import annotations

from agentd.app.cli.streams import end_at_once


def main() -> None:
    """Run the command that the arguments name; never returns."""
    end_at_once()
    # Imported after `end_at_once`, so that Ctrl-C during the imports leaves no traceback.
    from agentd.app.cli.foreground import main as entry

    entry()


if __name__ == "__main__":
    main()
