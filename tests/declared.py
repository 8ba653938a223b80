"""All commands that agentd/interfaces/commands declares."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import agentd.interfaces.commands
from agentd.interfaces.commands.declaration import Command, Group, Slash


@cache
def groups() -> tuple[Group, ...]:
    """Every group, wherever it stands."""
    modules = pkgutil.iter_modules(agentd.interfaces.commands.__path__)
    found = [
        value
        for module in modules
        for value in vars(
            importlib.import_module(f"agentd.interfaces.commands.{module.name}")
        ).values()
        if isinstance(value, Group)
    ]
    return tuple(dict.fromkeys(found))


def commands() -> tuple[Command, ...]:
    """The commands of all groups."""
    return tuple(command for group in groups() for command in group.commands)


def slashes() -> tuple[Slash, ...]:
    """What may be typed in a chat, of all groups."""
    return tuple(slash for group in groups() for slash in group.slashes)
