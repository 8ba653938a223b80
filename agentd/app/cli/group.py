"""typer groups that start quickly and print plain help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, cast

import typer
from msgspec import Struct
from typer.core import TyperCommand, TyperGroup

from agentd.app.cli.report import fail
from agentd.core.errors import InvalidRequest

# The parent of everything that is wrong with a command line; typer has no name for it.
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])
_CompletionItem = cast(Any, typer.core).CompletionItem  # which typer uses and does not export


Load = Callable[[], Any]


class DeferredCommand(Struct, frozen=True):
    """A command or group that is imported at its first use; `summary` is the first sentence of its
    help.
    """

    load: Load
    summary: str


def load(place: str) -> Any:
    """Return what stands at "module:attribute" of the command line."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"agentd.app.cli.{module}"), attribute)


def deferred(commands: Mapping[str, tuple[str, str]]) -> dict[str, DeferredCommand]:
    """Return commands and groups to be imported at their first use, from the place (see `load`) and
    the summary of each.
    """
    return {
        name: DeferredCommand(partial(load, place), summary)
        for name, (place, summary) in commands.items()
    }


COMPLETION_VARIABLE = "_AGENTD_COMPLETE"  # in it a shell says that it wants to know what may follow

_SENTENCE = 200  # letters of the sentence that a list of commands shows, wrapped rather than cut


class _QuickCommand(TyperCommand):
    def get_short_help_str(self, limit: int = _SENTENCE) -> str:
        """Return the first sentence of the help, not shortened."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    # Typer hands every value that is not a bool to pydantic, whose import takes longer than all
    # else here; and the value of a help option that was not given is None unless it has a default.
    def get_help_option(self, ctx: Any) -> Any:
        """The help option, false by default."""
        return _defaulted(super().get_help_option(ctx))


class _QuickGroup(TyperGroup):
    later: ClassVar[Mapping[str, DeferredCommand]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands(self.commands, self.later)

    def get_short_help_str(self, limit: int = _SENTENCE) -> str:
        """Return the first sentence of the help, not shortened."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands without importing them."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands; those not imported yet by their summary."""
        rows = [(name, self._summary(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what may follow; commands not imported yet with their summary."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [_CompletionItem(name, help=self._summary(ctx, name)) for name in names]
        return [*commands, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    def _summary(self, ctx: Any, name: str) -> str:
        if name in self.later:
            return self.later[name].summary
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(_SENTENCE)

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run; a wrong command line is reported like every other failure, also as JSON."""
        given = sys.argv[1:] if args is None else list(args)
        if "--json" not in given:
            return super().main(args, *more, **options)
        try:
            status = super().main(args, *more, **{**options, "standalone_mode": False})
        except _UsageError as error:
            told = _refused(error)
            fail(told, as_json=True)
            sys.exit(told.exit_code)
        sys.exit(status or 0)

    def make_context(self, *given: Any, **options: Any) -> Any:
        """Read the command line as far as it is this group's."""
        with _told_our_way():
            return super().make_context(*given, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the rest of the command line names."""
        with _told_our_way():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the words name; one that stands in a group is not taken for a
        misspelt other one.
        """
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            groups = self._groups_with(args[0])
            if groups:
                meant = " or ".join(f"`{ctx.command_path} {one} {args[0]}`" for one in groups)
                cast(Any, error).message = f"No such command {args[0]!r}. Did you mean {meant}?"
            raise

    def _groups_with(self, name: str) -> list[str]:
        found = ((group, self.commands[group]) for group in self.commands)
        return [group for group, one in found if name in getattr(one, "commands", ())]

    def get_help_option(self, ctx: Any) -> Any:
        """The help option, false by default."""
        return _defaulted(super().get_help_option(ctx))


@contextmanager
def _told_our_way() -> Iterator[None]:
    """Let a wrong command line be shown like every other failure; a group alone shows its help."""
    try:
        yield
    except _UsageError as error:
        wrong = cast(Any, error)
        if type(error).show is _UsageError.show:
            wrong.show = lambda: fail(_refused(wrong))
        raise


def _refused(error: Any) -> InvalidRequest:
    """Return what is wrong with a command line, with its usage."""
    path, usage = "agentd", ""
    if error.ctx:
        path = error.ctx.command_path
        usage = f"{' '.join(error.ctx.get_usage().split())}; "
    cure = f"{usage}`{path} --help` says what it takes"
    return InvalidRequest(error.format_message(), cure=cure)


class _Commands(MutableMapping[str, Any]):
    """Commands by name; some are imported when they are looked up."""

    def __init__(self, made: Mapping[str, Any], later: Mapping[str, DeferredCommand]) -> None:
        self._made = dict(made)
        self._later = later

    def __getitem__(self, name: str) -> Any:
        if name not in self._made and name in self._later:
            self._made[name] = _to_typer(name, self._later[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._later, *self._made)))

    def __len__(self) -> int:
        return len(self._later.keys() | self._made.keys())


class CommandGroup(typer.Typer):
    """Commands under one name; `summary` is the group's help, by default what the list of commands
    says of it. Each of `later` is a function or a group, imported at its first use.
    """

    def __init__(
        self, summary: str = "", later: Mapping[str, DeferredCommand] | None = None
    ) -> None:
        self.later: dict[str, DeferredCommand] = dict(later or {})
        super().__init__(
            cls=type("_Later", (_QuickGroup,), {"later": self.later}),
            help=summary,
            context_settings={"help_option_names": ["--help", "-h"]},  # commands take them over
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as typer does."""
        return super().command(name, cls=_QuickCommand, **options)


def _to_typer(name: str, command: DeferredCommand) -> Any:
    """Import a function or a group, and return the click command that typer makes of it."""
    holder, loaded = CommandGroup(), command.load()
    if isinstance(loaded, CommandGroup):
        holder.add_typer(loaded, name=name, help=loaded.info.help or command.summary)
    else:
        holder.command(name)(loaded)
    return typer.main.get_group(holder).commands[name]


def _defaulted(option: Any) -> Any:
    if option is not None:
        option.default = False
    return option
