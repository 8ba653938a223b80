"""The tool `memory_tree`: lists files of the workspace."""

from __future__ import annotations

from agentd.core.ports import NoteReader, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.workspace import Reader
from agentd.interfaces.tools.fence import in_backticks, places_output

_MOST = 400
_SPEC = ToolSpec(
    "memory_tree",
    "List memory files.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "depth": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        "additionalProperties": False,
    },
    Effect.READ_ONLY,
    "read",
)


class MemoryTree:
    """Lists what this kind of session may see."""

    spec = _SPEC

    def __init__(self, workspace: NoteReader) -> None:
        self._workspace = workspace

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return one entry a line, directories with a slash, files with their size in bytes."""
        path = str(call.input.get("path", "")).strip()
        depth = int(call.input.get("depth", 1))
        reader = Reader(call.session, call.kind)
        entries = await self._workspace.tree("" if path in {".", "/"} else path, depth, reader)
        if not entries:
            return ToolOutput(f"Nothing is below {path or 'the workspace'}.")
        lines = [e.path if e.is_dir else f"{e.path} ({e.size} bytes)" for e in entries[:_MOST]]
        more = f"\n[{len(entries) - _MOST} more entries]" if len(entries) > _MOST else ""
        text = in_backticks("\n".join(lines)) + more
        return await places_output(self._workspace, text, [entry.path for entry in entries[:_MOST]])
