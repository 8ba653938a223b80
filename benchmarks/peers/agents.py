"""How each agent is started and talked to."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from pathlib import Path
from typing import Any, ClassVar, Protocol

import httpx

from benchmarks.household import Client, connected, environment, spawn

PLACE = Path(__file__).parents[2] / ".peers"
_KEY = "k" * 32  # hermes starts its API with a long one only
_WITHIN = 120.0  # seconds


class Agent(Protocol):
    """An agent in a folder of its own, with a model on a port; made with both."""

    name: ClassVar[str]
    alone: ClassVar[bool]  # only its first process is measured

    @staticmethod
    def is_installed() -> bool:
        """Whether it can be started here."""
        ...

    def launch(self) -> subprocess.Popen[bytes]:
        """Start it."""
        ...

    async def greet(self) -> None:
        """Return when it answers. Raises OSError while it does not."""
        ...

    async def say(self, session: str, text: str) -> None:
        """Run one turn. Raises RuntimeError for another answer than the model's."""
        ...

    async def close(self) -> None:
        """Close what is open to it."""
        ...


class Agentd:
    """agentd, over its socket. The process that makes vectors in the background, and ends, is not
    measured.
    """

    name: ClassVar[str] = "agentd"
    alone: ClassVar[bool] = True

    def __init__(self, home: Path, port: int) -> None:
        self._home = home
        self._port = port
        self._clients: dict[str, tuple[Client, str]] = {}

    @staticmethod
    def is_installed() -> bool:
        """Always."""
        return True

    def launch(self) -> subprocess.Popen[bytes]:
        """See Agent."""
        return spawn(self._home, self._port)

    async def greet(self) -> None:
        """See Agent."""
        client = await connected(self._home)
        client.close()

    async def say(self, session: str, text: str) -> None:
        """See Agent. Each session is talked to by a client of its own."""
        if session not in self._clients:
            client = await connected(self._home)
            self._clients[session] = client, await client.new_session()
        client, key = self._clients[session]
        await client.say(key, text)

    async def close(self) -> None:
        """See Agent."""
        for client, _ in self._clients.values():
            client.close()


class _OverHttp:
    """An agent that serves chat completions on a port of this machine."""

    name: ClassVar[str]
    alone: ClassVar[bool] = False

    def __init__(self, home: Path, port: int) -> None:
        self._home = home
        self._model = f"http://127.0.0.1:{port}/v1"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        base = f"http://127.0.0.1:{self._port}"
        self._http = httpx.AsyncClient(base_url=base, timeout=_WITHIN, trust_env=False)

    async def greet(self) -> None:
        """See Agent."""
        try:
            (await self._http.get("/health")).raise_for_status()
        except httpx.HTTPError as error:
            raise OSError(str(error)) from error

    async def close(self) -> None:
        """See Agent."""
        await self._http.aclose()

    async def _completed(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        while True:
            answer = await self._http.post("/v1/chat/completions", json=body, headers=headers)
            if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            await asyncio.sleep(0.05)  # it takes so many at once only
        if answer.status_code != httpx.codes.OK or "All is well" not in answer.text:
            raise RuntimeError(f"{self.name}: {answer.status_code} {answer.text[:300]}")

    def _started(self, argv: list[str], variables: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self._home / "log").open("ab") as log:
            return subprocess.Popen(
                argv,
                env={**environment(self._home), "HOME": str(self._home), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


class Nanobot(_OverHttp):
    """nanobot, by `nanobot serve`."""

    name: ClassVar[str] = "nanobot-ai 0.3.5"
    wanted = ("nanobot-ai[api]==0.3.5",)
    place = PLACE / "nanobot"

    @classmethod
    def is_installed(cls) -> bool:
        """See Agent."""
        return (cls.place / "bin" / "nanobot").exists()

    def launch(self) -> subprocess.Popen[bytes]:
        """See Agent."""
        workspace, file = str(self._home / "workspace"), self._home / "config.json"
        defaults = {"workspace": workspace, "model": "instant", "provider": "custom"}
        custom = {"apiKey": _KEY, "apiBase": self._model}
        config = {"agents": {"defaults": defaults}, "providers": {"custom": custom}}
        file.write_text(json.dumps(config))
        program = str(self.place / "bin" / "nanobot")
        options = ["--port", str(self._port), "--config", str(file), "--workspace", workspace]
        return self._started([program, "serve", "--host", "127.0.0.1", *options], {})

    async def say(self, session: str, text: str) -> None:
        """See Agent."""
        message = {"role": "user", "content": text}
        await self._completed(
            {"model": "instant", "messages": [message], "session_id": session}, {}
        )


class Hermes(_OverHttp):
    """hermes, by its gateway. Its API holds no history of its own sessions unless it is named."""

    name: ClassVar[str] = "hermes-agent 0.19.0"
    wanted = ("hermes-agent==0.19.0", "aiohttp")
    place = PLACE / "hermes"

    @classmethod
    def is_installed(cls) -> bool:
        """See Agent."""
        return (cls.place / "bin" / "python").exists()

    def launch(self) -> subprocess.Popen[bytes]:
        """See Agent."""
        lines = ("default: instant", "provider: custom", f"base_url: {self._model}")
        config = "\n  ".join(("model:", *lines, f"api_key: {_KEY}"))
        (self._home / "config.yaml").write_text(config + "\n")
        variables = {
            "HERMES_HOME": str(self._home),
            "API_SERVER_ENABLED": "true",
            "API_SERVER_KEY": _KEY,
            "API_SERVER_HOST": "127.0.0.1",
            "API_SERVER_PORT": str(self._port),
        }
        argv = [str(self.place / "bin" / "python"), "-m", "hermes_cli.main", "gateway", "run"]
        return self._started(argv, variables)

    async def say(self, session: str, text: str) -> None:
        """See Agent."""
        message = {"role": "user", "content": text}
        headers = {"Authorization": f"Bearer {_KEY}", "X-Hermes-Session-Id": session}
        await self._completed({"model": "instant", "messages": [message]}, headers)


OTHERS: tuple[type[Nanobot | Hermes], ...] = (Nanobot, Hermes)
KINDS: tuple[type[Agentd | Nanobot | Hermes], ...] = (Agentd, *OTHERS)
