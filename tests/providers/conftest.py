"""Recorded streams, and two ways to hear them: in process, and over a socket."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import trustme

from agentd.core.message import user
from agentd.core.prompt import Prompt
from agentd.core.secrets import Secret
from agentd.providers.anthropic import AnthropicProvider
from agentd.providers.provider_settings import ProviderSettings

KEY = "sk-ant-test-SENTINEL"
STREAMS = Path(__file__).parent / "streams"


def read_recorded(name: str) -> bytes:
    return (STREAMS / f"{name}.txt").read_bytes()


class Pieces(httpx2.AsyncByteStream):
    """A response body that arrives in given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def play(*pieces: bytes, requests: list[httpx2.Request] | None = None) -> AnthropicProvider:
    """A provider whose service answers every request with these pieces of an event stream."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if requests is not None:
            requests.append(request)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Pieces(*pieces))

    return AnthropicProvider(
        ProviderSettings(), Secret(KEY, "test"), transport=httpx2.MockTransport(answer)
    )


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A bare server on the loopback that reads each request's head and body, then runs the
    script.
    """

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(
                    line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line
                )
                await reader.readexactly(int(fields[b"content-length"]))
                await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def recorded():
    """The bytes of a stream by name."""
    return read_recorded


@pytest.fixture
def playing():
    """A provider that hears the given pieces, in process."""
    return play


@pytest.fixture
def serving():
    """The base URL of a server that runs a script for each request."""
    return serve


@pytest.fixture
def key() -> Secret:
    return Secret(KEY, "test")


@pytest.fixture
def hello() -> Prompt:
    return Prompt(("You are kind.",), (user("Hello"),))


@pytest.fixture
def own_authority(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """The certificates of an authority that nobody knows, and a server's of it."""
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return tmp_path / "authority.pem", tls
