"""The tool `memory_read`: some lines of a workspace file or a transcript."""

from __future__ import annotations

from agentd.domain.prompt import Effect, ToolSpec
from agentd.domain.tool import Intent, ToolCall, ToolOutput
from agentd.domain.workspace import FileView, Reader
from agentd.errors import FileMissing, NotFound, ToolFailed
from agentd.ports import Gate, Recall
from agentd.tools.fence import fenced, located
from agentd.tools.origin import is_foreign

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
    """Reads, under the name `memory_read` or the alias it is given."""

    def __init__(self, recall: Recall, name: str = "memory_read") -> None:
        self._recall = recall
        text = "Read lines of a file (from: 1-based)."
        if name != "memory_read":
            text = "Same as memory_read."
        self.spec = ToolSpec(name, text, _SCHEMA, Effect.READ_ONLY, "read")

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """The lines asked for, fenced, with a notice where more follow."""
        path = str(call.input["path"])
        try:
            view = await self._recall.read(path, Reader(call.session, call.kind))
        except (FileMissing, NotFound):
            return ToolOutput(f"No such file: {path}", is_error=True)
        first = max(1, int(call.input.get("from", 1)))
        return _page(view, first, max(1, int(call.input.get("lines", _LINES))))

    async def settle(self, intent: Intent) -> ToolOutput:
        """Never asked for: reading has no effect."""
        raise ToolFailed("a read was cut by a restart", cure="Read again.")


def _page(view: FileView, first: int, count: int) -> ToolOutput:
    lines = view.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return ToolOutput(f"{view.path} is empty.")
    if first > len(lines):
        return ToolOutput(f"{view.path} has {len(lines)} lines; none from {first} on.")
    shown: list[str] = []
    room = _CHARS
    for line in lines[first - 1 : first - 1 + count]:
        if shown and len(line) >= room:
            break
        shown.append(line if len(line) <= _CHARS else f"{line[:_CHARS]} [… {len(line)} characters]")
        room -= len(line) + 1
    last = first + len(shown) - 1
    text = "\n".join(shown)
    # Judged by the whole lines: a mark stands at the end, which a cut may hide.
    foreign = is_foreign(view.path, "\n".join(lines[first - 1 : last]))
    more = f"\n[{len(lines) - last} more lines: from={last + 1}]" if last < len(lines) else ""
    return ToolOutput(f"{located(view.path, first, last)}\n{fenced(text)}{more}", tainted=foreign)
