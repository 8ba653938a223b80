"""What clients ask in the words of the Agent Client Protocol, once it has been checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentd.domain.outside import typed
from agentd.domain.spans import Spans


@dataclass(frozen=True, slots=True)
class SessionCall:
    """`session/new|load|resume|fork`. `session_id` is "" for a new one; `mcp_servers` counts those offered."""

    session_id: str
    cwd: str
    mcp_servers: int
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptionCall:
    """`session/set_mode|set_config_option`; a mode is the value of the option `mode`."""

    session_id: str
    option: str
    value: str


@dataclass(frozen=True, slots=True)
class ListCall:
    """`session/list`."""

    cwd: str
    cursor: str


@dataclass(frozen=True, slots=True)
class PromptCall:
    """`session/prompt`, its words as one text, its images as they are. `quoted` are the spans of the text
    that the user did not write: resources, links, and what he pasted.
    """

    session_id: str
    text: str
    meta: dict[str, Any] = field(default_factory=dict)
    images: tuple[bytes, ...] = ()
    quoted: Spans = ()

    @property
    def typed(self) -> str:
        """The words that the user wrote himself, without anything that came with them."""
        return typed(self.text, self.quoted, filling="")
