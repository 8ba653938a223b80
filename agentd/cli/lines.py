"""Lines of standard input, read beside the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

_BLOCK = 65536
_AHEAD = 16  # blocks read before anybody wants them


async def lines_of(descriptor: int) -> AsyncIterator[bytes]:
    """The lines of a pipe, file or terminal, without their ends. A thread waits for them, since an
    event loop cannot wait for a regular file; it reads the descriptor itself, because a buffered
    file would hold a lock that the end of the process needs.
    """
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def pump() -> None:
        block = b"x"
        while block:
            room.acquire()
            block = os.read(descriptor, _BLOCK)
            try:
                loop.call_soon_threadsafe(blocks.put_nowait, block)
            except RuntimeError:
                return  # the event loop has ended: nobody wants the rest

    threading.Thread(target=pump, daemon=True, name="agentd-stdin").start()
    rest = b""
    while block := await blocks.get():
        room.release()
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest
