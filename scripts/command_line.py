"""The page docs/command-line.md, from the commands themselves: `python scripts/command_line.py`.

A command that changes its name, its arguments or its help changes the page; `make check` says where
that was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from agentd.app.cli.app import app

_HEAD = """\
# The command line

Every command, from its own declaration (`make docs` writes this page). `agentd COMMAND --help` explains the
arguments; `agentd completion bash` prints what makes your shell complete them:

```sh
agentd completion bash > ~/.local/share/bash-completion/completions/agentd
```

Exit codes: 0 done, 1 failed (also for an output that cannot be written), 2 usage (also a `backup`, `export`,
`import` or `restore` to where something is already), 69 no daemon, 75 try again, 78 configuration wrong, 130 ended by Ctrl-C.
With `--json` the answer, and an error, is one JSON object on a line.

| command | what it does | options |
|---|---|---|"""


def _commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        if hasattr(command, "list_commands"):
            if command.invoke_without_command:
                yield (*path, name), command
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _row(path: tuple[str, ...], command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    words = " ".join([*path, *(_shown(argument) for argument in arguments)])
    told = command.get_short_help_str(10_000)
    names = " ".join(f"`{max(o.opts, key=len)}`" for o in options if "--help" not in o.opts)
    return f"| `{words}` | {told} | {names} |".replace("  |", " |")


def _shown(argument: Any) -> str:
    name = (argument.metavar or argument.name.rstrip("_").upper()).replace("|", "\\|")
    return name if argument.required else f"[{name.strip('[]')}]"


def page() -> str:
    """The whole page."""
    rows = (_row(path, command) for path, command in _commands(typer.main.get_command(app), ()))
    return "\n".join([_HEAD, *rows]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
