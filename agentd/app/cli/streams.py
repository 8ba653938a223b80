"""The standard streams of a command, and how Ctrl-C ends it.

This module imports little: Ctrl-C prints a traceback until the module is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from types import FrameType
from typing import Any, TextIO, cast

STATUS = 130  # exit status that shells report for a program ended by Ctrl-C


def end_at_once() -> None:
    """Make Ctrl-C end the process at once, for code that has nothing to clean up, such as imports.
    SIGINT stays ignored if the process was started with SIGINT ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def unwind() -> None:
    """Undo `end_at_once`: make Ctrl-C raise KeyboardInterrupt, so that a command can clean up. Who
    catches it has to call `leave`.
    """
    if signal.getsignal(signal.SIGINT) is _end:
        sys.unraisablehook = _unraisable
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave() -> None:
    """End the process without the interpreter's shutdown, during which objects that Ctrl-C left
    half made, such as an event loop, would print warnings.
    """
    os._exit(STATUS)


def _end(_signal: int, _frame: FrameType | None) -> None:
    leave()


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    """End the process also for a KeyboardInterrupt that cannot propagate, as in a finalizer."""
    if issubclass(told.exc_type, KeyboardInterrupt):
        leave()
    sys.__unraisablehook__(told)


def make_sound() -> None:
    """Open the standard streams that the caller has closed. A closed input reads as empty; writing
    to a closed output fails, as to a full disk; a closed error stream discards what is written.
    """
    for descriptor, way in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: the next file that is opened would get its number
            os.open(os.devnull, way)  # gets the lowest free number, which is this one
    sys.stdin = sys.stdin or _open(0, "r")
    sys.stdout = sys.stdout or _open(1, "w")
    sys.stderr = sys.stderr or _open(2, "w")


class Outputs:
    """Replaces standard output and error until the process ends. Characters that their encoding
    lacks are written as escapes. Failures to write standard error are ignored: there is no place to
    report them.
    """

    def __init__(self) -> None:
        self._out = _Output(1, "w", closefd=False)
        sys.stdout = _like(sys.stdout, self._out)
        sys.stderr = _like(sys.stderr, _Errors(2, "w", closefd=False))

    def fault(self) -> OSError | None:
        """Flush standard output; return the last error of writing it, None if all was written."""
        try:
            sys.stdout.flush()
        except OSError:  # else the flush at the end of the process reports it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return self._out.fault


class _Output(FileIO):
    """A raw file that keeps the last error of a write; the buffer over it does not."""

    fault: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write as FileIO does; keep an OSError in `fault`."""
        try:
            return super().write(data)
        except OSError as error:
            self.fault = error
            raise


class _Errors(FileIO):
    """A raw file that ignores failures to write."""

    def write(self, data: Any, /) -> int:
        """Write as FileIO does, but report a failed write as complete."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _open(descriptor: int, mode: str) -> TextIO:
    return cast(TextIO, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def _like(stream: TextIO, raw: FileIO) -> TextIO:
    """Return a text stream over `raw` with the encoding and buffering of `stream`."""
    stream.flush()
    return TextIOWrapper(
        BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=bool(stream.line_buffering),
        write_through=getattr(stream, "write_through", False),
    )
