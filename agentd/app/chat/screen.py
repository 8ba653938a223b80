"""What a chat shows, in words alone: for terminals without colours or without a cursor to move."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from agentd.app.chat.toolcalls import ShownCall
from agentd.interfaces.commands.plain import revealed, visible

_MARK = "·"
_WORTH_A_LINE = 2.0  # seconds; a shorter delay is over before it has been read


class Display(Protocol):
    """Where a chat appears. Words of others reach the terminal only without what steers it."""

    def words(self, text: str) -> None:
        """Go on with the answer."""

    def end_line(self) -> None:
        """Finish what has begun of the answer."""

    def line(self, text: str) -> None:
        """Lines of their own."""

    def aside(self, text: str) -> None:
        """A line that is not part of the answer."""

    def alert(self, text: str) -> None:
        """A line that must be seen."""

    def call_began(self, call: ShownCall) -> None:
        """A tool runs."""

    def call_ended(self, call: ShownCall) -> None:
        """A tool has answered."""

    def question(self, call: Mapping[str, Any]) -> None:
        """What the user is asked to allow, with every change in full view."""

    def delayed(self, why: str, seconds: float) -> None:
        """The turn's next try comes in so many seconds."""

    def work(self, *, going_on: bool) -> None:
        """A turn has begun, or ended."""

    def still(self, *, reading: bool) -> None:
        """The keyboard is read from now on, or no longer: meanwhile only whole lines appear."""


class Screen:
    """Writes to standard output and never lets a line begin in the middle of another."""

    def __init__(self) -> None:
        self._inside_line = False

    def words(self, text: str) -> None:
        """Go on with the answer."""
        text = visible(text)
        if text:
            print(text, end="", flush=True)
            self._inside_line = not text.endswith("\n")

    def line(self, text: str) -> None:
        """Lines of their own."""
        self.end_line()
        print(visible(text), flush=True)

    def aside(self, text: str) -> None:
        """A line that is not part of the answer."""
        self.line(f"{_MARK} {text}")

    def alert(self, text: str) -> None:
        """A line that must be seen."""
        self.line(f"! {text}")

    def end_line(self) -> None:
        """Finish a line that has begun."""
        if self._inside_line:
            print(flush=True)
            self._inside_line = False

    def call_began(self, call: ShownCall) -> None:
        """A tool runs."""
        self.aside(call.title)

    def call_ended(self, call: ShownCall) -> None:
        """A tool has answered: worth a line if it failed."""
        if call.is_failed:
            self.aside(f"failed: {call.first}")

    def question(self, call: Mapping[str, Any]) -> None:
        """What the user is asked to allow, with every change in full view."""
        self.aside(question_text(call))
        for line in changes(call):
            self.line(f"    {line}")

    def delayed(self, why: str, seconds: float) -> None:
        """Nothing moves here: a line, where the wait is worth one."""
        if seconds >= _WORTH_A_LINE:
            self.aside(next_try(why, seconds))

    def work(self, *, going_on: bool) -> None:
        """Nothing moves here."""

    def still(self, *, reading: bool) -> None:
        """Nothing moves here."""


def next_try(why: str, seconds: float) -> str:
    """Why a turn waits (a sentence), and for how long still."""
    sentence = " ".join(why.split()).rstrip(".")
    left = max(1, math.ceil(round(seconds, 1)))
    return f"{sentence[:1].lower()}{sentence[1:]}; next try in {left} s"


def question_text(call: Mapping[str, Any]) -> str:
    """What the agent wants to do."""
    return f"the agent asks: {call.get('title') or 'may I go on?'}"


def changes(call: Mapping[str, Any]) -> Iterator[str]:
    """Every changed line of what the user is to judge, with nothing hidden."""
    for part in call.get("content") or []:
        if part.get("type") == "diff":
            yield from (revealed(line) for line in _diff(part))
        elif text := str((part.get("content") or {}).get("text") or ""):
            yield from (revealed(line) for line in text.split("\n"))


def _diff(part: Mapping[str, Any]) -> Iterator[str]:
    """A unified diff. Only real line ends count, so that nothing hides behind another kind."""
    path = str(part.get("path", ""))
    old = part.get("oldText")
    return difflib.unified_diff(
        str(old).split("\n") if old else [],
        str(part.get("newText") or "").split("\n"),
        fromfile=path if old is not None else "(new file)",
        tofile=path,
        lineterm="",
    )
