"""Decides which addresses may be fetched: the host is resolved once, and each address is checked.

Refused are all ranges outside the public internet and those that embed an IPv4 address. Of IPv6
only the block that is assigned to public use is allowed, so ranges assigned later stay refused
until they are added here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

import httpx
from msgspec import Struct

from agentd.interfaces.web.web_faults import WebFault

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Returns the addresses of a host, given its name and port. Raises OSError if there are none."""

_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local: metadata services of clouds
            "168.63.129.16/32",  # the same, of Azure
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocols
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: an IPv4 address inside
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
# All global unicast that is assigned; NAT64 and mapped addresses lie elsewhere.
_PUBLIC_V6 = IPv6Network("2000::/3")
_LONGEST_URL = 4096


class Target(Struct, frozen=True):
    """A parsed web address. It is parsed once, so that what was checked is what is requested."""

    url: httpx.URL
    host: str  # ASCII, without a dot at the end
    port: int

    @property
    def is_secure(self) -> bool:
        """Whether the scheme is https."""
        return self.url.scheme == "https"


def is_public(address: Address) -> bool:
    """Return whether the address belongs to the public internet."""
    if isinstance(address, IPv6Address) and address not in _PUBLIC_V6:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def is_own(address: Address) -> bool:
    """Return whether the address is one of this machine: even if it is public, what listens there
    may not be meant for the public. The routing table is asked; no packet is sent.
    """
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False  # no route


async def resolve_host(host: str, port: int) -> Sequence[Address]:
    """Return the address that `host` is written as, else the addresses of the name by the system's
    resolver. Raises OSError.
    """
    with suppress(ValueError):
        return [ip_address(host)]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    texts = dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)
    return [ip_address(text) for text in texts]


def parse_url(text: str, base: Target | None = None) -> Target:
    """Parse a web address, relative to `base` if one is given. Raises WebFault if it is none."""
    if len(text) > _LONGEST_URL:
        raise WebFault("no_url", f"the address has more than {_LONGEST_URL} characters")
    if not text.isprintable() or any(char in text for char in ' \\<>"'):
        raise WebFault("no_url", "the address holds characters that none has")
    try:
        url = base.url.join(text) if base else httpx.URL(text)
        host = url.raw_host.decode("ascii").rstrip(".").lower()
        port = url.port or (443 if url.scheme == "https" else 80)
    except (httpx.InvalidURL, ValueError):
        raise WebFault("no_url", "that is no web address") from None
    if url.scheme not in ("http", "https") or not host:
        raise WebFault("no_url", "a web address begins with http:// or https:// and a host")
    if url.userinfo:
        raise WebFault("no_url", "the address holds a user or a password", cure="Leave it out.")
    if port > 65_535:
        raise WebFault("no_url", f"there is no port {port}")
    return Target(url, host, port)


def _is_below(host: str, names: Sequence[str]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _ascii(name: str) -> str:
    """Return a host name in the ASCII form of URLs."""
    shown = name.strip("[]").rstrip(".")
    try:
        return httpx.URL(scheme="http", host=shown).raw_host.decode("ascii").lower()
    except (httpx.InvalidURL, ValueError):
        return shown.lower()


class AddressGuard:
    """Checks hosts, ports and addresses before a connection."""

    def __init__(
        self,
        *,
        resolve: Resolve = resolve_host,
        private: Sequence[Network] = (),
        ports: Sequence[int] = (),
        allowed: Sequence[str] = (),
        denied: Sequence[str] = (),
        is_own: Callable[[Address], bool] = is_own,
    ) -> None:
        """`private` are networks that are allowed although they are not public. If `ports` or
        `allowed` (hosts with their subdomains) is not empty, nothing else is allowed.
        """
        self._resolve = resolve
        self._private = tuple(private)
        self._ports = frozenset(ports)
        self._allowed = tuple(map(_ascii, allowed))
        self._denied = tuple(map(_ascii, denied))
        self._is_own = is_own

    async def admit(self, target: Target) -> Sequence[Address]:
        """Return the addresses to connect to; connect to no others. Raises WebFault if the name
        does not resolve, or if one of its addresses may not be reached.
        """
        self._check_name(target)
        try:
            addresses = await self._resolve(target.host, target.port)
        except (OSError, UnicodeError):
            raise WebFault("no_host", f"there is no host {target.host}") from None
        if not addresses:
            raise WebFault("no_host", f"there is no host {target.host}")
        for address in addresses:
            self._check(target.host, address)
        return addresses

    def _check_name(self, target: Target) -> None:
        if self._ports and target.port not in self._ports:
            cure = "the owner can add it to ports in [web]"
            raise WebFault("port", f"port {target.port} is none that may be asked", cure=cure)
        if _is_below(target.host, self._denied):
            raise WebFault("denied", f"{target.host} is among denied_hosts of [web]")
        if self._allowed and not _is_below(target.host, self._allowed):
            raise WebFault("denied", f"{target.host} is not among allowed_hosts of [web]")

    def _check(self, host: str, address: Address) -> None:
        if any(address in network for network in self._private):
            return
        if not is_public(address) or self._is_own(address):
            at = host if host == str(address) else f"{host}, at {address},"
            cure = "networks that may be read all the same stand in private of [web]"
            raise WebFault("private", f"{at} is not on the public internet", cure=cure)
