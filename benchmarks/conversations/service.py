"""A model service in this process: the Messages API over HTTP, answered by a function."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from benchmarks.conversations.model import Answer
from benchmarks.instant_model import HEAD, chunk, event, start

_LIMIT = 64 * 1024 * 1024
_numbers = itertools.count(1)

Json = dict[str, Any]


@asynccontextmanager
async def served(answer: Callable[[Json], Answer]) -> AsyncIterator[int]:
    """The port of a service that gives these answers until the block ends."""
    connected: dict[asyncio.StreamWriter, asyncio.Event] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected[writer] = left = asyncio.Event()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                reply = answer(json.loads(await reader.readexactly(length)))
                writer.write(HEAD + chunk(_stream(reply, length)) + chunk(b""))
                await writer.drain()
        writer.close()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LIMIT)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer, left in connected.items():
            writer.close()
            await left.wait()


def _stream(reply: Answer, size: int) -> bytes:
    events = [start(size // 4)]
    if reply.text:
        block: Json = {"type": "text", "text": ""}
        events += _block(0, block, {"type": "text_delta", "text": reply.text})
    if reply.tool:
        block = {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": reply.tool}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.input)}
        events += _block(int(bool(reply.text)), {**block, "input": {}}, delta)
    usage = {"output_tokens": 5 + len(reply.text) // 4}
    stop = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    return b"".join(
        [*events, event("message_delta", delta=stop, usage=usage), event("message_stop")]
    )


def _block(index: int, block: Json, delta: Json) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=block),
        event("content_block_delta", index=index, delta=delta),
        event("content_block_stop", index=index),
    ]
