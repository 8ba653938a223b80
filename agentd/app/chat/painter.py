"""The Display for terminals with colours: markdown that grows in place, and one line for each tool
call.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size

from agentd.app.chat.markdown import Blocks, MarkdownBlock, Renderer
from agentd.app.chat.screen import changes, next_try, question_text
from agentd.app.chat.toolcalls import ShownCall
from agentd.core.ports import Clock
from agentd.interfaces.commands.plain import folded, visible

Size = Callable[[], tuple[int, int]]  # columns, rows

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_END_LINE = "\x1b[K"
_END_SCREEN = "\x1b[J"


class Canvas:
    """The last lines on a terminal, which may still change; lines above them are final. Its methods
    return what to write: few bytes, without clearing lines that stay. Afterwards the cursor is at
    the end of the last line.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._shown: list[str] = []

    def show(self, lines: Sequence[str]) -> str:
        """Replace the changing lines."""
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
        """Make the changing lines final."""
        written = "\n" if self._shown else ""
        self._shown = []
        return written

    def _rewritten(self, old: Sequence[str], lines: Sequence[str], same: int) -> str:
        _, rows = self._size()
        heights = [self._height(line) for line in old]
        if same == len(lines) > 0:
            same -= 1  # the cursor must end up behind a line that stays
        while sum(heights[same:]) > rows:  # lines that have left the screen cannot be changed
            same += 1
        up = sum(heights[same:]) - 1
        home = f"\r\x1b[{up}A" if up > 0 else "\r"
        changed = "\n".join(f"{line}{_END_LINE}" for line in lines[same:])
        is_less = len(lines) - same <= up
        return f"{home}{changed}{_END_SCREEN}" if is_less else home + changed

    def _height(self, line: str) -> int:
        """Return the rows that a line takes at the terminal's current width."""
        columns, _ = self._size()
        return max(1, -(-cell_len(_STYLE.sub("", line)) // max(1, columns)))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    for at, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return at
    return min(len(old), len(new))


_FRAME = 0.04  # seconds between two redraws
_TICK = 1.0
_PATIENCE = 1.0  # seconds without output before the waiting line is shown
_NARROWEST = 20
_GOES_ON = "  ⋮ "
_DIFF = {"@": "cyan", "+": "green", "-": "red"}


class Painter:
    """The Display for a terminal with colours. Finished blocks are written once; only the last
    lines change.
    """

    def __init__(self, size: Size, clock: Clock) -> None:
        self._size = size
        self._clock = clock
        self._canvas = Canvas(size)
        self._render = Renderer()
        self._blocks = Blocks()
        self._done: list[MarkdownBlock] = []
        self._calls: list[ShownCall] = []
        self._begun = False  # whether part of the answer is shown; its first block has no gap above
        self._waiting: float | None = None  # monotonic seconds since which nothing has arrived
        # Why the turn waits, and until which monotonic second.
        self._delay: tuple[str, float] | None = None
        self._reading = False
        self._next: asyncio.TimerHandle | None = None
        self._ticking: asyncio.TimerHandle | None = None

    def words(self, text: str) -> None:
        """Add text to the answer."""
        self._done += self._blocks.feed(visible(text))
        self._waiting = None
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(_FRAME, self._paint)

    def end_line(self) -> None:
        """Finish the open block of the answer."""
        self._done += self._blocks.finish()
        self._delay = None
        self._paint()
        self._begun = False

    def line(self, text: str) -> None:
        """Write lines above the changing ones."""
        self._above(folded(visible(text), self._width()))

    def aside(self, text: str) -> None:
        """Write a dimmed line that is not part of the answer."""
        self._above(self._styled(folded(f"· {text}", self._width()), "dim"))

    def alert(self, text: str) -> None:
        """Write a highlighted line."""
        self._above(self._styled(folded(f"! {text}", self._width()), "bold yellow"))

    def call_began(self, call: ShownCall) -> None:
        """Show a running tool call; its line changes until the call ends."""
        self.end_line()
        self._calls.append(call)
        self._waiting = None
        self._paint()

    def call_ended(self, call: ShownCall) -> None:
        """Write the final line of a tool call."""
        self._calls = [running for running in self._calls if running is not call]
        self._waiting = self._clock.monotonic()
        style = "red" if call.is_failed else "dim"
        self._above(self._render.styled(self._clipped(self._call(call)), style))

    def question(self, call: Mapping[str, Any]) -> None:
        """Show what the user is asked to allow, with the whole change."""
        self.end_line()
        lines = [self._styled(folded(question_text(call), self._width()), "bold")]
        for line in changes(call):
            style = "bold" if line.startswith(("+++", "---")) else _DIFF.get(line[:1], "none")
            lines.append(self._styled(self._hung(line), style))
        self._above("\n".join(lines))

    def delayed(self, why: str, seconds: float) -> None:
        """Show in the waiting line that the turn's next try comes in `seconds`."""
        now = self._clock.monotonic()
        self._delay = (visible(why), now + seconds)
        if self._waiting is None:
            self._waiting = now
        self._paint()

    def work(self, *, going_on: bool) -> None:
        """Note that a turn has begun, or ended."""
        self._waiting = self._clock.monotonic() if going_on else None
        if not going_on:
            self._calls.clear()
            self._stop_ticking()
            self.end_line()
        elif self._ticking is None:
            self._tick()

    def still(self, *, reading: bool) -> None:
        """Note that the keyboard is being read, or no longer: meanwhile only whole lines are
        written.
        """
        if reading:
            self._write(self._canvas.show([]))
        self._reading = reading
        self._paint()

    def _paint(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        width = self._width()
        written = []
        done, self._done = self._done, []
        for block in done:
            written += [self._canvas.show(self._visible_lines(block, width)), self._canvas.keep()]
            self._begun = True
        if not self._reading:
            written.append(self._canvas.show(self._changing(width)))
        self._write("".join(written))

    def _changing(self, width: int) -> list[str]:
        """Return the lines that are not final yet."""
        block = self._blocks.open()
        lines = self._visible_lines(block, width) if block else []
        lines += [self._render.dim(self._clipped(self._call(call))) for call in self._calls]
        if not lines and self._waiting is not None:
            told = folded(self._wait(self._waiting), width)
            return [self._render.dim(line) for line in told.split("\n") if line]
        return lines

    def _wait(self, since: float) -> str:
        """Return why and for how long nothing has arrived; "" during the first `_PATIENCE`
        seconds.
        """
        now = self._clock.monotonic()
        if self._delay is not None and (left := self._delay[1] - now) > 0:
            return f"⋯ {next_try(self._delay[0], left)} (Ctrl-C cancels)"
        return f"⋯ {now - since:.0f} s (Ctrl-C cancels)" if now - since >= _PATIENCE else ""

    def _visible_lines(self, block: MarkdownBlock, width: int) -> list[str]:
        lines = self._render.lines(block, width)
        return lines[1:] if block.gap and not self._begun else lines

    def _above(self, text: str) -> None:
        """Write final lines above the changing ones."""
        if self._done:
            self._paint()
        self._write(f"{self._canvas.show([])}{text}\n")
        self._paint()

    def _tick(self) -> None:
        self._ticking = asyncio.get_running_loop().call_later(_TICK, self._tick)
        if not self._reading and (self._calls or self._waiting is not None):
            self._paint()

    def _stop_ticking(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    def _call(self, call: ShownCall) -> str:
        return visible(call.line(self._clock.monotonic()))

    def _hung(self, line: str) -> str:
        """Wrap a line of a change without cutting it; continuation lines are marked, so that they
        do not pass for lines of the change.
        """
        parts = chop_cells(line, self._width() - len(_GOES_ON)) or [""]
        return "  " + f"\n{_GOES_ON}".join(parts)

    def _styled(self, text: str, style: str) -> str:
        lines = visible(text).split("\n")
        return "\n".join(self._render.styled(line, style) if line else "" for line in lines)

    def _clipped(self, line: str) -> str:
        width = self._width()
        short = set_cell_size(line, width).rstrip()
        return line if short == line.rstrip() else f"{set_cell_size(line, width - 1).rstrip()}…"

    def _width(self) -> int:
        return max(_NARROWEST, self._size()[0] - 1)  # the last column makes some terminals wrap

    def _write(self, text: str) -> None:
        if text:
            print(text, end="", flush=True)
