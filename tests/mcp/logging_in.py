"""Logins for tests: the parts as the daemon puts them together, a browser, and servers that want
logins.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from msgspec import Struct

from agentd.core.clock import SystemClock
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.logins import Logins, LoginStore
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.reaching import dial, login_door, source
from agentd.interfaces.mcp.server import ToolServer

GUARDED = "guarded_server.py"
TRAP = "trap.py"
BACK = "http://127.0.0.1:7/callback"  # nobody listens there: the browser of tests stops before it


@contextmanager
def serving(program: str, *arguments: str) -> Iterator[str]:
    """The address of such a server, which runs while the block does."""
    path = str(Path(__file__).with_name(program))
    argv = [sys.executable, "-W", "ignore", path, *arguments]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class LetterBox(Struct, frozen=True):
    """One server with its login, as a daemon has it."""

    server: ToolServer
    store: LoginStore
    logins: Logins
    redactor: Redactor
    file: Path

    async def log_in(self) -> tuple[int, str]:
        """What comes of a login at which nothing goes wrong."""
        return await self.logins.finish("letters", **await browsed(await self.begin()))

    async def begin(self) -> str:
        return await self.logins.begin("letters", BACK)

    def kept(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text()))


@asynccontextmanager
async def letters(
    folder: Path,
    url: str,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncIterator[LetterBox]:
    """The server at that address while the block runs."""
    clock = clock or SystemClock("UTC")
    one = McpServer(url=url, **{"auth": "oauth", **settings})
    redactor = Redactor()
    store = LoginStore(folder / "logins", "letters", one, redactor, clock.now)
    server = ToolServer(
        "letters",
        one,
        dial("letters", one, environ or {}, redactor, store=store if one.auth else None),
        Catalogue(folder / "mcp", "letters", source(one)),
        clock,
        redactor,
    )
    door = login_door("letters", one, environ or {}, redactor, store)
    logins = Logins({"letters": server}, {"letters": door}, clock)
    async with asyncio.TaskGroup() as group:
        server.open(group)
        logins.open(group)
        try:
            yield LetterBox(server, store, logins, redactor, folder / "logins/letters.json")
        finally:
            server.close()
            logins.close()


async def browsed(url: str) -> dict[str, str]:
    """What a browser would bring back to the command line."""
    async with httpx2.AsyncClient() as client:
        answer = await client.get(url)
    back = urlsplit(answer.headers["location"])
    assert answer.headers["location"].startswith(BACK)
    brought = {key: values[-1] for key, values in parse_qs(back.query).items()}
    return {"code": brought["code"], "state": brought["state"], "issuer": brought.get("iss", "")}


async def played(url: str, do: str = "") -> dict[str, int]:
    """Have the service do something; how often it has done what."""
    async with httpx2.AsyncClient() as client:
        address = url.replace("/mcp", "/control")
        answer = await (client.post(address, params={"do": do}) if do else client.get(address))
    return dict(answer.json())
