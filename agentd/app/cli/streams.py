"""What a command shares with its caller: its standard streams, and the end by Ctrl-C.

Imports little: until this is loaded, Ctrl-C ends the interpreter with a traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from types import FrameType
from typing import Any, TextIO, cast

STATUS = 130  # what shells say of a program that Ctrl-C ended


def end_at_once() -> None:
    """From now on Ctrl-C ends the process on the spot: for code that has nothing to tidy up, such as
    imports. Where the caller had it ignored, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def unwind() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, so that a command can tidy up; the caller ends with
    `leave` for it.
    """
    if signal.getsignal(signal.SIGINT) is _end:
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave() -> None:
    """End now. What the interruption left half made, such as an event loop, would complain while the
    interpreter takes itself apart.
    """
    os._exit(STATUS)


def _end(_signal: int, _frame: FrameType | None) -> None:
    leave()


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    """An interruption that came where none can be raised is not lost."""
    if issubclass(told.exc_type, KeyboardInterrupt):
        leave()
    sys.__unraisablehook__(told)


def make_sound() -> None:
    """Let standard input, output and error exist. A closed input is an empty one, and what is written to
    a closed output fails like what is written to a full disk.
    """
    for descriptor, way in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: else the next file that is opened would be taken for the stream
            os.open(os.devnull, way)  # the lowest free one, which is this
    sys.stdin = sys.stdin or _open(0, "r")
    sys.stdout = sys.stdout or _open(1, "w")
    sys.stderr = sys.stderr or _open(2, "w")


class Outputs:
    """Standard output and error of a command, from here to the end of the process. Characters that their
    encoding does not have are written as escapes, and an error stream that cannot be written swallows
    all: there is nobody to tell.
    """

    def __init__(self) -> None:
        self._out = _Output(1, "w", closefd=False)
        sys.stdout = _like(sys.stdout, self._out)
        sys.stderr = _like(sys.stderr, _Errors(2, "w", closefd=False))

    def fault(self) -> OSError | None:
        """Why what was printed could not be written, None when all was."""
        try:
            sys.stdout.flush()
        except OSError:  # the end of the process would complain of it once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return self._out.fault


class _Output(FileIO):
    """A file that remembers why it could not be written; its buffer forgets."""

    fault: OSError | None = None

    def write(self, data: Any, /) -> int:
        """As a file does."""
        try:
            return super().write(data)
        except OSError as error:
            self.fault = error
            raise


class _Errors(FileIO):
    """A file that takes all, written or not."""

    def write(self, data: Any, /) -> int:
        """As a file does, but never fails."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _open(descriptor: int, mode: str) -> TextIO:
    return cast(TextIO, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def _like(stream: TextIO, raw: FileIO) -> TextIO:
    """A stream over `raw` that writes as `stream` does."""
    stream.flush()
    return TextIOWrapper(
        BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=bool(stream.line_buffering),
        write_through=getattr(stream, "write_through", False),
    )
