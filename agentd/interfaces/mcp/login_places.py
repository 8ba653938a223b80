"""The addresses that a login may reach: over TLS, on the public internet or named by the owner."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx2

from agentd.interfaces.mcp.mcp_settings import LOOPBACK
from agentd.interfaces.web.guard import Address, AddressGuard, parse_url
from agentd.interfaces.web.web_faults import WebFault

_TRIED = 3  # addresses of one name that are tried
_SHOWN = 200  # characters of an address in a message


class LoginRefused(httpx2.TransportError):
    """A login leads to an address that it may not reach; the message says which and why."""


class LoginPlaces:
    """What a login to the server at `url` may reach: the server's own host, the `hosts` that the
    owner has named, and hosts with public addresses.
    """

    def __init__(self, url: str, hosts: Sequence[str], guard: AddressGuard | None = None) -> None:
        self._own = _host(url)
        self._named = frozenset(host.lower() for host in hosts)
        self._guard = guard or AddressGuard()

    def check(self, url: str) -> None:
        """Raise LoginRefused unless the URL is https, or both it and the server are on this
        machine.
        """
        try:
            target = parse_url(url)
        except WebFault as fault:
            raise _refusal(url, fault.message) from None
        is_here = target.host == self._own and self._own in LOOPBACK
        if not target.is_secure and not is_here:
            raise _refusal(url, "it is no address that begins with https://")

    def check_token_endpoint(self, url: str, authorization: str) -> None:
        """Raise LoginRefused unless the token endpoint is on the host where the owner logs in, or
        on a host that he named. The metadata name both, and their author need not run either.
        """
        self.check(authorization)
        self.check(url)
        host = _host(url)
        if host != _host(authorization) and host not in self._named:
            why = (
                f"the login is at {_host(authorization)}, and the token would be fetched elsewhere"
            )
            raise _refusal(url, f"{why}; if that is right, add {host!r} to login_hosts")

    async def admit(self, url: str) -> Sequence[Address]:
        """Return the addresses to connect to, at most `_TRIED`; () for the server's and named
        hosts, which are resolved as usual. Raises LoginRefused.
        """
        self.check(url)
        target = parse_url(url)
        if target.host == self._own or target.host in self._named:
            return ()
        try:
            return (await self._guard.admit(target))[:_TRIED]
        except WebFault as fault:
            raise _refusal(url, f"{fault.message}; login_hosts names what may be") from None


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests only to admitted addresses. A host name is resolved once, checked, and
    connected to at that address, so that the name cannot change in between.
    """

    def __init__(self, places: LoginPlaces, seconds: float) -> None:
        """`seconds` limit each wait of a request that has no limit of its own, as those of the SDK
        have none.
        """
        self._places = places
        self._limit = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the first admitted address that connects. Raises TransportError."""
        addresses = await self._places.admit(str(request.url))
        request.extensions = {"timeout": self._limit, **request.extensions}
        if not addresses:
            return await self._inner.handle_async_request(request)
        failed: httpx2.TransportError | None = None
        for address in addresses:
            try:
                return await self._inner.handle_async_request(_pin_address(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        assert failed is not None
        raise failed

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()


def _pin_address(request: httpx2.Request, address: Address) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").rstrip(".")


def _refusal(url: str, why: str) -> LoginRefused:
    return LoginRefused(f"the login leads to {url[:_SHOWN]}, and that is not asked: {why}")
