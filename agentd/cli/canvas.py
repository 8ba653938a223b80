"""The last lines on a terminal, which may still change; what is above them is final."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.cells import cell_len

Size = Callable[[], tuple[int, int]]  # columns, rows

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_END_LINE = "\x1b[K"
_END_SCREEN = "\x1b[J"


class Canvas:
    """Changes lines in place, with few bytes and without clearing what stays. Returns what is to be
    written; the cursor then stands behind the last line.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> str:
        """Make the changing lines be these."""
        old, self._shown = self._shown, list(lines)
        if not old:
            return "\n".join(lines)
        same = _common(old, lines)
        if same == len(old):
            return "".join(f"\n{line}" for line in lines[same:])
        grows = same == len(old) - 1 and same < len(lines) and lines[same].startswith(old[same])
        if grows and self._height(old[same]) == 1:
            added = lines[same][len(old[same]) :]
            return added + "".join(f"\n{line}" for line in lines[same + 1 :])
        return self._rewritten(old, lines, same)

    def keep(self) -> str:
        """Make the lines final."""
        written = "\n" if self._shown else ""
        self._shown = []
        return written

    def _rewritten(self, old: Sequence[str], lines: Sequence[str], same: int) -> str:
        _, rows = self._size()
        heights = [self._height(line) for line in old]
        if same == len(lines) > 0:
            same -= 1  # the cursor must come to stand behind a line that stays
        while sum(heights[same:]) > rows:  # what has left the screen cannot be changed any more
            same += 1
        up = sum(heights[same:]) - 1
        home = f"\r\x1b[{up}A" if up > 0 else "\r"
        changed = "\n".join(f"{line}{_END_LINE}" for line in lines[same:])
        is_less = len(lines) - same <= up
        return f"{home}{changed}{_END_SCREEN}" if is_less else home + changed

    def _height(self, line: str) -> int:
        """Rows that a line takes, also after the terminal has become narrower."""
        columns, _ = self._size()
        return max(1, -(-cell_len(_STYLE.sub("", line)) // max(1, columns)))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    for at, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return at
    return min(len(old), len(new))
