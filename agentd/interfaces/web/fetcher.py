"""Fetches a web page: only from checked addresses, within a time limit, up to a size.

No cookies, credentials or proxies: each request is built by hand, without a client that could have
any. A name is resolved once; the connection goes to the checked address, with the name in the Host
header and for the certificate. Redirects are checked like the first address.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from email.message import Message

import httpx
from msgspec import Struct

from agentd import __version__
from agentd.interfaces.web.guard import Address, AddressGuard, Target, parse_url
from agentd.interfaces.web.web_faults import WebFault

_CONNECT = 5.0  # seconds to connect to each address
_TRIED = 3  # addresses of a name that are tried
_LEADS_ON = frozenset({301, 302, 303, 307, 308})
_GZIP = 31  # zlib's window bits for gzip only
_GZIP_BEGINS = b"\x1f\x8b"
_SHOWN = 200  # characters of an address in a message


class FetchLimits(Struct, frozen=True):
    """Bounds of one fetch: seconds with all redirects, bytes of the body (`most`), number of
    redirects.
    """

    seconds: float
    most: int
    redirects: int


class Fetched(Struct, frozen=True):
    """An answer. `media_type` and `charset` are those of the header, "" if it names none; `is_cut`
    says that the body was longer.
    """

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes
    is_cut: bool = False


class Fetcher:
    """Fetches pages from the addresses that `guard` admits."""

    def __init__(
        self, guard: AddressGuard, limits: FetchLimits, context: ssl.SSLContext | None = None
    ) -> None:
        """`context` is for TLS; None means the usual certificate authorities."""
        self._guard = guard
        self._limits = limits
        self._context = context

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Fetched:
        """Fetch the page, following redirects. Raises WebFault."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._follow(parse_url(url), headers or {})
        except TimeoutError:
            text = f"it took longer than {self._limits.seconds:g} s"
            raise WebFault("timeout", text) from None
        except httpx.HTTPError as error:
            raise _unreachable(error) from None

    async def _follow(self, target: Target, headers: Mapping[str, str]) -> Fetched:
        addresses = await self._guard.admit(target)
        for _ in range(self._limits.redirects + 1):
            async with self._first_response(target, addresses, headers) as response:
                place = response.headers.get("location", "")
                if response.status_code not in _LEADS_ON or not place:
                    return await self._read(target, response)
            target, addresses = await self._led_on(place, target)
        raise WebFault("redirects", f"it leads on more than {self._limits.redirects} times")

    async def _led_on(self, place: str, base: Target) -> tuple[Target, Sequence[Address]]:
        """Return the target of a redirect and its checked addresses. Raises WebFault."""
        try:
            target = parse_url(place, base)
            return target, await self._guard.admit(target)
        except WebFault as fault:
            text = f"it leads on to {place[:_SHOWN]}, and that is not read: {fault.message}"
            raise WebFault(fault.kind, text, cure=fault.cure, is_told=True) from None

    @asynccontextmanager
    async def _first_response(
        self, target: Target, addresses: Sequence[Address], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """Yield the response of the first address that connects; its body is not read yet."""
        context = (
            await self._secured() if target.is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        async with httpx.AsyncHTTPTransport(
            verify=context, trust_env=False, limits=limits
        ) as transport:
            response = await _first(transport, target, addresses[:_TRIED], headers)
            try:
                yield response
            finally:
                await response.aclose()

    async def _secured(self) -> ssl.SSLContext:
        if self._context is None:  # loading the authorities takes 30 ms
            self._context = await asyncio.to_thread(httpx.create_ssl_context)
        return self._context

    async def _read(self, target: Target, response: httpx.Response) -> Fetched:
        body, is_cut = await self._body(response)
        media_type, charset = _content_type(response.headers.get("content-type", ""))
        url = str(target.url.copy_with(fragment=None))
        return Fetched(url, response.status_code, media_type, charset, body, is_cut)

    async def _body(self, response: httpx.Response) -> tuple[bytes, bool]:
        """Return the decompressed body, cut at the size limit, and whether it was cut."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise WebFault("encoding", "it is packed in a way that was not asked for")
        unpacked = _Unpacked() if encoding.endswith("gzip") else None
        body, received = bytearray(), 0
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            async for chunk in response.stream:
                received += len(chunk)
                room = self._limits.most - len(body)
                body += chunk[: room + 1] if unpacked is None else unpacked.take(chunk, room + 1)
                if len(body) > self._limits.most or received > self._limits.most:
                    return bytes(body[: self._limits.most]), True
        except zlib.error:
            raise WebFault("encoding", "it is packed wrongly") from None
        return bytes(body), unpacked is not None and not unpacked.is_whole


class _Unpacked:
    """Decompresses a gzip body of one or more members; bytes after the last member are ignored."""

    def __init__(self) -> None:
        self._part = zlib.decompressobj(_GZIP)
        self._rest = b""  # bytes after the last member that may begin another one

    @property
    def is_whole(self) -> bool:
        """Whether the last member is complete."""
        return self._part.eof

    def take(self, packed: bytes, most: int) -> bytes:
        """Return what the next bytes decompress to, at most `most` bytes. Raises zlib.error."""
        unpacked = bytearray()
        while packed and len(unpacked) < most:
            if self._part.eof:
                self._rest += packed
                if not self._rest.startswith(_GZIP_BEGINS):
                    break
                packed, self._rest = self._rest, b""
                self._part = zlib.decompressobj(_GZIP)
            unpacked += self._part.decompress(packed, most - len(unpacked))
            packed = self._part.unused_data
        return bytes(unpacked)


async def _first(
    transport: httpx.AsyncHTTPTransport,
    target: Target,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
) -> httpx.Response:
    failed: httpx.ConnectError | httpx.ConnectTimeout | None = None
    for address in addresses:
        try:
            return await transport.handle_async_request(_request(target, address, headers))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failed = error
    assert failed is not None
    raise failed


def _request(target: Target, address: Address, headers: Mapping[str, str]) -> httpx.Request:
    """Build the request to the address, with the Host header and SNI of the name."""
    is_usual = target.url.port is None
    shown = f"[{target.host}]" if ":" in target.host else target.host
    own = {
        "Host": shown if is_usual else f"{shown}:{target.port}",
        "User-Agent": f"agentd/{__version__}",
        "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1",
        "Accept-Encoding": "gzip",
        "Connection": "close",
    }
    times = {"connect": _CONNECT, "read": None, "write": None, "pool": None}
    return httpx.Request(
        "GET",
        target.url.copy_with(host=str(address), fragment=None),
        headers={**own, **headers},
        extensions={"timeout": times, "sni_hostname": target.host},
    )


def _content_type(header: str) -> tuple[str, str]:
    message = Message()
    message["content-type"] = header[:_SHOWN].replace("\n", " ").replace("\r", " ")
    media_type = message.get_content_type() if header else ""
    charset = message.get_param("charset", "")
    return media_type, charset.strip().lower() if isinstance(charset, str) else ""


def _unreachable(error: httpx.HTTPError) -> WebFault:
    if isinstance(error.__cause__, ssl.SSLError) or "CERTIFICATE" in str(error):
        return WebFault("certificate", "its certificate is not in order")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return WebFault("unreachable", "nobody answers there")
    return WebFault("protocol", "its answer is cut, or is no HTTP")
