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

From that come `_agentd/jobs/add` (agentd/interfaces/acp/declared.py binds it to the parts of the daemon and checks
what clients send), and `agentd jobs add TEXT --at …` with its help (agentd/app/cli/declared.py, which never calls
the coroutine: it asks the daemon and shows the answer as `fields` words it). Parameters before the `*` are
arguments of the command line, those behind it options. Modules of this package import nothing heavy, since
each command line loads one.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from agentd.core.errors import InvalidRequest

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model

Run = Callable[..., Awaitable[Any]]
Show = Callable[[Any], str]
HasFailed = Callable[[Any], bool]
R = TypeVar("R", bound=Run)
NOTES = "your notes are not for this session"  # what is said where others are in it


class Caller(Protocol):
    """The client that asks. A command that has a parameter of this type is told who it is."""

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification for it. Never blocks, never raises."""

    async def wait_room(self) -> None:
        """Return when it has read most of what waits for it, or has left."""


@dataclass(frozen=True, slots=True)
class Param:
    """What is known of a parameter beside its type and default.

    `help` is for the command line; without it the parameter is one of the method alone. `flags` are the
    option's spellings where `--its-name` will not do, `key` its name on the wire where that is a word of
    the language. `least` and `most` bound numbers, each one of a list, and `length` how many a list or a text has;
    `below`, `above` and `up_to` are bounds that only the method checks. `usual` is what the command line asks for
    where nothing is given, if that is not the default of the method; None leaves it to the method.
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


@dataclass(frozen=True, slots=True)
class Given:
    """One parameter of a declared coroutine. `default` is `inspect.Parameter.empty` where it must be given."""

    name: str
    type: Any
    default: Any
    is_option: bool
    param: Param

    @property
    def key(self) -> str:
        """How it is called on the wire."""
        return self.param.key or self.name

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return any(get_origin(kind) is list for kind in (self.type, *get_args(self.type)))

    @property
    def is_enum(self) -> bool:
        """Whether it is one of an enumeration's words."""
        return isinstance(self.type, type) and issubclass(self.type, Enum)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that may be given; empty where it may be any."""
        for kind in (self.type, *get_args(self.type)):
            if get_origin(kind) is Literal:
                return tuple(word for word in get_args(kind) if word)
        return tuple(self.type) if self.is_enum else ()

    @property
    def is_needed(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `path` is "jobs/add"; `run` takes the group's instance first; `show` words its result
    for a person; a command line waits `seconds` for the answer, and ends with 1 where `has_failed` says that
    the result tells of a failure. One without a line is a method alone.
    """

    path: str
    run: Run
    show: Show
    seconds: float
    has_line: bool
    has_failed: HasFailed

    @property
    def name(self) -> str:
        """The last word of its path."""
        return self.path.rpartition("/")[2]

    @property
    def help(self) -> str:
        """What it does, for people."""
        return inspect.getdoc(self.run) or ""

    @property
    def summary(self) -> str:
        """The first sentence of that."""
        words = " ".join(self.help.partition("\n\n")[0].split())
        sentence, stop, _ = f"{words} ".partition(". ")
        return (sentence + stop).strip()

    def params(self) -> tuple[Given, ...]:
        """What clients may give, in order."""
        hints = get_type_hints(self.run, include_extras=True)
        _, *declared = inspect.signature(self.run).parameters.values()
        return tuple(
            _parameter_of(one, hints[one.name]) for one in declared if not _is_caller(hints, one)
        )

    def caller(self) -> str:
        """The name of the parameter that takes the client who asks; "" if it does not care."""
        hints = get_type_hints(self.run)
        return next((name for name, hint in hints.items() if hint is Caller), "")


@dataclass(frozen=True, slots=True)
class Slash:
    """A command that is typed instead of a message, `/name`. `run` takes the group's instance, the session
    and what follows the name, and returns what to tell; `hint` says what may follow. Where others are in
    the session it is refused with `owners`, unless that is empty.
    """

    name: str
    description: str
    hint: str
    owners: str
    run: Callable[..., Awaitable[str]]


class Group:
    """Commands under one name; "" for those that stand alone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._commands: list[Command] = []
        self._slashes: list[Slash] = []

    @property
    def commands(self) -> Sequence[Command]:
        """In the order of their declaration."""
        return self._commands

    @property
    def slashes(self) -> Sequence[Slash]:
        """In the order of their declaration."""
        return self._slashes

    def __getitem__(self, name: str) -> Command:
        """The command with that name."""
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
        """Declare the decorated coroutine as a command, under its own name unless another is given."""

        def declare(run: R) -> R:
            last = name or run.__name__.strip("_").replace("_", "-")
            path = f"{self.name}/{last}" if self.name else last
            self._commands.append(Command(path, run, show, seconds, line, has_failed))
            return run

        return declare

    def slash(
        self, name: str, description: str, hint: str = "", *, owners: str = ""
    ) -> Callable[[R], R]:
        """Declare the decorated coroutine as what `/name` does."""

        def declare(run: R) -> R:
            self._slashes.append(Slash(name, description, hint, owners, run))
            return run

        return declare


def _is_caller(hints: dict[str, Any], one: inspect.Parameter) -> bool:
    return hints[one.name] is Caller


def _parameter_of(one: inspect.Parameter, hint: Any) -> Given:
    kind, notes = hint, []
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
    if get_origin(kind) is Sequence:  # several of them come as a list
        kind = GenericAlias(list, get_args(kind))
    param = next((note for note in notes if isinstance(note, Param)), Param())
    return Given(one.name, kind, one.default, one.kind is inspect.Parameter.KEYWORD_ONLY, param)


def outcome_failed(result: dict[str, Any]) -> bool:
    """Whether a run that was asked for came to a failure."""
    return result.get("outcome") == "failed"


def require_argument(text: str, example: str) -> str:
    """What follows a command's name. Raises InvalidRequest for nothing."""
    if not text.strip():
        raise InvalidRequest("the command needs a text", cure=f"write it like: {example}")
    return text.strip()
