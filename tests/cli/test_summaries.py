"""What the list of commands says of each, without loading it."""

from __future__ import annotations

import pytest
import typer

from agentd.app.cli.app import app


@pytest.mark.parametrize("name", sorted(app.later))
def test_the_list_says_of_a_command_what_its_help_says(name: str) -> None:
    command = typer.main.get_group(app).commands[name]
    assert app.later[name].summary == command.get_short_help_str(1000)
