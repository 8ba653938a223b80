"""The progress of indexing, on one line of the terminal that is redrawn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentd.app.cli.ask import ask
from agentd.core.clock import SystemClock
from agentd.core.errors import AgentdError

_EVERY = 0.5  # seconds between calls of the daemon
_CELLS = 24  # width of the bar
_CLEAR = "\r\x1b[K"


class Meter:
    """Makes the progress line, with rate and time left, from the daemon's counts of pending
    work.
    """

    def __init__(self) -> None:
        self._phase = ""
        self._most = 0
        self._begun = 0.0

    def line(self, status: Mapping[str, Any], now: float) -> str:
        """Return the line for an answer of `memory status` received at `now`, in seconds of a
        monotonic clock; "" if nothing is pending.
        """
        left, vectors = int(status["pending"]), int(status.get("vectors_missing", 0))
        if not left:
            return ""
        phase = "vectors" if left == vectors else "notes and chats"
        if left > vectors:  # vectors are made at the same time: count only the rest
            left -= vectors
        if phase != self._phase or left > self._most:
            self._phase, self._most, self._begun = phase, left, now
        done, seconds = self._most - left, now - self._begun
        filled = _CELLS * done // self._most
        shown = f"{phase} [{'#' * filled}{'-' * (_CELLS - filled)}] {left:,} left"
        if not done or seconds <= 0:
            return shown
        rate = done / seconds
        return f"{shown}, {rate:,.0f}/s, {_duration(left / rate)} to go"


@contextmanager
def show_progress() -> Iterator[None]:
    """Draw the progress line while the body runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_draw, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_EVERY)
        print(_CLEAR, end="", file=sys.stderr, flush=True)


def _draw(ended: threading.Event) -> None:
    meter, clock = Meter(), SystemClock()
    while not ended.wait(_EVERY):
        try:
            line = meter.line(ask("memory/status"), clock.monotonic())
        except AgentdError:  # the command in the body reports the same error
            return
        if not ended.is_set():
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
