"""Makes command line commands of the declared commands: each calls the daemon and shows the
answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, cast, get_args, get_origin

import typer

from agentd.app.cli.ask import answer
from agentd.app.cli.group import CommandGroup, DeferredCommand, load
from agentd.app.cli.report import AsJson
from agentd.interfaces.commands import declaration
from agentd.interfaces.commands.declaration import Command, DeclaredParameter

Line = Callable[..., None]
Lines = Mapping[str, Line | str]


def group_of(declared: declaration.Group, lines: Lines | None = None) -> CommandGroup:
    """Return a declared group as a group of the command line."""
    group = CommandGroup()
    add_all(group, declared, lines)
    return group


def add_all(group: CommandGroup, declared: declaration.Group, lines: Lines | None = None) -> None:
    """Add the commands of a declared group. `lines` are functions, by command name, that run
    commands which need more than one call: each gets the given parameters by their wire names,
    `as_json`, and its own options, which only the command line has. A line as "module:attribute"
    is imported at the first use of its command.
    """
    for command in declared.commands:
        if command.has_line:
            line = lines.get(command.name) if lines else None
            group.later[command.name] = DeferredCommand(
                partial(_load_line, command, line), command.summary
            )


def _load_line(command: Command, line: Line | str | None) -> Line:
    return alone(command, load(line) if isinstance(line, str) else line)


def tell(command: Command, given: Mapping[str, Any], *, as_json: bool) -> None:
    """Call the daemon and print the answer; on a failure the process ends with the error's exit
    code.
    """
    result = answer(command.path, command.show, as_json=as_json, within=command.seconds, **given)
    if command.has_failed(result):
        raise typer.Exit(1)


def alone(command: Command, line: Line | None = None) -> Line:
    """Return a declared command as a function for typer; see `add_all`."""
    params = [one for one in command.params() if one.param.help]
    own = [] if line is None else _own_options(line)

    def run(*, as_json: bool, **options: Any) -> None:
        given = {one.key: _read(one, options.pop(one.name)) for one in params}
        if line is None:
            tell(command, given, as_json=as_json)
        else:
            line(given, as_json=as_json, **options)

    told = [_parameter(one) for one in params]
    as_json = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson
    )
    parameters = [*told, *own, as_json]
    run.__doc__ = command.help
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    cast(Any, run).__signature__ = inspect.Signature(parameters)  # which typer reads
    return run


def _own_options(line: Line) -> list[inspect.Parameter]:
    """Return the options of a line function that are not declared in the command."""
    signature = inspect.signature(line, eval_str=True)
    _, *others = signature.parameters.values()
    return [one for one in others if one.name != "as_json"]


def _parameter(one: DeclaredParameter) -> inspect.Parameter:
    """Return the parameter for typer. A parameter that is not given is None unless its default is
    shown in the help.
    """
    param = one.param
    make: Any = typer.Option if one.is_option else typer.Argument
    flags = param.flags or ((f"--{param.key}",) if param.key else ())
    told = make(*flags, metavar=param.metavar, **_checks(one))
    default = one.default if param.usual is ... else param.usual
    kind = _kind(one)
    if not one.is_needed and default in (None, "", [], ()):
        default, kind = None, kind | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, told],
    )


def _checks(one: DeclaredParameter) -> dict[str, Any]:
    """Return the help, and the bounds and words that the command line itself checks."""
    if words := one.words:
        told = f"{', '.join(words[:-1])} or {words[-1]}"

        def check(given: str | None) -> str | None:
            if given is not None and given not in words:
                raise typer.BadParameter(f"{given[:100]!r} is none of {told}")
            return given

        return {"help": f"{one.param.help.rstrip('.')}: {told}.", "callback": check}
    bounds = {"min": one.param.least, "max": one.param.most}
    return {
        "help": one.param.help,
        **{name: bound for name, bound in bounds.items() if bound is not None},
    }


def _kind(one: DeclaredParameter) -> Any:
    """Return the type of the input: the declared one without None; str for a union."""
    kinds = list(_choices(one.type))
    return kinds[0] if len(kinds) == 1 and not one.words else str


def _choices(declared: Any) -> Iterator[Any]:
    if get_origin(declared) is UnionType:
        yield from (kind for kind in get_args(declared) if kind is not NoneType)
    else:
        yield declared


def _read(one: DeclaredParameter, value: Any) -> Any:
    """Return the input in the type that the method takes; None is not sent."""
    is_number = int in get_args(one.type) and isinstance(value, str)
    return int(value) if is_number and value.isascii() and value.isdigit() else value
