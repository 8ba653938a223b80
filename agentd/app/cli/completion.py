"""`agentd completion`: commands and options completed by the shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import (  # type: ignore[attr-defined]  # documented there, defined elsewhere
    completion_init,
    get_completion_script,
)

from agentd.app.cli.group import COMPLETION_VARIABLE
from agentd.app.cli.report import say


class Shell(StrEnum):
    """What there are completions for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="For which shell.")],
) -> None:
    """Print what makes a shell complete commands and options."""
    say(
        get_completion_script(
            prog_name="agentd", complete_var=COMPLETION_VARIABLE, shell=shell.value
        )
    )


def answer_shells() -> None:
    """Make commands answer what a shell asks in COMPLETION_VARIABLE, in place of running."""
    completion_init()
