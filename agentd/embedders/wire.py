"""The embedder process's end of the pipes."""

from __future__ import annotations

import os
import select
from typing import Any

from agentd.embedders.frames import LENGTH, Frame, pack, size, unpack

IDLE = None


class Wire:
    """Frames from standard input, frames to standard output; nothing else of the process gets there."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        os.dup2(2, 1)  # what libraries print must not stand between frames
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)

    def receive(self, idle: float | None = IDLE) -> Frame | None:
        """The next frame; None when nobody asks for so long, or never will again. Raises BadFrame."""
        if idle is not None and not select.select([self._in], [], [], idle)[0]:
            return None
        prefix = self._read(LENGTH.size)
        content = self._read(size(prefix)) if prefix is not None else None
        return unpack(content) if content is not None else None

    def send(self, body: bytes = b"", **head: Any) -> None:
        """Send a frame."""
        left = memoryview(pack(Frame(head, body)))
        while left:
            left = left[os.write(self._out, left) :]

    def _read(self, count: int) -> bytes | None:
        parts = []
        while count:
            part = os.read(self._in, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
