"""What the offline provider may do next: say something, or call one tool."""

from __future__ import annotations

from dataclasses import dataclass

from agentd.domain.message import JsonObject


@dataclass(frozen=True, slots=True)
class Say:
    """The last words of the turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool is to run; its result stands in the next prompt."""

    tool: str
    input: JsonObject


Reply = Say | Call
