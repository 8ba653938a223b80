"""What one client sends, a line at a time, and what all clients have begun to send and not finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentd.server import frames
from agentd.server.frames import FrameError

PIECE = 16 * 1024  # bytes read at once, half of what is buffered below
_FRAMES = 16  # of the longest kind, that may be unfinished at once


class Unfinished:
    """The frames that have begun to come, over all clients. Together they hold no more bytes than 16 of
    the longest: then the client whose frame began first is given up.
    """

    def __init__(self, longest: int) -> None:
        """`longest` is what one frame may have, in bytes."""
        self._most = _FRAMES * longest
        self._held: dict[Callable[[], None], int] = {}
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self._size

    def hold(self, give_up: Callable[[], None], size: int) -> None:
        """A frame has so many bytes by now; `give_up` is called if there is no room for it any more."""
        self._size += size - self._held.get(give_up, 0)
        self._held[give_up] = size
        while self._size > self._most:
            oldest = next(iter(self._held))
            self.release(oldest)
            oldest()

    def release(self, give_up: Callable[[], None]) -> None:
        """The frame is finished, or nobody waits for its end."""
        self._size -= self._held.pop(give_up, 0)


class Incoming:
    """The lines that come from one client, none longer than `longest` bytes."""

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
        """The next line without its end; None at the end of the stream, before which the last line may
        lack its own. Raises FrameError, fatal, for one that is too long; OSError.
        """
        while (end := self._rest.find(b"\n", self._seen)) < 0:
            self._seen = len(self._rest)
            if self._seen > self._longest:
                raise self._too_long()
            piece = await self._reader.read(PIECE)
            if not piece:
                last = bytes(self._rest)
                self.close()
                return last or None
            self._rest += piece
            self._unfinished.hold(self._give_up, len(self._rest))
        self._unfinished.release(self._give_up)
        if end > self._longest:
            raise self._too_long()
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._seen = 0
        return line

    async def discard(self) -> None:
        """Read on without looking until the client stops."""
        self.close()
        while await self._reader.read(PIECE):
            pass

    def close(self) -> None:
        """Forget what has come and is no whole line."""
        self._rest, self._seen = bytearray(), 0
        self._unfinished.release(self._give_up)

    def _too_long(self) -> FrameError:
        message = f"the frame is longer than {self._longest} bytes"
        return FrameError(frames.INVALID_REQUEST, message, fatal=True)
