"""A daemon in a folder of its own, with an instant model beside it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LIMIT = 16 * 1024 * 1024
_HELLO = {"protocolVersion": 1, "clientInfo": {"name": "benchmark", "version": "1"}}
_READY_WITHIN = 30.0


class Client:
    """A connection that calls methods and drops all notifications. What is asked is all allowed, or
    nothing of it.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, allows: bool = False
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._allows = allows
        self._last = 0

    async def call(self, method: str, **params: Any) -> Any:
        """The result of one method; calls of one client go one after the other."""
        self._last += 1
        frame = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._writer.write(json.dumps(frame).encode() + b"\n")
        needle = b'"id":%d,' % self._last
        while True:
            line = await self._reader.readline()
            if not line:
                raise ConnectionError(method)
            if b'"session/request_permission"' in line:
                self._reply(json.loads(line))
                continue
            if needle not in line.replace(b'"id": ', b'"id":'):
                continue
            answer = json.loads(line)
            if answer.get("id") == self._last and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _reply(self, asked: dict[str, Any]) -> None:
        yes = [one for one in asked["params"]["options"] if one["kind"].startswith("allow")]
        outcome = {"outcome": "cancelled"}
        if self._allows and yes:
            outcome = {"outcome": "selected", "optionId": yes[0]["optionId"]}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}}
        self._writer.write(json.dumps(answer).encode() + b"\n")

    async def say(self, session: str, text: str) -> Any:
        """Run one turn."""
        prompt = [{"type": "text", "text": text}]
        return await self.call("session/prompt", sessionId=session, prompt=prompt)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    async def new_session(self) -> str:
        """The key of a new session."""
        made = await self.call("session/new", cwd="/", mcpServers=[])
        return str(made["sessionId"])


async def connected(home: Path, *, allows: bool = False) -> Client:
    """A client of the daemon of that home that has said hello. Raises OSError while there is
    none.
    """
    reader, writer = await asyncio.open_unix_connection(str(home / "agentd.sock"), limit=_LIMIT)
    client = Client(reader, writer, allows=allows)
    try:
        await client.call("initialize", **_HELLO)
    except BaseException:
        client.close()
        raise
    return client


@dataclass(slots=True)
class Daemon:
    """A running daemon."""

    process: subprocess.Popen[bytes]
    home: Path

    @property
    def pid(self) -> int:
        """The daemon's own process."""
        return self.process.pid

    @asynccontextmanager
    async def client(self, *, allows: bool = False) -> AsyncIterator[Client]:
        """A client that has said hello."""
        client = await connected(self.home, allows=allows)
        try:
            yield client
        finally:
            client.close()

    async def settled(self) -> None:
        """Return when the index has caught up."""
        async with self.client() as client:
            while (await client.call("_agentd/status"))["index"]["state"] != "ready":
                await asyncio.sleep(0.2)


@asynccontextmanager
async def daemon(
    home: Path, port: int, model: str = "instant", settings: str = ""
) -> AsyncIterator[Daemon]:
    """A daemon on `home` that has answered `initialize`; `settings` are added to its
    configuration.
    """
    started = Daemon(launch(home, with_model(port, model) + settings), home)
    try:
        await first_answer(started)
        yield started
    finally:
        stop(started.process)


def spawn(home: Path, port: int, model: str = "instant") -> subprocess.Popen[bytes]:
    """Start a daemon; its log goes to `daemon.log`."""
    return launch(home, with_model(port, model))


def with_model(port: int, model: str = "instant") -> str:
    """A configuration with that model on that port."""
    return (
        f'[provider]\nkind = "anthropic"\nbase_url = "http://127.0.0.1:{port}"\nmodel = "{model}"\n'
    )


def launch(home: Path, config: str) -> subprocess.Popen[bytes]:
    """Start a daemon with a configuration; its log goes to `daemon.log`."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    with (home / "daemon.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "agentd", "run"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def environment(home: Path) -> dict[str, str]:
    """What the daemon and its commands are started with."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "AGENTD_HOME": str(home), "ANTHROPIC_API_KEY": "no-real-key"}


async def first_answer(started: Daemon) -> None:
    """Return when `initialize` has been answered."""
    deadline = time.monotonic() + _READY_WITHIN
    while True:
        with suppress(FileNotFoundError, ConnectionError):
            async with started.client():
                return
        if started.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((started.home / "daemon.log").read_text())
        await asyncio.sleep(0.002)


def stop(process: subprocess.Popen[bytes], within: float = 10) -> None:
    """End a daemon. Raises TimeoutExpired when it has not ended within so many seconds."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait(within)


@contextmanager
def model() -> Iterator[int]:
    """The port of a running instant model."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.instant_model"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def newest_body(port: int) -> bytes:
    """The body of the newest request that the model got."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
        body: bytes = response.read()
    return body


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder with a short name, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as path:
        yield Path(path)
