"""A daemon that answers wrongly, for whoever judges daemons: a true one, with something in
between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.frames.judging import INTERNAL

Json = dict[str, Any]
Change = Callable[[Json, int], list[Json]]  # of a frame of the daemon and its number


@asynccontextmanager
async def between(daemon: Path, change: Change) -> AsyncIterator[Path]:
    """A socket behind which the daemon seems to be, with its frames changed."""
    place = daemon.with_name("between.sock")
    carried: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_unix_connection(str(daemon), limit=1 << 24)
        sending = asyncio.create_task(_pour(reader, outer))
        number = 0
        try:
            while line := await inner.readline():
                number += 1
                for frame in change(json.loads(line), number):
                    writer.write(json.dumps(frame).encode() + b"\n")
        except OSError:
            pass  # one of them has left
        finally:
            sending.cancel()
            for end in (writer, outer):  # both before any is waited for, which may be cancelled
                end.transport.abort()
            for end in (writer, outer):
                with suppress(OSError):
                    await end.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        carried.add(asyncio.create_task(carry(reader, writer)))

    server = await asyncio.start_unix_server(accept, str(place))
    try:
        yield place
    finally:
        server.close()
        for task in carried:
            task.cancel()
        if carried:
            await asyncio.wait(carried)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.write_eof()


def same(frame: Json, number: int) -> list[Json]:
    return [frame]


def swallowed(frame: Json, number: int) -> list[Json]:
    return [] if "method" not in frame and number == 40 else [frame]


def doubled(frame: Json, number: int) -> list[Json]:
    return [frame] * 2 if "method" not in frame and number == 40 else [frame]


def misnumbered(frame: Json, number: int) -> list[Json]:
    wrong = frame.get("error", {}).get("code") == -32700 and number > 20
    return [{**frame, "error": {**frame["error"], "code": -32600}}] if wrong else [frame]


def broken(frame: Json, number: int) -> list[Json]:
    error = {"code": INTERNAL, "message": "the daemon could not do this; its log says why"}
    is_answer = "result" in frame and number > 20
    return [{"jsonrpc": "2.0", "id": frame["id"], "error": error}] if is_answer else [frame]


def dead(frame: Json, number: int) -> list[Json]:
    """No turn is answered."""
    return [] if "stopReason" in (frame.get("result") or {}) else [frame]
