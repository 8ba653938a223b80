"""A model's service on a port of this machine, whose streams break off, stall, or have a wrong
byte.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentd.testing import check_api_messages
from tests.e2e.chat_completions import messages_body
from tests.streams.breaking import Broken

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


class TcpService:
    """Serves what is `next`, else `usual`. `served` is all that went out, `wrong` what was asked
    and no service would take.
    """

    def __init__(self, wire: str, usual: bytes) -> None:
        self.wire = wire
        self.next: list[Broken] = []
        self.served: list[Broken] = []
        self.wrong: list[str] = []
        self._usual = Broken(usual)
        self._open: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The address, as it stands in a configuration."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 24)
        port = server.sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}{'' if self.wire == 'anthropic' else '/v1'}"
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            if self._open:
                await asyncio.wait(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request; then the connection ends."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            self._look_at(await reader.readexactly(length))
            sent = self.next.pop(0) if self.next else self._usual
            self.served.append(sent)
            await _send(sent, reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the daemon has left
        finally:
            writer.transport.abort()

    def _look_at(self, asked: bytes) -> None:
        body = json.loads(asked)
        try:
            said = body if self.wire == "anthropic" else messages_body(body)
            check_api_messages(said["messages"])
        except (AssertionError, KeyError, ValueError) as error:
            self.wrong.append(f"a request that no service takes: {error!r}")


async def _send(sent: Broken, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if sent.end == "half a chunk":
        size = b"%x\r\n" % (len(sent.data) + 10)
        writer.write(_HEAD + b"transfer-encoding: chunked\r\n\r\n" + size + sent.data)
    else:
        writer.write(_HEAD + b"connection: close\r\n\r\n" + sent.data)
    await writer.drain()
    if sent.end == "stall":
        await reader.read()  # until the other end has had enough
    elif sent.end == "reset":
        while writer.transport.get_write_buffer_size():
            await asyncio.sleep(0)
        await asyncio.sleep(0.002)  # what was sent is read first, or not: both happen
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    else:
        writer.write_eof()
        await reader.read()
