"""Runs an MCP server that is a program: pipes with bounds on its output, and a stop that always
succeeds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agentd.interfaces.mcp.link import ServerFault

_LINE = 4 * 1024 * 1024  # bytes of one message
_BURST = 32 * 1024 * 1024  # bytes that the program may write between two messages of agentd
_MESSAGES = 5000  # lines, likewise
_TAIL = 2000  # bytes kept of the end of standard error
# What a program needs to run as usual. The daemon's keys and its systemd socket are not passed on.
_PASSED_ON = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "TMPDIR",
        "SSL_CERT_FILE",  # certificates: behind a company's gateway nothing loads without them
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "DBUS_SESSION_BUS_ADDRESS",
    ]
)


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """How to start a program. `environ` contains secrets and is left out of the repr."""

    command: tuple[str, ...]
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    grace: float = 1.0  # seconds to end after its input is closed, and again after SIGTERM


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the daemon's environment that programs of MCP servers get."""
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }


class Program:
    """A running server program. `ended` is set when no more output comes; `fault` says why if the
    program broke a bound.
    """

    def __init__(self, process: Process, grace: float) -> None:
        self._process = process
        self._grace = grace
        self._lines = 0
        self._bytes = 0
        self._last_words = b""
        self.ended = asyncio.Event()
        self.fault: ServerFault | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def send(self, line: bytes) -> None:
        """Write a line to standard input. Raises ConnectionError if the program has closed it."""
        assert self._process.stdin is not None
        self._lines = self._bytes = 0
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of standard output until the program ends or exceeds a bound; sets
        `ended` then.
        """
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._lines += 1
                self._bytes += len(line)
                if self._lines > _MESSAGES or self._bytes > _BURST:
                    self.fault = ServerFault("flooded", "it wrote more than anybody had asked for")
                    return
                yield line
        except ValueError:
            mib = _LINE // 1024**2
            self.fault = ServerFault("flooded", f"it wrote a message of more than {mib} MiB")
        finally:
            self.ended.set()

    async def listen(self) -> None:
        """Read standard error to its end and keep the last `_TAIL` bytes."""
        assert self._process.stderr is not None
        while said := await self._process.stderr.read(65536):
            self._last_words = (self._last_words + said)[-_TAIL:]

    async def cause(self) -> ServerFault:
        """Return why the program is gone: the broken bound, or its exit code with the last line of
        standard error.
        """
        if self.fault is not None:
            return self.fault
        await self._is_gone()
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        lines = self._last_words.decode(errors="replace").strip().splitlines()
        said = f": {lines[-1].strip()[:200]}" if lines else ""
        return ServerFault("died", f"it {how}{said}")

    async def end(self) -> None:
        """Stop the program: close its input, then SIGTERM, then SIGKILL to the whole process group,
        each after the grace time.
        """
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        if not await self._is_gone():
            self._signal(signal.SIGTERM)
            await self._is_gone()
        self._signal(signal.SIGKILL)  # also if it is gone: its children may run on
        if process.stdin is not None and process.stdin.transport.get_write_buffer_size():
            process.stdin.transport.abort()  # do not wait until unread input is flushed

    async def _is_gone(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._process.wait()
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def start_program(order: ProgramStart) -> AsyncIterator[Program]:
    """Run a program for as long as the block runs. Raises ServerFault if it cannot be started."""
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=_LINE, loop=loop),
            *order.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(order.environ),
            cwd=order.folder,
            start_new_session=True,  # a group of its own, so that its children end with it
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerFault(
            "not_found",
            f"{order.command[0]} cannot be started: {reason}",
            cure="correct its command and cwd",
        ) from None
    program = Program(Process(transport, protocol, loop), order.grace)
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(program.listen())
        try:
            yield program
        finally:
            await program.end()
            listening.cancel()
            transport.close()  # a child in its own process group may keep the pipes open for ever
