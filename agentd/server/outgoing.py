"""What waits to be written to one client, never more than its share."""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from agentd.ports import Clock
from agentd.server.patience import time_limit
from agentd.server.settings import ServerSettings

log = structlog.get_logger()

_PIECE = 64 * 1024


class Outgoing:
    """A bounded queue of frames and the task that writes them.

    `send` never waits. A client whose queue is full, or that has taken nothing for `drop_after`, is
    dropped: the connection is aborted and everything still queued is gone.
    """

    def __init__(
        self, writer: asyncio.StreamWriter, settings: ServerSettings, clock: Clock
    ) -> None:
        self._writer = writer
        self._limit = settings.client_buffer_bytes
        self._drop_after = settings.drop_after.total_seconds()
        self._clock = clock
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._pushed = 0  # bytes of a frame that may be as large as it likes
        self._something = asyncio.Event()
        self._space = asyncio.Event()
        self._space.set()
        self._nothing = asyncio.Event()
        self._nothing.set()
        self._is_closed = False

    def send(self, frame: bytes) -> None:
        """Queue a frame; one that does not fit ends the connection."""
        if self._is_closed:
            return
        # A frame larger than the whole buffer still passes when it is alone.
        if self._frames and self._size + len(frame) > self._limit + self._pushed:
            self._drop("client_buffer_full")
            return
        self._frames.append(frame)
        self._size += len(frame)
        self._something.set()
        self._nothing.clear()
        if self._size > self._limit // 4:
            self._space.clear()

    async def push(self, frame: bytes) -> None:
        """Queue a frame of any size once nothing waits before it; frames behind it have their room
        all the same.
        """
        await self._nothing.wait()
        self._pushed = len(frame)
        self.send(frame)

    async def wait_room(self) -> None:
        """Return once most of the buffer is free; at once when the client is gone."""
        await self._space.wait()

    def close(self) -> None:
        """Take nothing more; `run` ends when what is queued has been written."""
        self._is_closed = True
        self._something.set()
        self._space.set()
        self._nothing.set()

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Write until closed or dropped."""
        try:
            self._require_open()
            self._writer.transport.set_write_buffer_limits(high=0)
            while await self._wait_frames():
                self._require_open()
                self._write_piece()
                if self._writer.transport.get_write_buffer_size():
                    async with time_limit(group, self._clock, self._drop_after):
                        await self._writer.drain()
            if not self._writer.transport.is_closing():
                self._writer.write_eof()
        except TimeoutError:
            self._drop("client_reads_nothing")
        except OSError:
            self._drop("client_gone")

    def _require_open(self) -> None:
        """Raises ConnectionResetError when the client has gone: of that a write says nothing in one event
        loop, and ends in an error of the loop's own in the other.
        """
        if self._writer.transport.is_closing():
            raise ConnectionResetError

    async def _wait_frames(self) -> bool:
        while not self._frames and not self._is_closed:
            self._something.clear()
            await self._something.wait()
        return bool(self._frames)

    def _write_piece(self) -> None:
        piece = bytearray()  # a write is a system call, which costs more than the copy
        while self._frames and len(piece) < _PIECE:
            piece += self._frames.popleft()
        self._writer.write(piece)
        self._size -= len(piece)
        if not self._frames:
            self._pushed = 0
            self._nothing.set()
        if self._size <= self._limit // 4:
            self._space.set()

    def _drop(self, reason: str) -> None:
        log.info("client_dropped", reason=reason, queued_bytes=self._size)
        self._is_closed = True
        self._frames.clear()
        self._size = 0
        self._something.set()
        self._space.set()
        self._nothing.set()
        self._writer.transport.abort()
