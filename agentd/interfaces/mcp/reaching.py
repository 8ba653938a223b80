"""Opens sessions with configured MCP servers: with the environment, secrets and login each one
needs.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib.util
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType

from agentd.core.errors import ConfigError
from agentd.core.paths import expanded
from agentd.core.redaction import Redactor
from agentd.core.secrets import Reference, find_secret
from agentd.interfaces.mcp.link import Link, ServerFault, SessionOpener
from agentd.interfaces.mcp.logins import LoginDoor, LoginStore, LoginWay
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.program import ProgramStart, environment, start_program

_GRACE = 1.0  # seconds


def is_installed() -> bool:
    """Return whether the SDK is installed, without importing it."""
    return importlib.util.find_spec("mcp") is not None


def check_installed(
    what: str, find: Callable[[str], object | None] = importlib.util.find_spec
) -> None:
    """Raise ConfigError if the SDK, which `what` needs, is not installed. The SDK is not
    imported.
    """
    if find("mcp") is None:
        raise ConfigError(
            f"{what} needs the extra `mcp`, which is not installed",
            cure="`make run EXTRAS=mcp` in the checkout, or `pip install 'agentd-daemon[mcp]'`",
        )


def source(server: McpServer) -> str:
    """Return a digest of the settings that identify a server; the values of secrets are not part of
    it.
    """
    parts = [server.command, server.url, server.cwd, server.env, sorted(server.secrets)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def dial(
    name: str,
    server: McpServer,
    environ: Mapping[str, str],
    redactor: Redactor,
    grace: float = _GRACE,
    store: LoginStore | None = None,
) -> SessionOpener:
    """Return the SessionOpener of a server: over a program, or over HTTP with a bearer token or the
    login in `store`. Secrets are looked up at each start and added to `redactor`.

    Opening a session raises ServerFault if a secret or a login is missing, or the server cannot be
    reached.
    """

    def secret(text: str, setting: str) -> str:
        try:
            return _secret(name, text, setting, environ, redactor)
        except ConfigError as error:
            raise ServerFault("no_secret", error.message, cure=error.cure) from None

    def order() -> ProgramStart:
        own = environment(environ)
        folder = expanded(server.cwd or own.get("HOME") or "/")
        secrets = {name: secret(text, f"secrets.{name}") for name, text in server.secrets.items()}
        return ProgramStart(server.command, folder, {**own, **server.env, **secrets}, grace)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Link]:
        if store is not None and (fault := store.fault()):
            raise fault
        sdk = await asyncio.to_thread(_load_sdk, _sdk)
        if server.command:
            async with start_program(order()) as program, sdk.to_program(program) as link:
                yield link
        elif store is not None:
            own = secret(server.client_secret, "client_secret") if server.client_secret else ""
            oauth = await asyncio.to_thread(_load_sdk, _oauth)
            places = oauth.LoginPlaces(server.url, server.login_hosts)
            authorized = partial(oauth.LoginAuth, store, own)
            carrier = oauth.GuardedTransport(places, server.timeout.total_seconds())
            async with sdk.to_address(server.url, {}, server.timeout, authorized, carrier) as link:
                yield link
        else:
            headers = {}
            if server.bearer:
                headers["Authorization"] = f"Bearer {secret(server.bearer, 'bearer')}"
            async with sdk.to_address(server.url, headers, server.timeout) as link:
                yield link

    return opened


def login_door(
    name: str,
    server: McpServer,
    environ: Mapping[str, str],
    redactor: Redactor,
    store: LoginStore,
) -> LoginDoor:
    """Return how to log in to a server with OAuth, and its stored login. `log_in` of the result
    raises AgentdError.
    """

    async def log_in(redirect_uri: str, way: LoginWay) -> None:
        secret = ""
        if server.client_secret:
            secret = _secret(name, server.client_secret, "client_secret", environ, redactor)
        oauth = await asyncio.to_thread(_load_sdk, _oauth)
        order = oauth.LoginOrder(
            server.url,
            redirect_uri,
            server.timeout.total_seconds(),
            server.client_id,
            secret,
            store.login.missing if store.login else "",
        )
        places = oauth.LoginPlaces(server.url, server.login_hosts)
        await store.keep(await oauth.log_in(order, places, way, store.expiry))

    return LoginDoor(store, log_in)


def _secret(
    name: str, text: str, setting: str, environ: Mapping[str, str], redactor: Redactor
) -> str:
    key = find_secret(Reference(text, f"[mcp.servers.{name}] {setting}"), environ).reveal()
    redactor.add(key)
    return key


def _load_sdk(load: Callable[[], ModuleType]) -> ModuleType:
    """Import the SDK or its OAuth part; the first import takes about a second. The modules are
    frozen for the garbage collector, since they stay for good.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return load()
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _sdk() -> ModuleType:
    from agentd.interfaces.mcp import sdk

    return sdk


def _oauth() -> ModuleType:
    from agentd.interfaces.mcp import oauth

    return oauth
