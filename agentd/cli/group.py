"""A group of commands in plain text that starts quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _QuickCommand(TyperCommand):
    # Typer hands every value that is not a bool to pydantic, whose import takes longer than all else
    # here; and the value of a help option that was not given is None unless it has a default.
    def get_help_option(self, ctx: Any) -> Any:
        """The help option, false by default."""
        return _defaulted(super().get_help_option(ctx))


class _QuickGroup(TyperGroup):
    def get_help_option(self, ctx: Any) -> Any:
        """The help option, false by default."""
        return _defaulted(super().get_help_option(ctx))


class Group(typer.Typer):
    """Commands under one name; `summary` is its help."""

    def __init__(self, summary: str) -> None:
        super().__init__(
            cls=_QuickGroup,
            help=summary,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as typer does."""
        return super().command(name, cls=_QuickCommand, **options)


def _defaulted(option: Any) -> Any:
    if option is not None:
        option.default = False
    return option
