"""The tool `look`: a beat's model asks that an entry of HEARTBEAT.md get a turn of its own, with
tools of servers and the web.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

from agentd.core.checklist import LOOK, parse
from agentd.core.errors import ToolFailed, WorkspaceError
from agentd.core.ports import Tool, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import Origin, TurnRequest
from agentd.core.workspace import FileView
from agentd.interfaces.tools.fence import in_backticks, printable

_NAMED = 400  # characters of the list of tool names
_UTC = ZoneInfo("UTC")  # any zone: entries are looked up by their words


class LookTool:
    """Confirms that an entry will get a turn of its own. The beat, which sees the calls of its
    turn, starts that turn afterwards.
    """

    def __init__(self, read: Callable[[], Awaitable[FileView]], names: str) -> None:
        self._read = read
        self.spec = ToolSpec(
            LOOK,
            "Have an entry of the checklist looked at with the tools that only it may call then: "
            f"{names}. Do not answer such an entry here.",
            {
                "type": "object",
                "properties": {"entry": {"type": "string", "description": "its words"}},
                "required": ["entry"],
                "additionalProperties": False,
            },
            Effect.READ_ONLY,
            # Harmless even if outside text caused the call: the entry gets no tool beyond its own.
            is_guarded=True,
        )

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the confirmation. Raises ToolFailed unless the words are those of exactly one
        entry.
        """
        try:
            file = await self._read()
        except WorkspaceError as error:
            raise ToolFailed(error.message, cure=error.cure) from error
        checklist = parse(file.text, _UTC)
        words = printable(str(call.input["entry"]))
        if checklist.find(words) is None:
            entries = "\n".join(entry.text for entry in checklist.entries)
            raise ToolFailed(
                f"{words[:100]!r} is not in one entry of HEARTBEAT.md alone",
                cure=f"Name one of these by its words:\n{in_backticks(entries)}",
            )
        return ToolOutput("It is looked at after this, alone. Leave it out of your reply.")


class LookSource:
    """The tool source of `look`, for the beats whose request names that tool."""

    def __init__(
        self, read: Callable[[], Awaitable[FileView]], others: Callable[[], tuple[str, ...]]
    ) -> None:
        """`read` returns HEARTBEAT.md; `others` returns the names of the tools that an entry's turn
        may call.
        """
        self._read = read
        self._others = others

    def specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the spec of `look`, if the request names it."""
        return (self._tool().spec,) if _is_named(request) else ()

    def find(self, call: ToolCall, request: TurnRequest) -> tuple[Tool, ToolCall] | None:
        """Return the tool if the call names it, None otherwise. Raises ToolFailed for an input that
        does not fit.
        """
        if call.name != LOOK or not _is_named(request):
            return None
        if set(call.input) != {"entry"} or not isinstance(call.input["entry"], str):
            raise ToolFailed(f"the input does not fit {LOOK}", cure="it is {entry}, its words")
        return self._tool(), call

    def _tool(self) -> LookTool:
        return LookTool(self._read, ", ".join(self._others())[:_NAMED])


def _is_named(request: TurnRequest) -> bool:
    return (
        request.origin is Origin.HEARTBEAT and request.tools is not None and LOOK in request.tools
    )
