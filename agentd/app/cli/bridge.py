"""The stdio bridge: an editor's pipes on one side, the daemon's socket on the other."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agentd.app.cli.piped import lines_of
from agentd.interfaces.client.connection import alone
from agentd.interfaces.client.conversation import binding
from agentd.interfaces.client.dialing import CURE, ConnectionLost, RemoteError, dial

_LAST_ANSWERS_SECONDS = 2.0


class Bridge:
    """Carries lines both ways, byte for byte, and knows which calls are still open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._open: set[str] = set()
        self._answered = asyncio.Event()

    async def run(self, descriptor: int = 0) -> None:
        """Carry until standard input ends; the last answers get a moment to arrive. Raises
        ConnectionLost when the daemon ends first.
        """
        async with alone(), asyncio.TaskGroup() as group:
            back = group.create_task(self._back())
            async for line in lines_of(descriptor):
                self._note(line, sent=True)
                self._writer.write(line + b"\n")
                await self._writer.drain()
            try:
                async with asyncio.timeout(_LAST_ANSWERS_SECONDS):
                    while self._open:
                        self._answered.clear()
                        await self._answered.wait()
            except TimeoutError:
                pass  # a long turn: the daemon finishes it without us
            back.cancel()

    async def _back(self) -> None:
        try:
            while line := await self._reader.readline():
                await asyncio.to_thread(_write, line)
                self._note(line, sent=False)
        except OSError as error:
            raise ConnectionLost("the connection to the daemon broke", cure=CURE) from error
        raise ConnectionLost("the daemon closed the connection", cure=CURE)

    def _note(self, line: bytes, *, sent: bool) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            return  # the daemon will say what it thinks of it
        if not isinstance(frame, dict) or frame.get("id") is None:
            return
        if ("method" in frame) == sent:
            if sent:
                self._open.add(json.dumps(frame["id"]))
            else:
                self._open.discard(json.dumps(frame["id"]))
                self._answered.set()


async def carry(sockets: Sequence[Path], bind: str | None = None) -> None:
    """Bridge this process's standard input and output; with `bind` nothing but that session exists for
    whoever is at their other end. Raises DaemonUnreachable, RemoteError for a key that can be none.
    """
    reader, writer = await dial(sockets)
    try:
        if bind is not None:
            await _bind(reader, writer, bind)
        await Bridge(reader, writer).run()
    finally:
        writer.close()


async def _bind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: str) -> None:
    """Bind the connection before a single line of the other side is carried."""
    call = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": binding(session)}
    writer.write(json.dumps(call).encode() + b"\n")
    try:
        answer = json.loads(await reader.readline() or b"{}")
    except (OSError, ValueError) as error:
        raise ConnectionLost("the connection to the daemon broke", cure=CURE) from error
    if "error" in answer:
        raise RemoteError.from_frame(answer["error"])
    if "result" not in answer:
        raise ConnectionLost("the daemon closed the connection", cure=CURE)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
