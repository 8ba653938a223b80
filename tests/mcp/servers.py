"""Servers for tests: the rogue one as a process, and those who ask for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentd.core.message import JsonObject
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.tool import Approval, FileIntent, ToolCall
from agentd.core.turn import MAIN, Origin, SessionKind, TurnRequest
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.mcp_source import McpSource, ServerLimits
from agentd.interfaces.mcp.reaching import dial, source
from agentd.interfaces.mcp.server import ToolServer

ROGUE = str(Path(__file__).with_name("rogue.py"))


def rogue(*flags: str, **settings: Any) -> McpServer:
    return McpServer(command=(sys.executable, ROGUE, *flags), **settings)


@asynccontextmanager
async def running(*servers: ToolServer) -> AsyncIterator[None]:
    """The servers may be started while the block runs."""
    async with asyncio.TaskGroup() as group:
        for server in servers:
            server.open(group)
        try:
            yield
        finally:
            for server in servers:
                server.close()


def server(
    folder: Path,
    clock: Clock,
    settings: McpServer,
    environ: Mapping[str, str] | None = None,
    name: str = "rogue",
) -> ToolServer:
    redactor = Redactor()
    return ToolServer(
        name,
        settings,
        dial(name, settings, environ or {}, redactor, grace=0.5),
        Catalogue(folder / "mcp", name, source(settings)),
        clock,
        redactor,
    )


def tool_source(
    *servers: ToolServer, vouched: frozenset[str] = frozenset(), room: int = 1500
) -> McpSource:
    return McpSource(servers, vouched, ServerLimits(room))


def request(origin: Origin = Origin.USER, **others: Any) -> TurnRequest:
    return TurnRequest(session=MAIN, text="hello", message_id="m1", origin=origin, **others)


def call(name: str, given: JsonObject | None = None, *, tainted: bool = False) -> ToolCall:
    return ToolCall("c1", name, given or {}, MAIN, SessionKind.OWNER, Origin.USER, tainted)


@dataclass(slots=True)
class Asked:
    """A gate that answers each question the same way, and keeps it."""

    says: bool = True
    questions: list[Approval] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def approve(self, approval: Approval) -> bool:
        self.questions.append(approval)
        return self.says

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def tell(self, text: str) -> None:
        self.told.append(text)

    async def intend(self, intent: FileIntent | None = None) -> None:
        return
