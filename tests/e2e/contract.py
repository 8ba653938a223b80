"""What a command or a method promises, as data, and the ways to ask for it."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import typer

from agentd.app.cli.app import app
from tests.e2e.forked import parent
from tests.e2e.shell import PATIENCE, Done, Shell

Json = dict[str, Any]
# A type; None; a frozenset of values; a pattern that a text matches; a tuple of shapes, one of
# which must fit; a list with the shape of its items; a dict with the shape of what stands under
# each key,
# more keys being allowed. "key?" may be absent; the key `str` stands for every key.
Shape = Any

_UNFIT = re.compile(r"\bnot (?:yet )?implemented\b|\bnot yet\b|Traceback|\x1b", re.IGNORECASE)


def misfits(value: Any, shape: Shape, place: str = "$") -> Iterator[str]:
    """What of the value does not have the shape, each named by its place."""
    match shape:
        case tuple():
            if all(any(misfits(value, one)) for one in shape):
                yield f"{place}: {value!r} fits none of {shape}"
        case dict():
            yield from _misfits_of_object(value, shape, place)
        case [inner]:
            if not isinstance(value, list):
                yield f"{place}: {value!r} is no list"
            else:
                for number, item in enumerate(value):
                    yield from misfits(item, inner, f"{place}[{number}]")
        case frozenset():
            if not isinstance(value, str) or value not in shape:
                yield f"{place}: {value!r} is none of {sorted(shape)}"
        case re.Pattern():
            if not isinstance(value, str) or not shape.fullmatch(value):
                yield f"{place}: {value!r} does not match {shape.pattern}"
        case None:
            if value is not None:
                yield f"{place}: {value!r} is not null"
        case _:
            if not _is_a(value, shape):
                yield f"{place}: {value!r} is no {shape.__name__}"


def _misfits_of_object(value: Any, shape: dict[Any, Shape], place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: {value!r} is no object"
        return
    for key, inner in shape.items():
        if key is str:
            for name, item in value.items():
                yield from misfits(item, inner, f"{place}.{name}")
        elif key.removesuffix("?") in value:
            yield from misfits(value[key.removesuffix("?")], inner, f"{place}.{key}")
        elif not key.endswith("?"):
            yield f"{place}.{key}: is missing"


def _is_a(value: Any, kind: type) -> bool:
    if kind is float:
        kind = int | float
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


@dataclass(frozen=True)
class Row:
    """One use of a command, and of the method of its name.

    `args` and `params` may hold "{it}": what `given` makes, anew for each use; of a dict that it
    makes, each by its name. `says` are words for people. `method` is "" where no method does the
    same; `answer` is its shape where that differs. `without` is the exit code where no daemon runs,
    None for those that would start one. `home` is where it is used: "shell", with the daemon of all
    rows, or "fleeting", where one comes and goes; "own" says that a test of its own does that.
    """

    command: str
    args: tuple[str, ...] = ()
    shape: Shape = None
    says: str = ""
    method: str = ""
    params: Json = field(default_factory=dict)
    answer: Shape = None
    given: Callable[[World], Any] | None = None
    typed: str = ""
    lines: bool = False
    code: int = 0
    without: int | None = 69
    home: str = "shell"
    apart: bool = False  # whether its uses must come one after the other
    notes: bool = False  # whether it says something on stderr though all is well

    @property
    def name(self) -> str:
        return " ".join((self.command, *self.args))[:60]

    def argv(self, it: Any) -> tuple[str, ...]:
        """The command line."""
        return (*self.command.split(), *(_put_in(arg, it) for arg in self.args))

    def used(self, world: World) -> tuple[str, ...]:
        """The command line for one use."""
        return self.argv(self.given(world) if self.given else None)


class Wire:
    """A plain client of the socket: a line out, a line in. Notifications are passed over."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._ids = itertools.count(1)

    def greet(self) -> None:
        """Say hello, as a client that wants to be told what is no part of the protocol."""
        asks = {"clientCapabilities": {"_meta": {"agentd/notify": True}}}
        self.call("initialize", {"protocolVersion": 1, **asks})

    def write(self, line: bytes) -> None:
        self._socket.sendall(line + b"\n")

    def start(self, method: str, params: Any = None) -> int:
        """Send a call; its id."""
        number = next(self._ids)
        call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.write(json.dumps(call).encode())
        return number

    def heard(self, wanted: Callable[[Json], bool]) -> Json:
        """The next frame that is wanted."""
        while line := self._lines.readline():
            frame: Json = json.loads(line)
            if wanted(frame):
                return frame
        raise AssertionError("the daemon hung up")

    def answer(self, number: int | None) -> Json:
        """The frame that answers the call; None: a line that could not be read."""
        return self.heard(lambda frame: "method" not in frame and frame["id"] == number)

    def call(self, method: str, params: Any = None) -> Any:
        """The result of a call that must succeed."""
        frame = self.answer(self.start(method, params))
        assert "error" not in frame, frame
        return frame["result"]

    def error(self, method: str, params: Any = None) -> Json:
        """The error of a call that must fail."""
        frame = self.answer(self.start(method, params))
        assert "error" in frame, frame
        error: Json = frame["error"]
        return error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()


@dataclass
class World:
    """A home with a daemon and a connection to it, one without, and one where it comes and goes."""

    shell: Shell
    quiet: Shell
    fleeting: Shell
    wire: Wire
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


@cache
def commands() -> Mapping[str, Any]:
    """Everything that `--help` lists, groups too, by its words."""

    def below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, f"{path} {name}".strip())

    return dict(below(typer.main.get_command(app), ""))


def leaves() -> set[str]:
    """The commands that do something."""
    return {
        name
        for name, command in commands().items()
        if name and (not hasattr(command, "commands") or command.invoke_without_command)
    }


def plain(done: Done) -> Done:
    """The same, if nothing in it is unfit for anybody's eyes."""
    assert not _UNFIT.search(done.out + done.err), done
    return done


def on_terminal(shell: Shell, *argv: str, typed: str = "") -> Done:
    """What a command shows on a terminal whose owner wants no colours. Its input is no terminal."""
    screen, line = pty.openpty()
    with tempfile.TemporaryFile() as keys, tempfile.TemporaryFile() as beside:
        keys.write(typed.encode())
        keys.seek(0)
        process = parent().start(
            argv,
            (keys.fileno(), line, beside.fileno()),
            environ={**shell.environ(), "NO_COLOR": "1", "TERM": "xterm-256color"},
            folder=shell.root,
        )
        os.close(line)
        try:
            shown = _all_of(screen)
            code = process.ended(PATIENCE)
        finally:
            process.kill()
        beside.seek(0)
        return Done(code, shown.replace("\r\n", "\n"), beside.read().decode())


def _all_of(screen: int) -> str:
    data = b""
    try:
        while part := os.read(screen, 65536):
            data += part
    except OSError:
        pass  # how a terminal says that nobody writes to it any more
    finally:
        os.close(screen)
    return data.decode()


def filled(params: Any, it: Any) -> Any:
    """The params with what was made in the place of "{it}"."""
    if params == "{it}":
        return it
    if isinstance(params, dict):
        return {key: filled(value, it) for key, value in params.items()}
    if isinstance(params, list):
        return [filled(value, it) for value in params]
    return _put_in(params, it) if isinstance(params, str) else params


def _put_in(text: str, it: Any) -> str:
    for name, made in (it if isinstance(it, dict) else {"it": it}).items():
        text = text.replace(f"{{{name}}}", str(made))
    return text
