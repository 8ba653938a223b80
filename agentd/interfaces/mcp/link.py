"""A server that can be talked to, whatever carries the words, and why one cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.core.errors import ToolFailed
from agentd.core.form import FormAnswer

LOGIN_NEEDED = "login_needed"  # the kind that only the owner can do something about

Show = Callable[[str], None]
Fill = Callable[[str, Mapping[str, Any]], Awaitable[FormAnswer]]


@dataclass(frozen=True, slots=True)
class Said:
    """What a server says of itself; the tools as they came."""

    instructions: str
    tools: tuple[Mapping[str, Any], ...]
    has_resources: bool = False


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What came of a call."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ListedResource:
    """A resource that a server offers."""

    uri: str
    name: str


class Link(Protocol):
    """A session. `changed` is set when the server has other tools, `ended` when it is gone."""

    changed: asyncio.Event
    ended: asyncio.Event

    async def introduce(self) -> None:
        """Shake hands. Raises ServerFault."""

    async def said(self) -> Said:
        """What it says of itself. Raises ServerFault."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], show: Show, fill: Fill | None
    ) -> ServerAnswer:
        """What the tool answers; `show` is told how far it is, and `fill` asks the owner what the server
        wants to know meanwhile, its words and a schema. Without it that is declined. Raises ServerFault.
        """

    async def read(self, uri: str) -> ServerAnswer:
        """A resource. Raises ServerFault."""

    async def resources(self) -> tuple[ListedResource, ...]:
        """What there is to read, as far as a bounded list goes. Raises ServerFault."""


class Dial(Protocol):
    """How a server is reached."""

    def __call__(self) -> AbstractAsyncContextManager[Link]:
        """A session, for as long as the block runs. Raises ServerFault."""


class ServerFault(ToolFailed):
    """A server could not be used. `kind` is the exact reason, a word of the table in docs/mcp.md."""

    def __init__(self, kind: str, message: str, *, cure: str = "") -> None:
        super().__init__(message, cure=cure)
        self.kind = kind
