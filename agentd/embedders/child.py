"""The daemon's end of an embedder process."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from agentd.embedders.frames import LENGTH, Frame, pack, size, unpack
from agentd.errors import EmbedderFault

COMMAND = (sys.executable, "-P", "-m", "agentd.embedders.worker_main")

_ENDING = 3.0  # seconds that a process which has closed its pipes gets to end


class Child:
    """A process that takes frames and gives frames."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls, environ: Mapping[str, str], folder: Path, command: Sequence[str] = COMMAND
    ) -> Self:
        """A new process that sees `environ` and nothing else. Raises OSError."""
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=dict(environ),
                cwd=folder,
                start_new_session=True,  # the terminal's Ctrl-C is the daemon's
            )
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, as far as we know."""
        return self._process.returncode is None

    async def send(self, frame: Frame) -> None:
        """Write a frame. Raises ConnectionError, EOFError when the process is gone."""
        if self._process.stdin is None:
            raise EOFError
        self._process.stdin.write(pack(frame))
        await self._process.stdin.drain()

    async def receive(self) -> Frame:
        """The next frame. Raises EOFError when the process is gone, BadFrame for nonsense, and
        EmbedderFault for what the process says went wrong.
        """
        if self._process.stdout is None:
            raise EOFError
        length = size(await self._process.stdout.readexactly(LENGTH.size))
        frame = unpack(await self._process.stdout.readexactly(length))
        if "error" in frame.head:
            cure = str(frame.head.get("cure", ""))
            raise EmbedderFault(str(frame.head["error"])[:500], cure=cure)
        return frame

    async def code(self) -> int | None:
        """How it ended; None if it has closed its pipes and goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                return await self._process.wait()
        return None

    async def cause(self, error: Exception) -> str:
        """What the end of the process says, else the error."""
        if isinstance(error, (EOFError, ConnectionError)):
            code = await self.code()
            if code is not None and code < 0:
                return f"it was killed by {signal.Signals(-code).name}"
            if code is not None:
                return f"it ended with code {code}"
        return str(error) or type(error).__name__

    async def end(self) -> None:
        """Kill it if it still runs, and return when nothing is left of it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        with suppress(ConnectionError):
            if self._process.stdout is not None:
                await self._process.stdout.read()
            if self._process.stdin is not None:
                await self._process.stdin.wait_closed()
