"""What a chat shows: streamed words, and whole lines between them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from agentd.cli.plain import revealed, visible

_MARK = "·"


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
        """A line of its own."""
        self.end_line()
        print(visible(text), flush=True)

    def aside(self, text: str) -> None:
        """A line that is not part of the answer."""
        self.line(f"{_MARK} {text}")

    def end_line(self) -> None:
        """Finish a line that has begun."""
        if self._inside_line:
            print(flush=True)
            self._inside_line = False

    def question(self, call: Mapping[str, Any]) -> None:
        """What the user is asked to allow, with every change in full view."""
        self.aside(f"the agent asks: {call.get('title') or 'may I go on?'}")
        for part in call.get("content") or []:
            if part.get("type") == "diff":
                for line in _diff(part):
                    self.line(f"    {revealed(line)}")


def _diff(part: Mapping[str, Any]) -> Iterator[str]:
    """Every changed line. Only real line ends count, so that nothing hides behind another kind."""
    path = str(part.get("path", ""))
    old = part.get("oldText")
    return difflib.unified_diff(
        str(old).split("\n") if old else [],
        str(part.get("newText") or "").split("\n"),
        fromfile=path if old is not None else "(new file)",
        tofile=path,
        lineterm="",
    )
