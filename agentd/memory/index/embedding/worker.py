"""A model in a process of its own: started when it is needed, gone when it is not.

The process may be slow, hang, crash or answer nonsense: whoever asks gets an EmbedderFault, the
process is killed, and the next one starts after a pause that grows with each failure. An idle process
ends by itself. Questions overtake texts that are embedded in the background.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Self

import structlog

from agentd.core.errors import EmbedderFault
from agentd.core.paths import ensure_private_dir
from agentd.core.ports import Clock
from agentd.memory.index.embedding import vectors
from agentd.memory.index.embedding.frames import LENGTH, BadFrame, Frame, pack, size, unpack
from agentd.memory.index.embedding.pause import Pause
from agentd.memory.index.embedding.spec import Spec

log = structlog.get_logger()


COMMAND = (sys.executable, "-P", "-m", "agentd.memory.index.embedding.worker_main")

_ENDING = 3.0  # seconds that a process which has closed its pipes gets to end


class Child:
    """The daemon's end of an embedder process, which takes frames and gives frames."""

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


STARTING = 180.0  # seconds without a sign of life from a process that loads its model
BATCH_TEXTS = 32
BATCH_CHARACTERS = 6000  # keeps a batch so short that a question behind it need not wait long
LONGEST_TEXT = 20_000  # characters; a piece of memory is a paragraph


@dataclass(order=True, slots=True)
class _Job:
    """A batch that waits for its vectors."""

    rank: int  # questions first
    number: int
    texts: Sequence[str] = field(compare=False)
    answer: asyncio.Future[list[bytes]] = field(compare=False)


class Worker:
    """An embedder whose model lives in another process; `run` serves it."""

    def __init__(
        self,
        spec: Spec,
        environ: Mapping[str, str],
        folder: Path,
        clock: Clock,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`environ` is all that the process gets to see, `folder` is where it runs."""
        self._spec = spec
        self._environ = dict(environ)
        self._folder = folder
        self._command = tuple(command)
        self._pause = Pause(clock)
        self._jobs: asyncio.PriorityQueue[_Job] = asyncio.PriorityQueue()
        self._numbers = count()
        self._child: Child | None = None
        self._is_over = False
        self.progress = ""  # what a process that starts is at

    @property
    def model(self) -> str:
        """The identity of the vectors."""
        return self._spec.identity

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._spec.dimension

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self._child.pid if self._child is not None and self._child.is_running else None

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """One vector for each text. Raises EmbedderFault; needs `run` to be under way.

        Leaving early is fine: a batch that has begun is finished and thrown away.
        """
        found: list[bytes] = [b""] * len(texts)
        prefix = self._spec.query_prefix if query else self._spec.text_prefix
        for batch in _batches(texts):
            asked = [prefix + texts[index][:LONGEST_TEXT] for index in batch]
            rows = await self._asked(asked, query=query)
            for index, row in zip(batch, rows, strict=True):
                found[index] = row
        return found

    async def run(self) -> None:
        """Answer what is asked until cancelled; then the process is gone, too. It may be run again."""
        self._is_over = False
        try:
            while True:
                job = await self._jobs.get()
                if not job.answer.done():  # else who asked has left
                    await self._serve(job)
        finally:
            self._is_over = True
            if self._child is not None:
                await self._child.end()
            while not self._jobs.empty():
                _refuse(self._jobs.get_nowait(), EmbedderFault("The embedder has stopped."))

    async def _asked(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        self._pause.check()
        if self._is_over:
            raise EmbedderFault("The embedder has stopped.")
        answer: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._jobs.put_nowait(_Job(0 if query else 1, next(self._numbers), texts, answer))
        return await answer

    async def _serve(self, job: _Job) -> None:
        try:
            self._pause.check()
            found = await self._vectors(job)
        except EmbedderFault as fault:
            _refuse(job, fault)
        except BaseException:  # who asked must not wait for ever, whatever ends this
            _refuse(job, EmbedderFault("The embedder has stopped."))
            raise
        else:
            self._pause.worked()
            if not job.answer.done():
                job.answer.set_result(found)

    async def _vectors(self, job: _Job) -> list[bytes]:
        """The answer of a process that works. Raises EmbedderFault and remembers the failure."""
        try:
            try:
                return await self._exchange(job)
            except (EOFError, ConnectionError):
                if self._child is None or await self._child.code() != 0:
                    raise
                return await self._exchange(job)  # it went idle while the batch was on its way
        except EmbedderFault as fault:
            await self._fail(fault)
            raise
        except (OSError, EOFError, BadFrame) as error:
            broken = await self._broken(error)
            await self._fail(broken)
            raise broken from error

    async def _broken(self, error: Exception) -> EmbedderFault:
        """What happened, in words."""
        if isinstance(error, TimeoutError):
            return EmbedderFault(
                f"{self.model} gave no answer in time; its process was ended.",
                cure="Raise timeout in [memory_search.embedder], or name a smaller model.",
            )
        cause = await self._child.cause(error) if self._child else str(error)
        return EmbedderFault(
            f"The process of {self.model} failed: {cause}.",
            cure="Look at `agentd doctor`, or choose another provider in [memory_search].",
        )

    async def _exchange(self, job: _Job) -> list[bytes]:
        child = await self._started()
        head = {"id": job.number, "texts": job.texts, "query": job.rank == 0}
        async with asyncio.timeout(self._spec.timeout):
            await child.send(Frame(head))
            answer = await child.receive()
        if answer.head.get("id") != job.number:
            raise BadFrame("an answer to another question")
        return vectors.rows(answer.body, len(job.texts), self.dimension, self.model)

    async def _started(self) -> Child:
        if self._child is not None and self._child.is_running:
            return self._child
        if self._child is not None:
            await self._child.end()
        folder = ensure_private_dir(self._folder)
        self._child = child = await Child.start(self._environ, folder, self._command)
        log.info("embedder_started", model=self.model, pid=child.pid)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(STARTING) as deadline:
            await child.send(Frame(self._spec.as_json()))
            while not (frame := await child.receive()).head.get("ready"):
                self.progress = str(frame.head.get("progress", ""))[:200]
                log.info("embedder_loading", model=self.model, progress=self.progress)
                deadline.reschedule(loop.time() + STARTING)
        self.progress = ""
        if (found := frame.head.get("dimension")) != self.dimension:
            raise vectors.wrong_size(self.model, int(found or 0), self.dimension)
        return child

    async def _fail(self, fault: EmbedderFault) -> None:
        self.progress = ""
        self._pause.failed(fault)
        log.warning("embedder_failed", model=self.model, error=fault.message)
        if self._child is not None:
            await self._child.end()
            self._child = None


def _batches(texts: Sequence[str]) -> list[list[int]]:
    """The texts' numbers, the short ones together: a batch costs what its longest text costs."""
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(texts)), key=lambda index: len(texts[index])):
        length = min(len(texts[index]), LONGEST_TEXT)
        if not batches or len(batches[-1]) == BATCH_TEXTS or length > room:
            batches.append([])
            room = BATCH_CHARACTERS
        batches[-1].append(index)
        room -= length
    return batches


def _refuse(job: _Job, fault: EmbedderFault) -> None:
    if not job.answer.done():
        job.answer.set_exception(fault)
