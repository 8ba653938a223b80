"""What Ctrl-C does to a command: it ends it silently, at whatever it is.

Imports little: until it is loaded, Ctrl-C ends the interpreter with a traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

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
