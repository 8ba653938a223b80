"""An embedding model in a separate process, started on demand and ended when idle.

If the process is slow, hangs, crashes or sends invalid frames, the caller gets an EmbedderFault,
the process is killed, and the next one starts after a pause that grows with each failure. Queries
are served before texts that are embedded in the background.
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
from agentd.memory.index.embedding.pause import Backoff
from agentd.memory.index.embedding.spec import ModelSpec

log = structlog.get_logger()


COMMAND = (sys.executable, "-P", "-m", "agentd.memory.index.embedding.worker_main")

_ENDING = 3.0  # seconds within which a process that has closed its pipes should end


class EmbedderProcess:
    """The daemon's end of an embedder process: sends and receives frames."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls, environ: Mapping[str, str], folder: Path, command: Sequence[str] = COMMAND
    ) -> Self:
        """Start a process whose environment is `environ` alone. Raises OSError."""
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=dict(environ),
                cwd=folder,
                start_new_session=True,  # so that the terminal's Ctrl-C reaches the daemon alone
            )
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is not known to have ended."""
        return self._process.returncode is None

    async def send(self, frame: Frame) -> None:
        """Write a frame. Raises ConnectionError, EOFError when the process is gone."""
        if self._process.stdin is None:
            raise EOFError
        self._process.stdin.write(pack(frame))
        await self._process.stdin.drain()

    async def receive(self) -> Frame:
        """Return the next frame. Raises EOFError when the process is gone, BadFrame for an invalid
        frame, and EmbedderFault for an error that the process reports.
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
        """Wait for the process to end and return its exit code; None if it is still running after
        _ENDING seconds.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                return await self._process.wait()
        return None

    async def cause(self, error: Exception) -> str:
        """Return how the process ended, in words; if it has not ended, what the error says."""
        if isinstance(error, (EOFError, ConnectionError)):
            code = await self.code()
            if code is not None and code < 0:
                return f"it was killed by {signal.Signals(-code).name}"
            if code is not None:
                return f"it ended with code {code}"
        return str(error) or type(error).__name__

    async def end(self) -> None:
        """Kill the process if it still runs, and return when it has been reaped and its pipes are
        closed.
        """
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


STARTING = 180.0  # seconds without a message while the process loads its model
BATCH_TEXTS = 32
BATCH_CHARACTERS = 6000  # keeps a batch short, so that a query behind it is not delayed for long
LONGEST_TEXT = 20_000  # characters; a chunk is seldom longer than a paragraph


@dataclass(order=True, slots=True)
class _Job:
    """A batch that waits for its vectors."""

    rank: int  # 0 for queries, which go first; 1 for texts
    number: int
    texts: Sequence[str] = field(compare=False)
    answer: asyncio.Future[list[bytes]] = field(compare=False)


class Worker:
    """An embedder whose model runs in another process. Requests are served while `run` runs."""

    def __init__(
        self,
        spec: ModelSpec,
        environ: Mapping[str, str],
        folder: Path,
        clock: Clock,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`environ` is the whole environment of the process, `folder` its working directory."""
        self._spec = spec
        self._environ = dict(environ)
        self._folder = folder
        self._command = tuple(command)
        self._pause = Backoff(clock)
        self._jobs: asyncio.PriorityQueue[_Job] = asyncio.PriorityQueue()
        self._numbers = count()
        self._child: EmbedderProcess | None = None
        self._is_over = False
        self.progress = ""  # what a process that is starting reports

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
        """The id of the running process; None without one."""
        return self._child.pid if self._child is not None and self._child.is_running else None

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        """Return one vector for each text. Raises EmbedderFault; waits until `run` serves it.

        A cancelled call is safe: a batch that has begun is completed and dropped.
        """
        found: list[bytes] = [b""] * len(texts)
        prefix = self._spec.query_prefix if query else self._spec.text_prefix
        for batch in _batches(texts):
            asked = [prefix + texts[index][:LONGEST_TEXT] for index in batch]
            rows = await self._ask_process(asked, query=query)
            for index, row in zip(batch, rows, strict=True):
                found[index] = row
        return found

    async def run(self) -> None:
        """Serve requests until cancelled, then end the process. Can be called again afterwards."""
        self._is_over = False
        try:
            while True:
                job = await self._jobs.get()
                if not job.answer.done():  # else the caller has left
                    await self._serve(job)
        finally:
            self._is_over = True
            if self._child is not None:
                await self._child.end()
            while not self._jobs.empty():
                _refuse(self._jobs.get_nowait(), EmbedderFault("The embedder has stopped."))

    async def _ask_process(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
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
        except BaseException:  # the caller must not wait for ever, whatever ends this
            _refuse(job, EmbedderFault("The embedder has stopped."))
            raise
        else:
            self._pause.worked()
            if not job.answer.done():
                job.answer.set_result(found)

    async def _vectors(self, job: _Job) -> list[bytes]:
        """Return the vectors from the process, starting it if necessary. Raises EmbedderFault and
        records the failure.
        """
        try:
            try:
                return await self._exchange(job)
            except (EOFError, ConnectionError):
                if self._child is None or await self._child.code() != 0:
                    raise
                return await self._exchange(job)  # it had ended as idle meanwhile
        except EmbedderFault as fault:
            await self._fail(fault)
            raise
        except (OSError, EOFError, BadFrame) as error:
            broken = await self._broken(error)
            await self._fail(broken)
            raise broken from error

    async def _broken(self, error: Exception) -> EmbedderFault:
        """Return the fault that describes the error."""
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

    async def _started(self) -> EmbedderProcess:
        if self._child is not None and self._child.is_running:
            return self._child
        if self._child is not None:
            await self._child.end()
        folder = ensure_private_dir(self._folder)
        self._child = child = await EmbedderProcess.start(self._environ, folder, self._command)
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
    """Group the texts' indexes into batches, by length: a batch costs what its longest text
    costs.
    """
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
