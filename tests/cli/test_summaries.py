"""What the list of commands says of each, without loading it."""

from __future__ import annotations

import pytest
import typer

from agentd.app.cli import alerts, facts
from agentd.app.cli.app import app
from agentd.app.cli.group import CommandGroup

LATER = [(group, name) for group in (app, alerts.app, facts.app) for name in sorted(group.later)]


@pytest.mark.parametrize(("group", "name"), LATER, ids=[name for _, name in LATER])
def test_the_list_says_of_a_command_what_its_help_says(group: CommandGroup, name: str) -> None:
    command = typer.main.get_group(group).commands[name]
    assert group.later[name].summary == command.get_short_help_str(1000)
