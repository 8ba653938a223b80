"""The `[web]` table, and the service that searches."""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from agentd.core.links import FETCH, SEARCH
from agentd.core.secrets import Reference
from agentd.core.settings import (
    ActsOutside,
    PositiveDuration,
    SecretPlace,
    Settings,
    ShownAs,
    at_defaults,
    host_alone,
)
from agentd.core.tool import Permission

TOOLS = (FETCH, SEARCH)

_HOST = re.compile(r"(?=.{1,253}$)[^\s./:@%\[\]*]+(\.[^\s./:@%\[\]*]+)*|\[?[0-9a-fA-F:.]+\]?")
_SERVICES = {"searxng": "", "brave": "https://api.search.brave.com"}


def _checked_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        _check_name(name)
    return names


def _checked_tools(tools: dict[str, Permission]) -> dict[str, Permission]:
    for name in tools:
        _check_name(name)
    return tools


def _check_name(name: str) -> None:
    if name not in TOOLS:
        msg = f"{name!r} is no tool of the web; there are {' and '.join(TOOLS)}"
        raise ValueError(msg)


def _checked_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if not _HOST.fullmatch(host):
            msg = (
                f'{host!r} is no name of a host; write it like "example.org", which means '
                "what is below it, too"
            )
            raise ValueError(msg)
    return hosts


def _checked_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    for network in networks:
        try:
            ip_network(network)
        except ValueError:
            msg = f'{network!r} is no network; write it like "192.168.1.0/24" or "192.168.1.7"'
            raise ValueError(msg) from None
    return networks


def _checked_ports(ports: tuple[int, ...]) -> tuple[int, ...]:
    for port in ports:
        if not 0 < port < 65536:
            msg = f"{port} is no port"
            raise ValueError(msg)
    return ports


Hosts = Annotated[tuple[str, ...], AfterValidator(_checked_hosts)]


class WebSearchSettings(Settings):
    """The service that searches for `web_search`; without one there is no such tool."""

    service: Literal["", "searxng", "brave"] = Field(
        "", description='"searxng" for one of your own, "brave" for that with a key; empty: none'
    )
    url: Annotated[str, ShownAs(host_alone), ActsOutside("is sent what is searched for")] = Field(
        "", description="its address; Brave has one by itself"
    )
    key: SecretPlace = Field(
        "",
        description=(
            'where its key stands: the name of a variable, "credential:NAME" or "file:PATH"'
        ),
    )
    timeout: PositiveDuration = Field(timedelta(seconds=15), description="how long it may take")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.url and not _is_web(self.url):
            msg = 'url is no web address; write it like "http://127.0.0.1:8080"'
            raise ValueError(msg)
        if self.service == "searxng" and not self.url:
            msg = "searxng needs url, the address of yours"
            raise ValueError(msg)
        if self.service == "brave" and not self.key:
            msg = 'brave needs key, the place of the key, like "BRAVE_API_KEY"'
            raise ValueError(msg)
        if not self.service and (self.url or self.key):
            msg = 'url and key need service, "searxng" or "brave"'
            raise ValueError(msg)
        return self

    @property
    def address(self) -> str:
        """The URL of the service, without a slash at the end."""
        return (self.url or _SERVICES.get(self.service, "")).rstrip("/")


def _is_web(url: str) -> bool:
    parts = urlsplit(url)
    has_more = parts.query or parts.fragment or parts.username is not None
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not has_more


class WebSettings(Settings):
    """Pages of the web and searches in it (docs/web.md)."""

    enabled: Annotated[bool, ActsOutside("lets pages of the web be read")] = Field(
        False, description="offer web_fetch, and web_search where [web.search] names a service"
    )
    permission: Permission = Field(
        "ask", description="what becomes of a call that `tools` does not name"
    )
    tools: Annotated[dict[str, Permission], AfterValidator(_checked_tools)] = Field(
        {}, description='single tools, like { web_fetch = "allow", web_search = "deny" }'
    )
    silent: Annotated[
        tuple[str, ...], AfterValidator(_checked_names), ActsOutside("is called by beats and jobs")
    ] = Field((), description="what beats and jobs may call, where nobody is asked")
    allowed_hosts: Hosts = Field(
        (), description='only these and what is below them, like ["example.org"]; empty: all'
    )
    denied_hosts: Hosts = Field((), description="never these, nor what is below them")
    ports: Annotated[tuple[int, ...], AfterValidator(_checked_ports)] = Field(
        (80, 443, 8080, 8443), description="ports that an address may name"
    )
    private: Annotated[
        tuple[str, ...],
        AfterValidator(_checked_networks),
        ActsOutside("is a network of yours that pages may be read from"),
    ] = Field((), description='private networks that may be read all the same: ["192.168.1.0/24"]')
    timeout: PositiveDuration = Field(
        timedelta(seconds=20), description="how long a page may take, from its name to its text"
    )
    max_bytes: int = Field(
        3_000_000, ge=10_000, le=50_000_000, description="of a page at most so much is read"
    )
    max_redirects: int = Field(
        5, ge=0, le=20, description="how often a page may lead on to another"
    )
    search: WebSearchSettings = at_defaults()

    def permission_of(self, tool: str) -> Permission:
        """Return the permission for calls of this tool."""
        return self.tools.get(tool, self.permission)

    @property
    def vouched(self) -> frozenset[str]:
        """The tools that the owner has allowed by name."""
        by_name = frozenset(name for name, one in self.tools.items() if one == "allow")
        return by_name | frozenset(self.silent) if self.enabled else frozenset()

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variable that holds the key of the search service, if there is one."""
        return tuple(filter(None, (Reference(self.search.key, "").key_variable,)))
