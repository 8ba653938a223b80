"""MCP servers that an ACP client offers for a session: used there after one question to the
owner.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from agentd.core.errors import ShuttingDown
from agentd.core.ports import Approver
from agentd.core.tool import Approval, Decision
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer, is_server_name
from agentd.interfaces.mcp.server import ToolServer

log = structlog.get_logger()

_MOST = 8  # servers of one session
_LONGEST = 4000  # characters of a command

Make = Callable[[str, McpServer], ToolServer]


class ClientServers:
    """The servers that clients have offered and the owner has allowed, by session. A session's
    servers stop with the daemon, or when the owner allows other ones for that session.
    """

    def __init__(self, make: Make, own: frozenset[str]) -> None:
        """`own` are the names of configured servers, which an offered server cannot have."""
        self._make = make
        self._own = own
        self._group: asyncio.TaskGroup | None = None
        self._servers: dict[SessionKey, tuple[ToolServer, ...]] = {}
        self._digests: dict[SessionKey, str] = {}

    @property
    def all(self) -> tuple[ToolServer, ...]:
        """The servers of all sessions."""
        return tuple(server for servers in self._servers.values() for server in servers)

    def of(self, session: SessionKey) -> tuple[ToolServer, ...]:
        """Return the servers of one session."""
        return self._servers.get(session, ())

    async def run(self) -> None:
        """Let the servers run until this is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await asyncio.Event().wait()
        finally:
            self._group = None
            for server in self.all:
                server.close()

    async def offered(
        self,
        approver: Approver,
        session: SessionKey,
        offers: Sequence[Any],
        tell: Callable[[str], None],
    ) -> None:
        """Ask the owner whether to use the offered servers in this session, and use them if he says
        yes. The same offer is asked about again only if he refused. `tell` gets a sentence for the
        user about each outcome.
        """
        if kind_of(session) is not SessionKind.OWNER or self._group is None:
            tell("The MCP servers that this client offers are not used here.")
            return
        servers: dict[str, McpServer] = {}
        for offer in offers[:_MOST]:
            name, server, why = self._read(offer)
            if server is None or name in servers:
                tell(f"The MCP server {name!r} is not used: {why or 'its name comes twice'}.")
            else:
                servers[name] = server
        if len(offers) > _MOST:
            tell(
                f"{len(offers) - _MOST} MCP servers are not used: {_MOST} are taken in one session."
            )
        digest = _digest(servers)
        if not servers or self._digests.get(session) == digest:
            return
        answer = await approver.ask(session, "mcp-servers", _question(servers, digest))
        if answer not in (Decision.ONCE, Decision.ALWAYS):
            tell("The MCP servers that this client offers are not used: you did not allow it.")
            return
        self._welcome(session, servers)
        self._digests[session] = digest
        tell(
            f"In this conversation the MCP servers {', '.join(servers)} are "
            "used, asked call by call."
        )

    def _welcome(self, session: SessionKey, servers: Mapping[str, McpServer]) -> None:
        for server in self.of(session):
            server.close()
        if self._group is None:
            return
        made = tuple(self._make(name, server) for name, server in servers.items())
        self._servers[session] = made
        for server in made:
            server.open(self._group)
            self._group.create_task(_get_to_know(server))

    def _read(self, offer: Any) -> tuple[str, McpServer | None, str]:
        """Parse an offer; returns its name, the server or None, and why there is none."""
        told = offer if isinstance(offer, dict) else {}
        name = str(told.get("name", ""))[:100]
        command, args, env = told.get("command"), told.get("args", []), told.get("env", [])
        if not is_server_name(name):
            return name, None, "its name is not of at most 24 small letters, digits and `-`"
        if name in self._own:
            return name, None, "a configured server has its name"
        if not isinstance(command, str) or not isinstance(args, list) or told.get("url"):
            return name, None, "only programs on standard streams are taken"
        if not isinstance(env, list) or not all(map(_is_pair, env)) or not all(map(_is_text, args)):
            return name, None, "its arguments or its variables are none"
        words = (command, *args)
        if sum(map(len, words)) > _LONGEST:
            return name, None, "its command is too long to be shown"
        try:
            return (
                name,
                McpServer(command=words, env={one["name"]: one["value"] for one in env}),
                "",
            )
        except ValueError:
            return name, None, "its command or its variables are none"


def _is_pair(value: Any) -> bool:
    is_object = isinstance(value, dict)
    return is_object and _is_text(value.get("name")) and _is_text(value.get("value"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _digest(servers: Mapping[str, McpServer]) -> str:
    told = {name: [one.command, sorted(one.env.items())] for name, one in servers.items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _question(servers: Mapping[str, McpServer], digest: str) -> Approval:
    lines = []
    for name, server in servers.items():
        variables = f"  (variables: {', '.join(server.env)})" if server.env else ""
        lines.append(f"{name}: {json.dumps(list(server.command), ensure_ascii=False)}{variables}")
    return Approval(
        "Start the MCP servers that this client offers, for this conversation alone",
        digest,
        new_text="\n".join(lines),
        warnings=("these programs run with your rights; each call of theirs is asked about",),
    )


async def _get_to_know(server: ToolServer) -> None:
    """Start the server once, so that its tools are listed and can be called. A failure is logged
    and shows in `status`.
    """
    try:
        await server.refresh()
    except (ServerFault, ShuttingDown) as error:
        log.warning("mcp_guest_not_known", server=server.name, reason=error.reason)
