"""The chat's output port (Display), and its form in plain text, for terminals without colours or
cursor control.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from agentd.app.chat.toolcalls import ShownCall
from agentd.interfaces.commands.plain import revealed, visible

_MARK = "·"
_WORTH_A_LINE = 2.0  # seconds; a shorter delay is over before the line is read


class Display(Protocol):
    """Port: the output of a chat. Control characters in text from outside do not reach the
    terminal.
    """

    def words(self, text: str) -> None:
        """Add text to the answer."""

    def end_line(self) -> None:
        """Finish the current line or block of the answer."""

    def line(self, text: str) -> None:
        """Write lines that are not part of the answer."""

    def aside(self, text: str) -> None:
        """Write a remark of the chat itself."""

    def alert(self, text: str) -> None:
        """Write a line that must be noticed."""

    def call_began(self, call: ShownCall) -> None:
        """Show that a tool runs."""

    def call_ended(self, call: ShownCall) -> None:
        """Show that a tool has finished."""

    def question(self, call: Mapping[str, Any]) -> None:
        """Show what the user is asked to allow, with the whole change."""

    def delayed(self, why: str, seconds: float) -> None:
        """Show that the turn's next try comes in `seconds`."""

    def work(self, *, going_on: bool) -> None:
        """Note that a turn has begun, or ended."""

    def still(self, *, reading: bool) -> None:
        """Note that the keyboard is being read, or no longer: meanwhile only whole lines are
        written.
        """


class Screen:
    """The Display in plain text on standard output. A line never begins in the middle of
    another.
    """

    def __init__(self) -> None:
        self._inside_line = False

    def words(self, text: str) -> None:
        """Add text to the answer."""
        text = visible(text)
        if text:
            print(text, end="", flush=True)
            self._inside_line = not text.endswith("\n")

    def line(self, text: str) -> None:
        """Write lines that are not part of the answer."""
        self.end_line()
        print(visible(text), flush=True)

    def aside(self, text: str) -> None:
        """Write a remark of the chat itself."""
        self.line(f"{_MARK} {text}")

    def alert(self, text: str) -> None:
        """Write a line that must be noticed."""
        self.line(f"! {text}")

    def end_line(self) -> None:
        """Finish the current line."""
        if self._inside_line:
            print(flush=True)
            self._inside_line = False

    def call_began(self, call: ShownCall) -> None:
        """Write the title of the tool call."""
        self.aside(call.title)

    def call_ended(self, call: ShownCall) -> None:
        """Write a line if the tool call failed."""
        if call.is_failed:
            self.aside(f"failed: {call.first}")

    def question(self, call: Mapping[str, Any]) -> None:
        """Write what the user is asked to allow, with the whole change."""
        self.aside(question_text(call))
        for line in changes(call):
            self.line(f"    {line}")

    def delayed(self, why: str, seconds: float) -> None:
        """Write a line for a delay that is long enough to be read."""
        if seconds >= _WORTH_A_LINE:
            self.aside(next_try(why, seconds))

    def work(self, *, going_on: bool) -> None:
        """Do nothing: plain text has no changing lines."""

    def still(self, *, reading: bool) -> None:
        """Do nothing: plain text has no changing lines."""


def next_try(why: str, seconds: float) -> str:
    """Return why a turn waits (`why` is a sentence), and the seconds until the next try."""
    sentence = " ".join(why.split()).rstrip(".")
    left = max(1, math.ceil(round(seconds, 1)))
    return f"{sentence[:1].lower()}{sentence[1:]}; next try in {left} s"


def question_text(call: Mapping[str, Any]) -> str:
    """Return in words what the agent asks to do."""
    return f"the agent asks: {call.get('title') or 'may I go on?'}"


def changes(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield every changed line that the user has to judge, hidden characters spelled out."""
    for part in call.get("content") or []:
        if part.get("type") == "diff":
            yield from (revealed(line) for line in _diff(part))
        elif text := str((part.get("content") or {}).get("text") or ""):
            yield from (revealed(line) for line in text.split("\n"))


def _diff(part: Mapping[str, Any]) -> Iterator[str]:
    """Return a unified diff. Only newlines end a line, so that nothing hides behind another kind of
    line end.
    """
    path = str(part.get("path", ""))
    old = part.get("oldText")
    return difflib.unified_diff(
        str(old).split("\n") if old else [],
        str(part.get("newText") or "").split("\n"),
        fromfile=path if old is not None else "(new file)",
        tofile=path,
        lineterm="",
    )
