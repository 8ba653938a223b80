"""Bounds of a connection: the size of what comes in and goes out, and how long agentd waits for
either.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from agentd.core.ports import Clock
from agentd.interfaces.acp import frames
from agentd.interfaces.acp.frames import CallId, FrameError
from agentd.interfaces.acp.socket_settings import ServerSettings

log = structlog.get_logger()


@asynccontextmanager
async def time_limit(group: asyncio.TaskGroup, clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError inside the block after `seconds` of the clock. The timer lives in
    `group`.
    """
    async with asyncio.timeout(None) as scope:
        timer = group.create_task(_expire(scope, clock, seconds))
        try:
            yield
        finally:
            timer.cancel()


async def _expire(scope: asyncio.Timeout, clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
    scope.reschedule(asyncio.get_running_loop().time())


READ_BYTES = 16 * 1024  # bytes read at once, half of what is buffered below
_FRAMES = 16  # unfinished frames of all clients together, in multiples of the longest frame
_SKIPPED = 64  # a line up to this multiple of it is refused; a longer one ends the connection
_ENDS = 4096  # bytes at each end of an overlong line that are searched for its id
_MEMBER = rb'\s*"(?:jsonrpc|id|method)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d+)\s*'
_HEAD = re.compile(rb"\s*\{((?:" + _MEMBER + rb",)*)")  # members before the long one
_TAIL = re.compile(rb"((?:," + _MEMBER + rb"){1,3}+)\}\s*\Z")  # and behind it


class Unfinished:
    """The incomplete frames of all clients. Together they may have 16 times the bytes of the
    longest allowed frame; beyond that the client whose frame began first is dropped.
    """

    def __init__(self, longest: int) -> None:
        """`longest` is the most bytes of one frame."""
        self._most = _FRAMES * longest
        self._held: dict[Callable[[], None], int] = {}
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes of all incomplete frames."""
        return self._size

    def set_size(self, give_up: Callable[[], None], size: int) -> None:
        """Set the size of an incomplete frame, which `give_up` identifies. While the total is too
        large, the oldest frame's `give_up` is called.
        """
        self._size += size - self._held.get(give_up, 0)
        self._held[give_up] = size
        while self._size > self._most:
            oldest = next(iter(self._held))
            self.drop(oldest)
            oldest()

    def drop(self, give_up: Callable[[], None]) -> None:
        """Stop counting a frame: it is complete or abandoned."""
        self._size -= self._held.pop(give_up, 0)


class Incoming:
    """The lines from one client, each of at most `longest` bytes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        longest: int,
        unfinished: Unfinished,
        give_up: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._longest = longest
        self._unfinished = unfinished
        self._give_up = give_up
        self._rest = bytearray()
        self._seen = 0  # bytes of it in which there is no end of a line

    async def line(self) -> bytes | None:
        """Return the next line without its newline; None at the end of the stream, where the last
        line may lack a newline. Raises FrameError for a line over the limit: recoverable if the
        rest of the line could be skipped, fatal if it is far too long. Raises OSError.
        """
        while (end := self._rest.find(b"\n", self._seen)) < 0:
            self._seen = len(self._rest)
            if self._seen > self._longest:
                raise await self._skipped()
            piece = await self._reader.read(READ_BYTES)
            if not piece:
                last = bytes(self._rest)
                self.close()
                return last or None
            self._rest += piece
            self._unfinished.set_size(self._give_up, len(self._rest))
        self._unfinished.drop(self._give_up)
        line = self._cut(end)
        if end > self._longest:
            raise self._too_long(end, line[:_ENDS], line[-_ENDS:])
        return line

    async def discard(self) -> None:
        """Read and discard until the client stops sending."""
        self.close()
        while await self._reader.read(READ_BYTES):
            pass

    def close(self) -> None:
        """Drop the bytes of an incomplete line."""
        self._rest, self._seen = bytearray(), 0
        self._unfinished.drop(self._give_up)

    def _cut(self, end: int) -> bytes:
        """Remove and return the line that ends at `end`."""
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._seen = 0
        return line

    async def _skipped(self) -> FrameError:
        """Read to the end of an overlong line without keeping it, and return the error for it."""
        self._unfinished.drop(self._give_up)
        head, size = bytes(self._rest[:_ENDS]), len(self._rest)
        while (end := self._rest.find(b"\n")) < 0 and size <= _SKIPPED * self._longest:
            del self._rest[:-_ENDS]
            piece = await self._reader.read(READ_BYTES)
            if not piece:
                tail = bytes(self._rest)
                self.close()
                return self._too_long(size, head, tail)
            self._rest += piece
            size += len(piece)
            await asyncio.sleep(0)  # what comes without a pause must not hold up the others
        if end < 0:
            return self._too_long(size, head, b"")
        length = size - (len(self._rest) - end)
        return self._too_long(length, head, self._cut(end)[-_ENDS:])

    def _too_long(self, length: int, head: bytes, tail: bytes) -> FrameError:
        """Return the error for a line of so many bytes, of which these are the two ends."""
        message = (
            f"the frame is longer than {self._longest} bytes; send less at once, a smaller picture "
            "perhaps, or raise [server] max_frame_bytes"
        )
        fatal = length > _SKIPPED * self._longest
        call_id = None if fatal else _call_id(head, tail)
        return FrameError(frames.INVALID_REQUEST, message, fatal=fatal, call_id=call_id)


def _call_id(head: bytes, tail: bytes) -> CallId | None:
    """Return the id of the call whose overlong line begins and ends so; None if neither part shows
    it.
    """
    for found in (_HEAD.match(head), _TAIL.search(tail)):
        members = found[1].strip(b",") if found else b""
        try:
            value = json.loads(b"{%s}" % members).get("id")
        except ValueError:
            continue
        if isinstance(value, str | int):
            return value
    return None


_WRITE_BYTES = 64 * 1024


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
        """Queue a frame of any size once the queue is empty; it does not use up the room of later
        frames.
        """
        await self._nothing.wait()
        self._pushed = len(frame)
        self.send(frame)

    async def wait_room(self) -> None:
        """Return once most of the buffer is free; at once when the client is gone."""
        await self._space.wait()

    def close(self) -> None:
        """Accept no more frames; `run` ends when the queue is written."""
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
        """Raise ConnectionResetError if the client has gone: on a closing transport a write fails
        silently in one event loop, and with an error of its own in the other.
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
        while self._frames and len(piece) < _WRITE_BYTES:
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
