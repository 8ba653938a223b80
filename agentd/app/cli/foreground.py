"""The entry point: `agentd run` becomes the daemon without importing the libraries of other
commands.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn, cast

from agentd.app.cli import streams


def main() -> None:
    """Run the command that the arguments name; never returns."""
    streams.make_sound()
    words = sys.argv[1:]
    if is_plain(words):
        run(config_of(words))
    from agentd.app.cli.app import main as commands

    commands()


def is_plain(words: Sequence[str]) -> bool:
    """Return whether the command line is only `run`, with at most a `--config` that exists.
    Everything else goes to the full parser, which handles help and mistakes but would cost the
    daemon 2 MB and a tenth of its start.
    """
    if words[:1] != ["run"]:
        return False
    named = config_of(words)
    return len(words) == 1 or (named is not None and named.is_file())


def config_of(words: Sequence[str]) -> Path | None:
    """Return the configuration file that a plain command line names."""
    match words:
        case ["run", "--config", name]:
            return Path(name)
        case ["run", word] if word.startswith("--config="):
            return Path(word.removeprefix("--config="))
    return None


def run(config: Path | None) -> NoReturn:
    """Run the daemon until it is stopped, and exit with its code."""
    gc.disable()  # nothing that a start makes is garbage; the daemon enables it when it is ready
    # structlog loads rich, if it is there, for tracebacks in colour: 4 MB, and the daemon writes
    # plain ones. None in sys.modules makes the import fail.
    sys.modules["rich"] = cast(ModuleType, None)
    from agentd.app.daemon import main

    code = main(config)
    # Everything is stored and closed. Taking the interpreter apart module by module, with a large
    # SDK in it, would cost most of the time that a service manager gives us to end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
