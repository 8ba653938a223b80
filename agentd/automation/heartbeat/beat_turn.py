"""The silent turns of a beat: their session, and what they thought and called."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.core.event import ThoughtChunk, ToolCallEnded, ToolCallStarted, TurnEvent
from agentd.core.message import JsonObject
from agentd.core.turn import SessionKey

HEARTBEAT = SessionKey("heartbeat:main")  # constant: no beat can make a session of its own


@dataclass(frozen=True, slots=True)
class CallSeen:
    """A call of a silent turn, with its answer."""

    name: str
    input: JsonObject
    text: str
    is_error: bool


class BeatSink:
    """Where the events of a beat go: nobody sees them; thoughts and calls are kept for who asked."""

    def __init__(self) -> None:
        self._thoughts: list[str] = []
        self._begun: dict[str, ToolCallStarted] = {}
        self._calls: list[CallSeen] = []

    @property
    def thoughts(self) -> str:
        """All that was thought."""
        return "".join(self._thoughts).strip()

    @property
    def calls(self) -> tuple[CallSeen, ...]:
        """All calls that were answered, in order."""
        return tuple(self._calls)

    def emit(self, event: TurnEvent) -> None:
        """Keep a thought or a call, drop the rest."""
        match event:
            case ThoughtChunk():
                self._thoughts.append(event.text)
            case ToolCallStarted():
                self._begun[event.call_id] = event
            case ToolCallEnded() if begun := self._begun.get(event.call_id):
                seen = CallSeen(begun.name, begun.input, event.text, event.is_error)
                self._calls.append(seen)
            case _:
                pass

    async def wait_room(self, session: SessionKey) -> None:
        """There is always room."""
