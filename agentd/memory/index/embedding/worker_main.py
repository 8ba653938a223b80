"""The embedder process: `python -m agentd.memory.index.embedding.worker_main`, with frames on its
standard streams.

The first frame is a ModelSpec, or an order to export a model; each further frame holds texts to
embed. The process ends with the daemon, and after `ModelSpec.idle` seconds without a request.
"""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agentd.core.errors import AgentdError
from agentd.memory.index.embedding.frames import LENGTH, Frame, pack, size, unpack
from agentd.memory.index.embedding.onnx_files import PACKAGED
from agentd.memory.index.embedding.spec import ModelSpec

IDLE = None


class WorkerPipes:
    """The process's end of the pipes: reads frames from standard input and writes frames to
    standard output, both of which are hidden from libraries.
    """

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        os.dup2(2, 1)  # what libraries print must not get between frames
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)

    def receive(self, idle: float | None = IDLE) -> Frame | None:
        """Return the next frame; None at the end of input, or after `idle` seconds without one.
        Raises BadFrame.
        """
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


TITLE = "agentd-embedder"

_SET_DEATH_SIGNAL, _SET_NAME = 1, 15  # of prctl(2)
# Fields of /proc/self/stat after the name: start and end of the command line.
_ARGUMENTS = slice(45, 47)


def settle(parent: int) -> None:
    """Set the process title, and have the kernel kill this process when `parent` dies. Raises
    SystemExit if it is dead already.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_NAME, ctypes.c_char_p(TITLE.encode()), 0, 0, 0)
    libc.prctl(_SET_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)
    with suppress(OSError, ValueError, IndexError):
        _rename_command_line()
    with suppress(OSError):  # out of memory, the kernel kills this, not the daemon
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def limit_memory(megabytes: int) -> None:
    """Make allocations beyond that limit fail. Does nothing where setting limits is forbidden: such
    a service has its own.
    """
    with suppress(OSError, ValueError):
        size = megabytes << 20
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _rename_command_line() -> None:
    """Write the title over the command line, where `ps` reads it."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start, end = map(int, fields[_ARGUMENTS])
    room = end - start
    if room > len(TITLE) + 1:
        # A non-zero last byte tells the kernel to read the title up to the first zero.
        title = TITLE.encode().ljust(room - 1, b"\0") + b"."
        ctypes.memmove(start, title, room)


class Model(Protocol):
    """A model that turns texts into vectors."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """Return one row for each text, of length 1 or of zeros."""


class JoinedModels:
    """Several models as one: their vectors are concatenated, so that the cosine of two joined
    vectors is the weighted mean of the models' cosines.
    """

    def __init__(self, parts: Sequence[tuple[Model, float]]) -> None:
        self._parts = parts
        self.dimension = sum(model.dimension for model, _ in parts)

    def embed(self, texts: list[str], *, query: bool) -> npt.NDArray[np.float32]:
        """Return one row of length 1 for each text, or of zeros if every model returns zeros."""
        rows = [model.embed(texts, query=query) * weight**0.5 for model, weight in self._parts]
        found: npt.NDArray[np.float32] = np.concatenate(rows, axis=1).astype(np.float32)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found


log = logging.getLogger("agentd.memory.index.embedding")


def main() -> int:
    """Serve the daemon until it is gone or idle; return the exit code."""
    settle(os.getppid())
    wire = WorkerPipes()
    order = wire.receive()
    if order is None:
        return 1
    try:
        return _export(order, wire) if "export" in order.head else _serve(order, wire)
    except (AgentdError, MemoryError) as error:
        wire.send(error=str(error) or "not enough memory", cure=getattr(error, "cure", ""))
    except Exception as error:
        # Libraries raise anything; the daemon gets the message and decides what comes next.
        log.exception("the embedder failed")
        wire.send(error=f"{type(error).__name__}: {error}"[:300])
    return 1


def _serve(order: Frame, wire: WorkerPipes) -> int:
    spec = ModelSpec.from_json(order.head)
    limit_memory(spec.memory_limit_mb)
    model = load(spec, wire)
    wire.send(ready=True, dimension=model.dimension)
    while (request := wire.receive(spec.idle)) is not None:
        rows = model.embed(request.head["texts"], query=request.head["query"])
        wire.send(rows.astype("<f4", copy=False).tobytes(), id=request.head["id"])
    return 0


def load(spec: ModelSpec, wire: WorkerPipes) -> Model:
    """Load the model, importing only the libraries that it needs. Raises EmbedderFault."""
    if spec.backend == "onnx":
        return _onnx(Path(spec.source), spec.threads)
    if spec.backend in ("multilingual", "both"):
        from agentd.memory.index.embedding.e5_files import E5Files
        from agentd.memory.index.embedding.e5_model import E5Model

        files = E5Files.find(Path(spec.source))
        many = E5Model(files, spec.threads)
        if spec.backend == "multilingual":
            return many
        return JoinedModels(((_onnx(PACKAGED, spec.threads), 1.0), (many, files.weight)))
    from agentd.memory.index.embedding.torch_model import TorchModel

    source = spec.source
    if spec.download:
        from agentd.memory.index.embedding.hub import fetch

        source = fetch(spec, lambda text: wire.send(progress=text))
    return TorchModel(source, spec.threads)


def _onnx(source: Path, threads: int) -> Model:
    from agentd.memory.index.embedding.onnx_model import OnnxModel

    return OnnxModel(source, threads)


def _export(order: Frame, wire: WorkerPipes) -> int:
    from agentd.memory.index.embedding.onnx_export import export

    source, target = order.head["export"], order.head["target"]
    limit_memory(order.head["memory_limit_mb"])
    made = export(
        Path(source), Path(target), order.head["name"], lambda text: wire.send(progress=text)
    )
    wire.send(ready=True, **made)
    return 0


if __name__ == "__main__":
    # Libraries of models take a second to free what the kernel reclaims anyway.
    os._exit(main())
