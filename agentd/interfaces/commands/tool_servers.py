"""Commands for MCP servers: `mcp login`, `mcp logout` and `resources`.

In a login the browser returns to the command line, which passes the answer to the daemon; tokens
never leave the daemon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from agentd.core.errors import AgentdError, NotFound
from agentd.core.health import Problem
from agentd.interfaces.commands.declaration import Group, Param
from agentd.interfaces.commands.plain import counted, fields, visible

LOGINS = Group("mcp")

_SECONDS = 180.0  # two requests in a row, and the start of a server
_TEXT = (0, 4096)


class LoginDesk(Protocol):
    """Port: logins to MCP servers."""

    async def begin(self, name: str, redirect_uri: str) -> str:
        """Begin a login and return the URL at which the owner logs in. Raises AgentdError."""

    async def finish(self, name: str, code: str, state: str, issuer: str) -> tuple[int, str]:
        """Finish a login; returns the number of the server's tools, and why the server failed, ""
        if it did not. Raises AgentdError if the login failed, InvalidRequest if the answer belongs
        to another login.
        """

    def give_up(self, name: str, state: str) -> None:
        """Cancel the login: the owner or the service refused it. Raises as `finish`."""

    async def end(self, name: str) -> bool:
        """Delete the login and stop the server; returns whether there was a login. Raises
        AgentdError.
        """


def login_text(result: Mapping[str, Any]) -> str:
    """Return the outcome of a login in words."""
    told = f"logged in to {result['server']}, which has {counted(result['tools'], 'tool')}"
    return visible(f"{told}; but {result['problem']}" if result["problem"] else told)


def _logout_text(result: Mapping[str, Any]) -> str:
    if not result["logged_out"]:
        return f"there was no login to {result['server']}"
    return (
        f"logged out of {result['server']}: the login is deleted here. The service may list it "
        "until you withdraw it there"
    )


class LoginCommands:
    """The commands `mcp login` and `mcp logout`."""

    def __init__(self, logins: LoginDesk) -> None:
        self._logins = logins

    @LOGINS.command(fields, seconds=_SECONDS)
    async def login(
        self,
        server: Annotated[str, Param('A server with auth = "oauth".', metavar="NAME")],
        port: Annotated[int, Param(least=1, most=65_535)],
    ) -> dict[str, Any]:
        """Log in to a server of tools. The address to go to is printed; the answer comes back to a
        port of this machine, so the browser has to run here, or reach that port (`ssh -L`).
        """
        url = await self._logins.begin(server, f"http://127.0.0.1:{port}/callback")
        return {"server": server, "url": url, "host": urlsplit(url).hostname or ""}

    @LOGINS.command(login_text, seconds=_SECONDS, line=False)
    async def redirected(
        self,
        server: Annotated[str, Param()],
        state: Annotated[str, Param(length=_TEXT)],
        code: Annotated[str, Param(length=_TEXT)] = "",
        iss: Annotated[str, Param(length=_TEXT)] = "",
        error: Annotated[str, Param(length=_TEXT)] = "",
    ) -> dict[str, Any]:
        """Finish a login with what the browser brought back."""
        if error or not code:
            self._logins.give_up(server, state)
            why = " ".join(error.split())[:100] or "no code"
            cure = f"`agentd mcp login {server}`, and allow it"
            raise AgentdError(f"the service did not let agentd in: {why}", cure=cure)
        tools, problem = await self._logins.finish(server, code, state, iss)
        return {"server": server, "tools": tools, "problem": problem}

    @LOGINS.command(_logout_text)
    async def logout(
        self, server: Annotated[str, Param("A server that you have logged in to.", metavar="NAME")]
    ) -> dict[str, Any]:
        """Delete the login to a server of tools."""
        return {"server": server, "logged_out": await self._logins.end(server)}


RESOURCES = Group("")


class ResourceServer(Protocol):
    """Port: a server that may offer resources."""

    @property
    def name(self) -> str:
        """The server's configured name."""

    @property
    def has_resources(self) -> bool:
        """Whether the server offers resources that the owner does not deny."""

    async def resources(self) -> Sequence[NamedResource]:
        """Return the resources; starts the server. Raises ToolFailed."""

    def problems(self) -> Sequence[Problem]:
        """Return what is wrong with the server."""


class NamedResource(Protocol):
    """A resource of a server."""

    @property
    def uri(self) -> str:
        """The resource's address."""

    @property
    def name(self) -> str:
        """The server's name for the resource."""


def _servers_text(result: Mapping[str, Any]) -> str:
    if result["resources"]:
        return "\n".join(
            visible(f"@{result['server']}:{one['uri']}  {one['name']}".rstrip())
            for one in result["resources"]
        )
    if result["server"]:
        return f"{result['server']} offers nothing to read"
    if not result["servers"]:
        return "no server of tools offers resources; docs/mcp.md says how one is configured"
    return "\n".join(result["servers"])


class ResourceCommands:
    """The command that lists the servers' resources."""

    def __init__(self, servers: Sequence[ResourceServer]) -> None:
        self._servers = tuple(servers)

    @RESOURCES.command(_servers_text, seconds=90.0)
    async def resources(
        self, server: Annotated[str, Param("A server; without one, those that have any.")] = ""
    ) -> dict[str, Any]:
        """List what a server of tools offers to be read. A message names one as `@SERVER:URI`."""
        able = {one.name: one for one in self._servers if one.has_resources}
        if server and server not in able:
            raise self._missing(server, able)
        found = await able[server].resources() if server else ()
        return {
            "server": server,
            "servers": list(able),
            "resources": [{"uri": one.uri, "name": one.name} for one in found],
        }

    def _missing(self, name: str, able: Iterable[str]) -> NotFound:
        """Return why the server offers no resources: it is not configured, it fails, or it has
        none.
        """
        text = f"no server {name[:100]!r} offers resources"
        one = next((one for one in self._servers if one.name == name), None)
        if one is None:
            known = ", ".join(one.name for one in self._servers) or "none"
            return NotFound(f"{text}: it is not configured", cure=f"these servers are: {known}")
        for problem in one.problems():
            return NotFound(f"{text}: {problem.text}", cure=problem.cure)
        return NotFound(text, cure=f"those that do: {', '.join(able) or 'none'}")
