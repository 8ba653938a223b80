"""How a command is declared: once, as an annotated coroutine of its group's class.

    JOBS = Group("jobs")

    class JobCommands:
        def __init__(self, agenda: Agenda) -> None: ...

        @JOBS.command(fields)
        async def add(
            self,
            text: Annotated[str, Param("What to tell you.")],
            *,
            at: Annotated[str, Param('Once: "2026-12-01 09:00".')] = "",
        ) -> dict[str, Any]:
            '''Add a job.'''

From that come `_agentd/jobs/add` (agentd/interfaces/acp/declared.py binds it to the parts of the
daemon and checks what clients send), and `agentd jobs add TEXT --at …` with its help
(agentd/app/cli/declared.py, which never calls the coroutine: it asks the daemon and shows the
answer as `fields` words it). Parameters before the `*` are arguments of the command line, those
behind it options. Modules of this package import nothing heavy, since each command line loads one.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from agentd.core.errors import InvalidRequest

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model

Run = Callable[..., Awaitable[Any]]
Show = Callable[[Any], str]
HasFailed = Callable[[Any], bool]
R = TypeVar("R", bound=Run)
NOTES = "your notes are not for this session"  # the refusal in a session with other people


class Caller(Protocol):
    """The client that calls a command. A command gets it through a parameter of this type."""

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification for the client. Never blocks, never raises."""

    async def wait_room(self) -> None:
        """Return when the client has read most of what is queued for it, or has left."""


class Param(Struct, frozen=True):
    """What a parameter's type and default do not say.

    `help` is for the command line; without it the parameter exists only in the ACP method. `flags`
    replace the option's default spelling `--its-name`; `key` is the name on the wire if it differs
    (a Python keyword). `least` and `most` bound a number, or each number of a list; `length` bounds
    the items of a list or the characters of a text; `below`, `above` and `up_to` are bounds that
    only the method checks. `usual` is what the command line sends if the option is not given; None
    sends nothing, and without it the method's default is used.
    """

    help: str = ""
    flags: tuple[str, ...] = ()
    key: str = ""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    below: float | None = None
    above: float | None = None
    up_to: float | None = None
    length: tuple[int, int] | None = None
    usual: Any = ...


class DeclaredParameter(Struct, frozen=True):
    """One parameter of a declared coroutine. `default` is `inspect.Parameter.empty` if the
    parameter is required.
    """

    name: str
    type: Any
    default: Any
    is_option: bool
    param: Param

    @property
    def key(self) -> str:
        """The name on the wire."""
        return self.param.key or self.name

    @property
    def is_list(self) -> bool:
        """Whether the parameter takes several values."""
        return any(get_origin(kind) is list for kind in (self.type, *get_args(self.type)))

    @property
    def is_enum(self) -> bool:
        """Whether the values are members of an enumeration."""
        return isinstance(self.type, type) and issubclass(self.type, Enum)

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words of a Literal or an enumeration; empty if any value is allowed."""
        for kind in (self.type, *get_args(self.type)):
            if get_origin(kind) is Literal:
                return tuple(word for word in get_args(kind) if word)
        return tuple(self.type) if self.is_enum else ()

    @property
    def is_needed(self) -> bool:
        """Whether the parameter is required."""
        return self.default is inspect.Parameter.empty


class Command(Struct, frozen=True):
    """A declared command. `path` is like "jobs/add"; `run` takes the group's instance first; `show`
    formats the result for the terminal. The command line waits `seconds` for the answer and exits
    with 1 if `has_failed` says so of the result. Without `has_line` the command exists only as an
    ACP method.
    """

    path: str
    run: Run
    show: Show
    seconds: float
    has_line: bool
    has_failed: HasFailed

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path.rpartition("/")[2]

    @property
    def help(self) -> str:
        """The help text: the coroutine's docstring."""
        return inspect.getdoc(self.run) or ""

    @property
    def summary(self) -> str:
        """The first sentence of the help text."""
        words = " ".join(self.help.partition("\n\n")[0].split())
        sentence, stop, _ = f"{words} ".partition(". ")
        return (sentence + stop).strip()

    def params(self) -> tuple[DeclaredParameter, ...]:
        """Return the parameters that clients may send, in order."""
        hints = get_type_hints(self.run, include_extras=True)
        _, *declared = inspect.signature(self.run).parameters.values()
        return tuple(
            _parameter_of(one, hints[one.name]) for one in declared if not _is_caller(hints, one)
        )

    def caller(self) -> str:
        """Return the name of the parameter of type Caller, "" if there is none."""
        hints = get_type_hints(self.run)
        return next((name for name, hint in hints.items() if hint is Caller), "")


class Slash(Struct, frozen=True):
    """A slash command, `/name`, typed in a chat. `run` takes the group's instance, the session and
    the text after the name, and returns the answer; `hint` describes that text. In sessions with
    other people the command is refused with the text `owners`; "" allows it there.
    """

    name: str
    description: str
    hint: str
    owners: str
    run: Callable[..., Awaitable[str]]


class Group:
    """The commands with one first word; "" for commands without one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._commands: list[Command] = []
        self._slashes: list[Slash] = []

    @property
    def commands(self) -> Sequence[Command]:
        """The commands in the order of their declaration."""
        return self._commands

    @property
    def slashes(self) -> Sequence[Slash]:
        """The slash commands in the order of their declaration."""
        return self._slashes

    def __getitem__(self, name: str) -> Command:
        """Return the command with that last word."""
        return next(command for command in self._commands if command.name == name)

    def command(
        self,
        show: Show,
        *,
        name: str = "",
        seconds: float = QUICK_SECONDS,
        line: bool = True,
        has_failed: HasFailed = lambda _: False,
    ) -> Callable[[R], R]:
        """Declare the decorated coroutine as a command, under its own name unless `name` is
        given.
        """

        def declare(run: R) -> R:
            last = name or run.__name__.strip("_").replace("_", "-")
            path = f"{self.name}/{last}" if self.name else last
            self._commands.append(Command(path, run, show, seconds, line, has_failed))
            return run

        return declare

    def slash(
        self, name: str, description: str, hint: str = "", *, owners: str = ""
    ) -> Callable[[R], R]:
        """Declare the decorated coroutine as the slash command `/name`."""

        def declare(run: R) -> R:
            self._slashes.append(Slash(name, description, hint, owners, run))
            return run

        return declare


def _is_caller(hints: dict[str, Any], one: inspect.Parameter) -> bool:
    return hints[one.name] is Caller


def _parameter_of(one: inspect.Parameter, hint: Any) -> DeclaredParameter:
    kind, notes = hint, []
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
    if get_origin(kind) is Sequence:  # on the wire it is a list
        kind = GenericAlias(list, get_args(kind))
    param = next((note for note in notes if isinstance(note, Param)), Param())
    return DeclaredParameter(
        one.name, kind, one.default, one.kind is inspect.Parameter.KEYWORD_ONLY, param
    )


def outcome_failed(result: dict[str, Any]) -> bool:
    """Return whether the outcome in a result is a failure."""
    return result.get("outcome") == "failed"


def require_argument(text: str, example: str) -> str:
    """Return the text after a slash command's name, stripped. Raises InvalidRequest if there is
    none.
    """
    if not text.strip():
        raise InvalidRequest("the command needs a text", cure=f"write it like: {example}")
    return text.strip()
