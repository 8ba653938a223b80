"""The port to an MCP server: a session (Link), how to open one (SessionOpener), and the fault that
is raised when that fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from agentd.core.errors import ToolFailed
from agentd.core.form import FormAnswer

LOGIN_NEEDED = "login_needed"  # the kind of fault that only a login by the owner cures

Show = Callable[[str], None]
Fill = Callable[[str, Mapping[str, Any]], Awaitable[FormAnswer]]


class ServerDescription(Struct, frozen=True):
    """What a server says of itself: instructions, and tools as they came over the wire. `malformed`
    are the tools that the protocol does not allow, each as a name with the reason.
    """

    instructions: str
    tools: tuple[Mapping[str, Any], ...]
    has_resources: bool = False
    malformed: tuple[str, ...] = ()


class ServerAnswer(Struct, frozen=True):
    """The answer to a call. `is_error` is the server's own report that the tool failed."""

    text: str
    is_error: bool = False


class ListedResource(Struct, frozen=True):
    """A resource that a server offers."""

    uri: str
    name: str


class Link(Protocol):
    """An open session with a server. `changed` is set when the server reports that its tools have
    changed, `ended` when the session is over.
    """

    changed: asyncio.Event
    ended: asyncio.Event

    async def introduce(self) -> None:
        """Do the handshake. Raises ServerFault."""

    async def said(self) -> ServerDescription:
        """List the server's tools and instructions. Raises ServerFault."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], show: Show, fill: Fill | None
    ) -> ServerAnswer:
        """Call a tool and return its answer. `show` gets progress texts. `fill` gets the message
        and schema of a form that the server sends during the call, and has the owner fill it in;
        without `fill` forms are declined. Raises ServerFault.
        """

    async def read(self, uri: str) -> ServerAnswer:
        """Read a resource. Raises ServerFault."""

    async def resources(self) -> tuple[ListedResource, ...]:
        """List the resources, up to a bound. Raises ServerFault."""


class SessionOpener(Protocol):
    """Opens sessions with one server."""

    def __call__(self) -> AbstractAsyncContextManager[Link]:
        """Open a session for as long as the block runs. Raises ServerFault."""


class ServerFault(ToolFailed):
    """A server could not be used. `kind` is the reason, one of the table in docs/mcp.md."""

    def __init__(self, kind: str, message: str, *, cure: str = "") -> None:
        super().__init__(message, cure=cure)
        self.kind = kind
