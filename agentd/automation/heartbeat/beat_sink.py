"""The session and the event sink of a beat's silent turns."""

from __future__ import annotations

from msgspec import Struct

from agentd.core.event import ThoughtChunk, ToolCallEnded, ToolCallStarted, TurnEvent
from agentd.core.message import JsonObject
from agentd.core.turn import SessionKey

HEARTBEAT = SessionKey("heartbeat:main")  # constant, so that beats create no other sessions


class SilentCall(Struct, frozen=True):
    """A tool call of a silent turn, with its result."""

    name: str
    input: JsonObject
    text: str
    is_error: bool


class BeatSink:
    """The event sink of a beat: shows nothing to anybody, and collects thoughts and tool calls."""

    def __init__(self) -> None:
        self._thoughts: list[str] = []
        self._begun: dict[str, ToolCallStarted] = {}
        self._calls: list[SilentCall] = []

    @property
    def thoughts(self) -> str:
        """The model's whole reasoning."""
        return "".join(self._thoughts).strip()

    @property
    def calls(self) -> tuple[SilentCall, ...]:
        """All calls that have a result, in order."""
        return tuple(self._calls)

    def emit(self, event: TurnEvent) -> None:
        """Collect a thought or a call; drop all other events."""
        match event:
            case ThoughtChunk():
                self._thoughts.append(event.text)
            case ToolCallStarted():
                self._begun[event.call_id] = event
            case ToolCallEnded() if begun := self._begun.get(event.call_id):
                seen = SilentCall(begun.name, begun.input, event.text, event.is_error)
                self._calls.append(seen)
            case _:
                pass

    async def wait_room(self, session: SessionKey) -> None:
        """Return at once: there is always room."""
