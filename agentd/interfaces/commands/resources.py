"""`resources`: what servers of tools offer to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol

from agentd.core.errors import NotFound
from agentd.core.health import Problem
from agentd.interfaces.commands.declaration import Group, Param
from agentd.interfaces.commands.plain import visible

RESOURCES = Group("")


class Shelved(Protocol):
    """A server that may offer some."""

    @property
    def name(self) -> str:
        """As it is configured."""

    @property
    def has_resources(self) -> bool:
        """Whether it offers any that the owner does not deny."""

    async def resources(self) -> Sequence[NamedResource]:
        """Them. Starts the server; raises ToolFailed."""

    def problems(self) -> Sequence[Problem]:
        """What is wrong with it."""


class NamedResource(Protocol):
    """A resource."""

    @property
    def uri(self) -> str:
        """Its address."""

    @property
    def name(self) -> str:
        """What the server calls it."""


def _listed(result: Mapping[str, Any]) -> str:
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
    """What there is to read."""

    def __init__(self, servers: Sequence[Shelved]) -> None:
        self._servers = tuple(servers)

    @RESOURCES.command(_listed, seconds=90.0)
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
        """Why that server offers none: it is not configured, it fails, or it has none."""
        text = f"no server {name[:100]!r} offers resources"
        one = next((one for one in self._servers if one.name == name), None)
        if one is None:
            known = ", ".join(one.name for one in self._servers) or "none"
            return NotFound(f"{text}: it is not configured", cure=f"these servers are: {known}")
        for problem in one.problems():
            return NotFound(f"{text}: {problem.text}", cure=problem.cure)
        return NotFound(text, cure=f"those that do: {', '.join(able) or 'none'}")
