"""The `[mcp]` table, and a table for each server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from agentd.core.secrets import Reference
from agentd.core.settings import (
    ActsOutside,
    FilePath,
    NamedTables,
    PositiveDuration,
    SecretPlace,
    Settings,
    ShownAs,
    host_alone,
    program_alone,
)
from agentd.core.tool import Permission

SEARCH = "tool_search"  # the tool that searches the servers' tools; no server is called for that

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class McpServer(Settings):
    """A server: a program that is started, or an address."""

    enabled: bool = Field(True, description="off: it is as if the table were not there")
    command: tuple[str, ...] = Field((), description="the program and its arguments; no shell")
    url: str = Field("", description="the address of a server that speaks streamable HTTP")
    cwd: FilePath = Field(
        "", description="the folder in which the program runs; empty: the home folder"
    )
    env: dict[str, str] = Field(
        {}, description="variables that the program sees, none of them secret"
    )
    secrets: dict[str, SecretPlace] = Field(
        {},
        description=(
            "variables whose values are secrets, and where they stand: the name of a variable, "
            '"credential:NAME" or "file:PATH"'
        ),
    )
    bearer: SecretPlace = Field(
        "", description="where the token for `url` stands, written like a secret"
    )
    auth: Literal["", "oauth"] = Field(
        "", description='"oauth": `agentd mcp login NAME` logs in to the service behind `url`'
    )
    client_id: str = Field(
        "",
        description="the client that the service knows agentd as; empty: agentd registers itself",
    )
    client_secret: SecretPlace = Field(
        "", description="where its secret stands, written like a secret"
    )
    login_hosts: tuple[str, ...] = Field(
        (), description="hosts that may take part in the login though they are others, or private"
    )
    permission: Permission = Field(
        "ask", description="what becomes of a call that `tools` does not name"
    )
    tools: dict[str, Permission] = Field(
        {}, description='single tools, like { read_file = "allow", delete = "deny" }'
    )
    silent: tuple[str, ...] = Field(
        (), description="tools that beats and jobs may call, where nobody is asked"
    )
    timeout: PositiveDuration = Field(timedelta(seconds=30), description="how long a call may take")
    start_timeout: PositiveDuration = Field(
        timedelta(seconds=30), description="how long it may take to start"
    )
    idle: PositiveDuration = Field(
        timedelta(minutes=5), description="it is stopped when it was not called for so long"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.command) == bool(self.url):
            msg = 'needs one of command, like ["npx", "-y", "PACKAGE"], and url'
            raise ValueError(msg)
        if self.command and not self.command[0].strip():
            msg = "command begins with the program's name"
            raise ValueError(msg)
        if self.url and not _is_web(self.url):
            msg = 'url is no web address; write it like "https://example.org/mcp"'
            raise ValueError(msg)
        if self.url and (self.env or self.secrets or self.cwd):
            msg = "env, secrets and cwd are for a command; a url takes bearer"
            raise ValueError(msg)
        if self.bearer and not self.url:
            msg = "bearer is for a url; a command takes secrets"
            raise ValueError(msg)
        self._check_login()
        for variable in (*self.env, *self.secrets):
            if not _VARIABLE.fullmatch(variable):
                msg = f"{variable!r} is no name of a variable"
                raise ValueError(msg)
        if both := self.env.keys() & self.secrets.keys():
            msg = f"{min(both)!r} stands in env and in secrets"
            raise ValueError(msg)
        return self

    def _check_login(self) -> None:
        if not self.auth:
            if self.client_id or self.client_secret or self.login_hosts:
                msg = 'client_id, client_secret and login_hosts are for auth = "oauth"'
                raise ValueError(msg)
            return
        if not self.url or self.bearer:
            msg = 'auth = "oauth" is for a url, in place of bearer'
            raise ValueError(msg)
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            msg = 'auth = "oauth" needs a url that begins with https://'
            raise ValueError(msg)
        if self.client_secret and not self.client_id:
            msg = "client_secret belongs to a client_id"
            raise ValueError(msg)

    def permission_of(self, tool: str) -> Permission:
        """Return the permission for calls of this tool."""
        return self.tools.get(tool, self.permission)

    def vouched(self) -> frozenset[str]:
        """Return the tools that the owner has allowed by name."""
        return frozenset(self.silent) | {t for t, one in self.tools.items() if one == "allow"}


def is_server_name(name: str) -> bool:
    """Return whether `name` may be a server's name."""
    return _NAME.fullmatch(name) is not None


def _is_web(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _checked_names(servers: dict[str, McpServer]) -> dict[str, McpServer]:
    for name in servers:
        if not _NAME.fullmatch(name):
            msg = f"{name!r} is no name of a server: use at most 24 small letters, digits and `-`"
            raise ValueError(msg)
    return servers


def _in_part(servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the servers as `config show` prints them, without arguments, paths of URLs and values
    of variables, which may be secret.
    """
    return {name: _one_in_part(server) for name, server in servers.items()}


def _one_in_part(server: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **server,
        "command": program_alone(server["command"]) if server["command"] else [],
        "url": host_alone(server["url"]),
        "env": dict.fromkeys(server["env"], "[not shown]"),
    }


class McpSettings(Settings):
    """Tools of others: a table [mcp.servers.NAME] for each (docs/mcp.md)."""

    prompt_bytes: int = Field(
        1500,
        ge=600,
        le=200_000,
        description=(
            "of these tools prompts carry at most so much; what does not fit is found by a search"
        ),
    )
    servers: Annotated[
        dict[str, McpServer],
        AfterValidator(_checked_names),
        NamedTables(McpServer),
        ShownAs(_in_part),
        ActsOutside("is started or called, and its tools are offered to the model"),
    ] = Field(
        {},
        description="each server has a table of its own, by the name that its tools have in front",
    )

    @property
    def enabled(self) -> dict[str, McpServer]:
        """The servers that are on."""
        return {name: server for name, server in self.servers.items() if server.enabled}

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may hold secrets of servers."""
        texts = [
            text
            for one in self.servers.values()
            for text in (*one.secrets.values(), one.bearer, one.client_secret)
        ]
        return tuple(filter(None, (Reference(text, "").key_variable for text in texts)))

    @property
    def vouched(self) -> frozenset[str]:
        """The tools, as NAME.tool, that the owner has allowed by name."""
        return frozenset(f"{n}.{t}" for n, one in self.enabled.items() for t in one.vouched())
