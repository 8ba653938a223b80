"""How a configured server is reached: what it is started with, and who it is told that we are."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib.util
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

from agentd.core.errors import ConfigError
from agentd.core.redaction import Redactor
from agentd.core.secrets import Reference, find_secret
from agentd.interfaces.mcp.link import Dial, Link
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.program import CallOrder, environment, started
from agentd.interfaces.mcp.server_faults import ServerFault

_GRACE = 1.0  # seconds


def is_installed() -> bool:
    """Whether the SDK is there; it is looked for, not loaded."""
    return importlib.util.find_spec("mcp") is not None


def check_installed(
    what: str, find: Callable[[str], object | None] = importlib.util.find_spec
) -> None:
    """Raise ConfigError where the SDK is missing, which `what` needs; it is looked for, not loaded."""
    if find("mcp") is None:
        raise ConfigError(
            f"{what} needs the extra `mcp`, which is not installed",
            cure="`make run EXTRAS=mcp` in the checkout, or `pip install 'agentd-daemon[mcp]'`",
        )


def source(server: McpServer) -> str:
    """A digest of what makes it the server that it is; secrets are not in it."""
    parts = [server.command, server.url, server.cwd, server.env, sorted(server.secrets)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def dial(
    name: str,
    server: McpServer,
    environ: Mapping[str, str],
    redactor: Redactor,
    grace: float = _GRACE,
) -> Dial:
    """What opens a session with it. Secrets are looked up at each start, and never told in texts.

    Opening one raises ServerFault if a secret is missing.
    """

    def secret(text: str, setting: str) -> str:
        reference = Reference(text, f"[mcp.servers.{name}] {setting}")
        try:
            key = find_secret(reference, environ)
        except ConfigError as error:
            raise ServerFault("no_secret", error.message, cure=error.cure) from None
        redactor.add(key.reveal())
        return key.reveal()

    def order() -> CallOrder:
        own = environment(environ)
        folder = Path(server.cwd or own.get("HOME") or "/").expanduser()
        secrets = {name: secret(text, f"secrets.{name}") for name, text in server.secrets.items()}
        return CallOrder(server.command, folder, {**own, **server.env, **secrets}, grace)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Link]:
        sdk = await asyncio.to_thread(_sdk)
        if server.command:
            async with started(order()) as program, sdk.to_program(program) as link:
                yield link
        else:
            headers = {}
            if server.bearer:
                headers["Authorization"] = f"Bearer {secret(server.bearer, 'bearer')}"
            async with sdk.to_address(server.url, headers, server.timeout) as link:
                yield link

    return opened


def _sdk() -> ModuleType:
    """The SDK; a second of loading, once. What it makes stays, and is not looked at for garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        from agentd.interfaces.mcp import sdk
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
    return sdk
