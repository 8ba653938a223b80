"""Reading and writing the text files of commands: read whole or from standard input, written whole
or not at all.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from agentd.core.errors import GraphError, InvalidRequest
from agentd.core.paths import write_private

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write it to this file.", dir_okay=False)
]


def read_bytes(file: Path, most: int, cure: str) -> bytes:
    """Return the bytes of a file; `-` is standard input. Raises InvalidRequest for a file that
    cannot be read, and, with `cure`, for one of more than `most` bytes.
    """
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(most + 1)
        else:
            with file.open("rb") as stream:
                data = stream.read(most + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: {error.strerror}", cure="name a readable file") from None
    if len(data) > most:
        raise InvalidRequest(f"{file}: has more than {most} bytes", cure=cure)
    return data


def read_stdin() -> str:
    """Return all of standard input, decoded as UTF-8 whatever the locale. Raises InvalidRequest if
    it is not UTF-8.
    """
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"standard input: byte {error.start + 1} is no UTF-8", cure="give it text in UTF-8"
        ) from None


def check_writable(file: Path) -> None:
    """Raise InvalidRequest if `write_text` would fail; for use before work that cannot be
    undone.
    """
    target = _target(file)
    if target.is_dir() or not os.access(target.parent, os.W_OK | os.X_OK):
        raise InvalidRequest(
            f"{file}: no file can be written there", cure="name a file that can be written"
        )


def write_text(file: Path, text: str) -> int:
    """Replace the content of a file by the text, with mode 0600; return the number of bytes. If the
    path is a symbolic link, the file it leads to is written. On failure the old content stays.
    Raises InvalidRequest, also if the path is something other than a regular file.
    """
    data = text.encode()
    target = _target(file)
    try:
        write_private(target, data, part=f".{target.name}.{os.getpid()}.part")
    except OSError as error:
        raise InvalidRequest(
            f"{file}: {error.strerror}", cure="name a file that can be written"
        ) from None
    return len(data)


def _target(file: Path) -> Path:
    """Return the path with links resolved. Raises InvalidRequest for a pipe, a device and the
    like.
    """
    target = Path(os.path.realpath(file))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise InvalidRequest(
            f"{file}: {error.strerror}", cure="name a file that can be written"
        ) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InvalidRequest(f"{file}: is no regular file", cure="name a file, or leave -o out")
    return target


@contextmanager
def naming_file(file: Path) -> Iterator[None]:
    """Put the file, as FILE:line:column where the place is known, before the message of a
    GraphError of the body.
    """
    try:
        yield
    except GraphError as error:
        text = error.message.partition(": ")[2] if error.line else error.message
        place = f"{file}:{error.line}:{error.column}" if error.line else str(file)
        raise type(error)(f"{place}: {text}", cure=error.cure) from error
