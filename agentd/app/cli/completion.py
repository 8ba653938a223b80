"""`agentd completion`: commands and options completed by the shell."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from agentd.app.cli.group import COMPLETION_VARIABLE
from agentd.app.cli.report import AsJson, show

_SHELLS = import_module("typer.completion")  # documented there, and defined in modules that are not


class Shell(StrEnum):
    """A shell for which there are completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="For which shell.")], as_json: AsJson = False
) -> None:
    """Print what makes a shell complete commands and options."""
    script = _SHELLS.get_completion_script(
        prog_name="agentd", complete_var=COMPLETION_VARIABLE, shell=shell.value
    )
    show(
        {"shell": shell.value, "script": script},
        lambda made: str(made["script"]),
        as_json=as_json,
    )


def answer_shells() -> None:
    """Make commands answer the shell's query in COMPLETION_VARIABLE instead of running."""
    _SHELLS.completion_init()
