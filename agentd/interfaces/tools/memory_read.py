"""The tool `memory_read`: some lines of a workspace file or a transcript."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentd.core.errors import FileMissing, NotFound
from agentd.core.ports import Recall, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.workspace import FileView, Reader
from agentd.interfaces.tools.fence import in_backticks, lines_heading, places_output

_LINES = 200
_CHARS = 16_000
_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "from": {"type": "integer"},
        "lines": {"type": "integer"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


class MemoryRead:
    """The tool `memory_read`, or an alias of it under another name."""

    def __init__(self, recall: Recall, name: str = "memory_read") -> None:
        self._recall = recall
        text = "Read lines of a file (from: 1-based)."
        if name != "memory_read":
            text = "Same as memory_read."
        self.spec = ToolSpec(name, text, _SCHEMA, Effect.READ_ONLY, "read")

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the lines in backticks, with a notice if more follow. The output is tainted if the
        lines or the path came from outside.
        """
        path = str(call.input["path"])
        try:
            view = await self._recall.read(path, Reader(call.session, call.kind))
        except (FileMissing, NotFound):
            return ToolOutput(f"No such file: {path}", is_error=True)
        first = max(1, int(call.input.get("from", 1)))
        page = _page(view, first, max(1, int(call.input.get("lines", _LINES))))
        if page is None:
            return await places_output(self._recall, _nothing(view, first), [view.path])
        text = "\n".join(page.lines)
        outside = await self._recall.is_outside(view.path, first, page.last, text)
        return await places_output(self._recall, page.told, [view.path], outside=outside)


class _Page(Struct, frozen=True):
    """Whole lines of a file: `last` is the number of the last one, `told` the output's text."""

    lines: Sequence[str]
    last: int
    told: str


def _page(view: FileView, first: int, count: int) -> _Page | None:
    """Return at most `count` lines from `first` (1-based) that fit into `_CHARS`; None if there are
    none.
    """
    lines = _lines(view)
    if first > len(lines):
        return None
    shown: list[str] = []
    room = _CHARS
    for line in lines[first - 1 : first - 1 + count]:
        if shown and len(line) >= room:
            break
        shown.append(line if len(line) <= _CHARS else f"{line[:_CHARS]} [… {len(line)} characters]")
        room -= len(line) + 1
    last = first + len(shown) - 1
    more = f"\n[{len(lines) - last} more lines: from={last + 1}]" if last < len(lines) else ""
    text = "\n".join(shown)
    told = f"{lines_heading(view.path, first, last)}\n{in_backticks(text)}{more}"
    return _Page(lines[first - 1 : last], last, told)


def _nothing(view: FileView, first: int) -> str:
    count = len(_lines(view))
    if not count:
        return f"{view.path} is empty."
    return f"{view.path} has {count} lines; none from {first} on."


def _lines(view: FileView) -> list[str]:
    lines = view.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
