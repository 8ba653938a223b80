"""Embedder processes that misbehave on order, and a service over a socket."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest

from agentd.memory.index.embedding.export import clean
from agentd.memory.index.embedding.spec import ModelSpec
from agentd.memory.index.embedding.worker import Worker
from agentd.testing import FakeClock

FAKE = """
import json, os, signal, struct, sys
from agentd.memory.index.embedding.worker_main import settle
from agentd.memory.index.embedding.worker_main import WorkerPipes

DIMENSION = 4


def vector(text):
    seed = sum(text.encode()) % 251 + 1
    return struct.pack("<4f", seed, 1, 0, 0)


settle(os.getppid())
wire = WorkerPipes()
spec = wire.receive().head
os.path.exists("gate") or os.mkfifo("gate")
print("libraries print what they like")
with open("starts", "a") as file:
    file.write(json.dumps({"pid": os.getpid(), "environ": dict(os.environ)}) + "\\n")
if spec["source"] == "broken":
    wire.send(error="the model is broken", cure="mend it")
    sys.exit(1)
if spec["source"] == "fetched":
    wire.send(progress="fetched 1 of 2 MB")
wire.send(ready=True, dimension=5 if spec["source"] == "five" else DIMENSION)
while (request := wire.receive(spec["idle"])) is not None:
    texts = request.head["texts"]
    with open("asked", "a") as file:
        file.write(json.dumps(request.head) + "\\n")
    if "crash" in texts and not os.path.exists("crashed"):
        open("crashed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if "poison" in texts:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hang" in texts:
        signal.pause()
    if "garbage" in texts:
        os.write(wire._out, b"what is this? " * 10)
        signal.pause()
    if "raise" in texts:
        wire.send(error="ValueError: no", id=request.head["id"])
        continue
    body = b"".join(map(vector, texts))
    if "short" in texts:
        body = body[4:]
    if "nan" in texts:
        body = struct.pack("<4f", float("nan"), 0, 0, 0) + body[16:]
    if "slow" in texts:
        with open("gate") as gate:
            gate.readline()
    wire.send(body, id=request.head["id"] + ("other" in texts))
"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake(tmp_path):
    """What starts a process that does as the texts say."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    return (sys.executable, "-P", str(script))


@pytest.fixture
def serving(tmp_path, clock, fake):
    """A worker that runs as long as the block."""

    @asynccontextmanager
    async def serving(source: str = "fine", **settings) -> AsyncIterator[Worker]:
        spec = ModelSpec("onnx", "fake-4", source, 4, **settings)
        folder = tmp_path / "run"
        worker = Worker(spec, clean(os.environ, folder, 1), folder, clock, fake)
        async with asyncio.TaskGroup() as group:
            run = group.create_task(worker.run())
            yield worker
            run.cancel()

    return serving


@pytest.fixture
def let_go(tmp_path):
    """Lets a process go on that was told to be slow, now or when it comes to it."""
    with ExitStack() as gates:

        def let_go() -> None:
            descriptor = os.open(tmp_path / "run" / "gate", os.O_RDWR)  # waits for no reader
            gates.callback(os.close, descriptor)
            os.write(descriptor, b"go on\n")

        yield let_go


@pytest.fixture
def told(tmp_path):
    """The lines of a file that the process has written."""

    def told(name: str) -> list[dict]:
        file = tmp_path / "run" / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    return told


class Service:
    """An embeddings endpoint on the loopback; `answers` are given in order, then the `usual`
    ones.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Callable[[dict], tuple[int, dict | bytes, dict[str, str]]]] = []
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.before: Callable[[], Awaitable[None]] | None = None
        self.usual: Callable[[dict], tuple[int, dict | bytes, dict[str, str]]] = good
        # Held here, or one that waits for ever is collected.
        self._serving: set[asyncio.Task] = set()

    async def end(self) -> None:
        """Cut the connections that are still open."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(task := asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")[1:]
                fields = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines) if k}
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                self.requests.append(body)
                self.headers.append(fields)
                if self.before is not None:
                    await self.before()
                answer = self.answers.pop(0) if self.answers else self.usual
                status, content, extra = answer(body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                lines = [f"HTTP/1.1 {status} so", f"content-length: {len(data)}"]
                lines += [f"{name}: {value}" for name, value in extra.items()]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()


def good(body: dict) -> tuple[int, dict, dict[str, str]]:
    """Vectors in the wrong order, with the right numbers."""
    data = [
        {"index": place, "embedding": [len(text), 2.0, 0.0]}
        for place, text in enumerate(body["input"])
    ]
    return 200, {"data": data[::-1], "usage": {"total_tokens": 10}}, {}


@asynccontextmanager
async def served() -> AsyncIterator[Service]:
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    async with server:
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield service
        await service.end()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with served() as service:
        yield service


@pytest.fixture
async def other_service() -> AsyncIterator[Service]:
    async with served() as service:
        yield service
